//! Sides and remedies: what may hold a program up, and what can be done about it.

use super::bounds::{Bounds, Fact};
use crate::names::named;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::graph::Kind;
use crate::ids::EventId;
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

named! {
    /// What can be done, in order of what it usually costs.
    RemedyKind {
        /// Load data beside the program.
        DataLoading "data_loading",
        /// Let calls no longer wait for the device.
        BlockingCalls "blocking_calls",
        /// Keep memory.
        Allocation "allocation",
        /// Copy beside the kernels.
        Copies "copies",
        /// Communicate beside the kernels.
        Communication "communication",
        /// Let streams no longer wait for each other.
        StreamWaits "stream_waits",
        /// Take the time out of one function.
        Function "function",
        /// Launch work in larger pieces.
        HostWork "host_work",
        /// Make kernels faster.
        Kernels "kernels",
    }
}

impl RemedyKind {
    /// What it is done about.
    pub fn side(self) -> Side {
        match self {
            Self::DataLoading
            | Self::BlockingCalls
            | Self::Allocation
            | Self::Function
            | Self::HostWork => Side::Host,
            Self::Copies => Side::Copies,
            Self::Communication => Side::Communication,
            Self::StreamWaits | Self::Kernels => Side::Kernels,
        }
    }
}

/// Something that can be done.
#[derive(Debug, Clone, PartialEq)]
pub struct Remedy {
    /// What.
    pub kind: RemedyKind,
    /// The part it is about, such as a place that calls or a kernel; none for all.
    pub name: Option<String>,
    /// Whether the verdict names it.
    pub named: bool,
    /// What it gains of a window in the mean, rounded down. Below 0 it would cost.
    pub gain_ns: i64,
    /// The same as a share.
    pub gain: f64,
    /// The least and the greatest share that it may gain, with what is missing from the trace.
    pub bounds: Bounds,
    /// What it gains with all before it of the same kind.
    pub cumulative: Option<f64>,
    /// The changes that stand for it.
    pub changes: Vec<Change>,
    /// The events that show it best: those with most time on the path.
    pub events: Vec<EventId>,
}

/// So many events prove a remedy.
const MOST_EVENTS: usize = 8;

impl Remedy {
    pub(super) fn new(kind: RemedyKind, name: Option<String>, changes: Vec<Change>) -> Self {
        let events = Vec::new();
        Self {
            kind,
            name,
            named: false,
            gain_ns: 0,
            gain: 0.0,
            bounds: Bounds { low: 0.0, high: 0.0, low_by: Fact::Recorded, high_by: Fact::Recorded },
            cumulative: None,
            changes,
            events,
        }
    }

    pub(super) fn shown_by(self, times: impl Iterator<Item = (EventId, i64)>) -> Self {
        Self { events: longest(times), ..self }
    }
}

/// The events with most time.
fn longest(times: impl Iterator<Item = (EventId, i64)>) -> Vec<EventId> {
    let mut longest = BinaryHeap::new();
    for (event, ns) in times {
        let row = (Reverse(ns), event);
        if longest.len() < MOST_EVENTS {
            longest.push(row);
        } else if let Some(mut shortest) = longest.peek_mut().filter(|shortest| row < **shortest) {
            *shortest = row;
        }
    }
    longest.into_sorted_vec().into_iter().map(|(_, event)| event).collect()
}

pub(super) fn dropped(kind: Kind) -> Change {
    Change::of_kind(Effect::Scale(Ratio::ZERO), kind)
}
