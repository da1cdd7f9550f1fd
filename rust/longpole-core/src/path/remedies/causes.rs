//! What may hold something up, as a set.

use crate::graph::Kind;
use crate::path::what_if::{Change, Effect, Ratio};

/// What may have caused a gap, or what a change removes: one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Causes(u8);

impl Causes {
    pub(super) const KERNELS: Self = Self(1);
    pub(super) const HOST: Self = Self(2);
    pub(super) const COMMUNICATION: Self = Self(4);
    pub(super) const COPIES: Self = Self(8);
    pub(super) const BLOCKING_CALLS: Self = Self(16);
    pub(super) const STREAM_WAITS: Self = Self(32);
    pub(super) const DEVICE: Self = Self(1 | 4 | 8);

    pub(super) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(super) fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// What a change removes.
    pub(super) fn of(change: &Change) -> Self {
        let of_events = change.events.is_some();
        match (change.effect, change.kind) {
            (Effect::RemoveWait, Some(Kind::EventWait)) => Self::STREAM_WAITS,
            (Effect::RemoveWait, _) if !of_events => Self::BLOCKING_CALLS,
            (Effect::Scale(ratio), Some(kind)) if ratio != Ratio::ONE && !of_events => match kind {
                Kind::Kernel => Self::KERNELS,
                Kind::Communication => Self::COMMUNICATION,
                Kind::Copy => Self::COPIES,
                Kind::Operator => Self::HOST,
                _ => Self::default(),
            },
            _ => Self::default(),
        }
    }
}
