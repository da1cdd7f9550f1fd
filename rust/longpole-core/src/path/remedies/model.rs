//! Sides and remedies: what may hold a program up, and what can be done about it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::graph::Kind;
use crate::ids::EventId;
use crate::path::what_if::{Change, Effect, Ratio};

/// What may hold a program up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// Computing kernels.
    Kernels,
    /// Everything that threads of the CPU do.
    Host,
    /// Kernels that talk to other devices, waiting for late ones included.
    Communication,
    /// Copies and fills of memory.
    Copies,
}

impl Side {
    /// Every one, in the order of the enum.
    pub const ALL: &'static [Self] =
        &[Self::Kernels, Self::Host, Self::Communication, Self::Copies];

    /// In order of what it usually costs to do something about it.
    pub(super) const CHEAPEST_FIRST: [Self; 4] =
        [Self::Host, Self::Communication, Self::Copies, Self::Kernels];

    /// Its name in data.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kernels => "kernels",
            Self::Host => "host",
            Self::Communication => "communication",
            Self::Copies => "copies",
        }
    }

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

/// What can be done, in order of what it usually costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RemedyKind {
    /// Load data beside the program.
    DataLoading,
    /// Let calls no longer wait for the device.
    BlockingCalls,
    /// Keep memory.
    Allocation,
    /// Copy beside the kernels.
    Copies,
    /// Communicate beside the kernels.
    Communication,
    /// Let streams no longer wait for each other.
    StreamWaits,
    /// Take the time out of one function.
    Function,
    /// Launch work in larger pieces.
    HostWork,
    /// Make kernels faster.
    Kernels,
}

impl RemedyKind {
    /// Its name in data.
    pub fn name(self) -> &'static str {
        match self {
            Self::DataLoading => "data_loading",
            Self::BlockingCalls => "blocking_calls",
            Self::Allocation => "allocation",
            Self::Copies => "copies",
            Self::Communication => "communication",
            Self::StreamWaits => "stream_waits",
            Self::Function => "function",
            Self::HostWork => "host_work",
            Self::Kernels => "kernels",
        }
    }

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
        Self { kind, name, named: false, gain_ns: 0, gain: 0.0, cumulative: None, changes, events }
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
