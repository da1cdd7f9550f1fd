//! Sides: what may hold a program up.

use crate::graph::Kind;
use crate::names::named;
use crate::path::what_if::{Change, Effect, Ratio};

named! {
    /// What may hold a program up.
    Side {
        /// Computing kernels; what a graph replay hides between its nodes may be more of them.
        Kernels "kernels",
        /// Everything that threads of the CPU do.
        Host "host",
        /// Kernels that talk to other devices, waiting for late ones included.
        Communication "communication",
        /// Copies and fills of memory.
        Copies "copies",
    }
}

impl Side {
    /// In order of what it usually costs to do something about it.
    pub(super) const CHEAPEST_FIRST: [Self; 4] =
        [Self::Host, Self::Communication, Self::Copies, Self::Kernels];

    fn kinds(self) -> &'static [Kind] {
        match self {
            Self::Kernels => &[Kind::Kernel],
            Self::Host => &HOST,
            Self::Communication => &[Kind::Communication],
            Self::Copies => &[Kind::Copy],
        }
    }

    pub(super) fn has(self, kind: Kind) -> bool {
        self.kinds().contains(&kind)
    }

    /// The changes that remove it.
    pub(super) fn removed(self) -> Vec<Change> {
        self.kinds().iter().copied().map(dropped).collect()
    }
}

/// The kinds of the host, data loading first.
pub(super) const HOST: [Kind; 6] =
    [Kind::DataLoading, Kind::Operator, Kind::Runtime, Kind::HostGap, Kind::Launch, Kind::Handover];

pub(super) fn dropped(kind: Kind) -> Change {
    Change::of_kind(Effect::Scale(Ratio::ZERO), kind)
}
