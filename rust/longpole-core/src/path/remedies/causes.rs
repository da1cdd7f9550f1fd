//! Sets of possible causes of a gap, and how far a change reaches into unexplained time.

use super::model::Side;
use crate::graph::{Graph, Kind};
use crate::path::what_if::{Change, Effect, Ratio};

/// Possible causes of a gap, or what a change removes, one bit each.
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

    /// Returns the sides among the causes that are on a device.
    pub(super) fn of_device_sides(self) -> impl Iterator<Item = Side> {
        let sides = [
            (Self::KERNELS, Side::Kernels),
            (Self::COMMUNICATION, Side::Communication),
            (Self::COPIES, Side::Copies),
        ];
        sides.into_iter().filter(move |(cause, _)| self.meets(*cause)).map(|(_, side)| side)
    }

    fn of_kind(kind: Kind) -> Self {
        match kind {
            Kind::Kernel => Self::KERNELS,
            Kind::Communication => Self::COMMUNICATION,
            Kind::Copy => Self::COPIES,
            Kind::Operator => Self::HOST,
            _ => Self::default(),
        }
    }
}

/// What a change removes, from all events or from given ones only.
pub(super) struct Reach<'c> {
    change: &'c Change,
    causes: Causes,
    /// For host changes of given events or time ranges: the times of those.
    spans: Vec<(i64, i64)>,
}

impl<'c> Reach<'c> {
    pub(super) fn of(change: &'c Change, graph: &Graph) -> Self {
        let of_all = |change: &Change| match (change.effect, change.kind) {
            (Effect::RemoveWait, Some(Kind::EventWait)) => Causes::STREAM_WAITS,
            (Effect::RemoveWait, _) => Causes::BLOCKING_CALLS,
            (Effect::Insert(_) | Effect::Scale(Ratio::ONE), _) | (_, None) => Causes::default(),
            (Effect::Scale(_) | Effect::Replace(_), Some(kind)) => Causes::of_kind(kind),
        };
        let mut reach = Self { change, causes: of_all(change), spans: Vec::new() };
        if change.events.is_some() || change.time_ranges.is_some() {
            reach.find_spans(graph);
        }
        reach
    }

    /// Determines the kinds of the given events, and the times of those on threads.
    fn find_spans(&mut self, graph: &Graph) {
        let timeline = &graph.timeline;
        let mut is_of_host = self.change.time_ranges.is_some();
        for &event in self.change.events.iter().flatten() {
            let Some(order) = timeline.order(event) else { continue };
            if timeline.kind(order).is_device_work() {
                if self.change.kind.is_none() && self.change.effect != Effect::Scale(Ratio::ONE) {
                    let work = graph.edges.range(graph.nodes.end(order));
                    let kinds = graph.edges.as_slice()[work].iter().map(|edge| edge.kind);
                    self.causes = kinds.map(Causes::of_kind).fold(self.causes, Causes::with);
                }
            } else {
                self.spans.push((timeline.start_ns(order), timeline.end_ns(order)));
                is_of_host = true;
            }
        }
        let time_ranges = self.change.time_ranges.iter().flatten();
        self.spans.extend(time_ranges.map(|time_range| (time_range.start_ns, time_range.end_ns)));
        self.spans.sort_unstable();
        if is_of_host && self.change.kind.is_none() && self.factor().is_some() {
            let waits = self.change.effect == Effect::RemoveWait;
            self.causes = if waits { self.causes } else { self.causes.with(Causes::HOST) };
        }
    }

    /// Returns the causes that the change removes.
    pub(super) fn causes(&self) -> Causes {
        self.causes
    }

    /// Returns the causes that the change removes everywhere; empty if it is limited to some
    /// events.
    pub(super) fn causes_of_all(&self) -> Causes {
        let is_of_all = self.change.events.is_none() && self.change.time_ranges.is_none();
        if is_of_all { self.causes } else { Causes::default() }
    }

    /// Returns the factor that the change applies to time of a changed cause.
    pub(super) fn factor(&self) -> Option<Ratio> {
        match self.change.effect {
            Effect::RemoveWait | Effect::Replace(_) => Some(Ratio::ZERO),
            Effect::Scale(by) if by.as_f64() < 1.0 => Some(by),
            Effect::Scale(_) | Effect::Insert(_) => None,
        }
    }

    /// Whether a gap may be time of what is changed. If the change is limited to events of threads,
    /// the gap must end during one of them, or precede an activity launched then.
    pub(super) fn has(&self, gap: u32, graph: &Graph) -> bool {
        if self.spans.is_empty() {
            return true;
        }
        let (timeline, nodes) = (&graph.timeline, &graph.nodes);
        let late = nodes.event(graph.edges.as_slice()[gap as usize].target);
        let is_of_device = timeline.kind(late).is_device_work();
        let called = if is_of_device { timeline.launcher(late) } else { Some(late) };
        let Some(call) = called else { return true };
        let at_ns = timeline.start_ns(call);
        let behind = self.spans.partition_point(|&(start_ns, _)| start_ns <= at_ns);
        // The ends of nested spans are not sorted, so the last few are checked.
        self.spans[..behind].iter().rev().take(MOST_NESTED).any(|&(_, end_ns)| end_ns >= at_ns)
    }
}

/// Number of given events checked for one that is open at a time.
const MOST_NESTED: usize = 16;
