//! Sides: the parts of a program that can limit it.

use crate::graph::Kind;
use crate::names::named;
use crate::path::what_if::{Change, Effect, Ratio};

named! {
    /// A part of a program that can limit it.
    Side {
        /// Compute kernels, including those that a graph replay may hide between its nodes.
        Kernels "kernels",
        /// Everything that CPU threads do.
        Host "host",
        /// Communication kernels, including waits for late ranks.
        Communication "communication",
        /// Memcpys and memsets.
        Copies "copies",
        /// Waits of threads and streams for GPU activities.
        Waits "waits",
    }
}

impl Side {
    /// The sides that do something: all but the waits.
    pub(super) const WORK: [Self; 4] =
        [Self::Kernels, Self::Host, Self::Communication, Self::Copies];

    /// The same, sorted by the usual effort of shortening them.
    pub(super) const CHEAPEST_FIRST: [Self; 4] =
        [Self::Host, Self::Communication, Self::Copies, Self::Kernels];

    fn kinds(self) -> &'static [Kind] {
        match self {
            Self::Kernels => &[Kind::Kernel],
            Self::Host => &HOST,
            Self::Communication => &[Kind::Communication],
            Self::Copies => &[Kind::Copy],
            Self::Waits => &[Kind::SyncReturn, Kind::EventWait, Kind::QueueFull],
        }
    }

    pub(super) fn has(self, kind: Kind) -> bool {
        self.kinds().contains(&kind)
    }

    /// Returns the changes that remove it.
    pub(super) fn removed(self) -> Vec<Change> {
        let without = |&kind: &Kind| match self {
            Self::Waits => Change::of_kind(Effect::RemoveWait, kind),
            _ => dropped(kind),
        };
        self.kinds().iter().map(without).collect()
    }
}

/// The kinds of host time, data loading first.
pub(super) const HOST: [Kind; 6] =
    [Kind::DataLoading, Kind::Operator, Kind::Runtime, Kind::HostGap, Kind::Launch, Kind::Handover];

pub(super) fn dropped(kind: Kind) -> Change {
    Change::of_kind(Effect::Scale(Ratio::ZERO), kind)
}
