//! Missing GPU activities: of recorded launches, and of launch calls that are missing themselves.
//!
//! PyTorch records a range around each collective. If all recorded communication was launched in
//! such ranges, they show which of the launches without an activity communicate.

use super::causes::Causes;
use super::missing_calls::{MissingCalls, may_wait};
use super::question::Question;
use crate::graph::{Edge, Kind};
use crate::ids::{EventId, NodeId, Order};
use crate::vocabulary::{ApiRole, is_collective_range};

/// Maximum number of launches without an activity examined between two others. Activities on many
/// streams share the launches before them, so that examining all of them would take quadratic time.
const MOST_MISSING: usize = 64;

/// Launches without an activity, and missing calls, by thread.
pub(super) struct MissingActivities {
    of_thread: Vec<Vec<(NodeId, Causes)>>,
    times_ns: Vec<Vec<i64>>,
    /// The device causes that occur in this trace.
    pub(super) of_device: Causes,
}

impl MissingActivities {
    pub(super) fn of(question: &Question<'_>, missing_calls: &[MissingCalls]) -> Self {
        let graph = question.graph;
        let ranges = CollectiveRanges::of(question);
        let of_device = ranges.of_device(question);
        let mut all: Vec<_> = graph
            .missing_activities
            .iter()
            .map(|&call| {
                let may = ranges.of_launch(call, of_device, question).with(Causes::STREAM_WAITS);
                (graph.timeline.lane(call), graph.nodes.start(call), may)
            })
            .collect();
        all.extend(missing_calls.iter().map(|missing| {
            let may = ranges.of_missing_calls(missing, of_device, question);
            (
                missing.thread,
                missing.before,
                may.with(Causes::STREAM_WAITS).with(Causes::BLOCKING_CALLS),
            )
        }));
        all.sort_unstable_by_key(|&(thread, node, _)| (thread, node));
        let mut missing = Self { of_thread: Vec::new(), times_ns: Vec::new(), of_device };
        for (thread, node, may) in all {
            missing.of_thread.resize(missing.of_thread.len().max(thread + 1), Vec::new());
            missing.times_ns.resize(missing.of_thread.len(), Vec::new());
            missing.of_thread[thread].push((node, may));
            missing.times_ns[thread].push(graph.nodes.time_ns(node));
        }
        missing
    }

    pub(super) fn is_empty(&self) -> bool {
        self.of_thread.is_empty()
    }

    /// Whether any of them comes before a time.
    pub(super) fn is_any_before(&self, at_ns: i64) -> bool {
        self.times_ns.iter().filter_map(|times_ns| times_ns.first()).any(|&ns| ns < at_ns)
    }

    /// Returns what all of them together may have done on devices.
    pub(super) fn all(&self) -> Causes {
        let each = self.of_thread.iter().flatten();
        let all = each.fold(Causes::default(), |all, one| all.with(one.1));
        all.without(Causes::BLOCKING_CALLS)
    }

    /// Returns the first of them on a thread between two times, and what they may have launched.
    pub(super) fn between(
        &self,
        thread: usize,
        after_ns: i64,
        until_ns: i64,
    ) -> Option<(NodeId, Causes)> {
        let times_ns = self.times_ns.get(thread)?;
        let first = times_ns.partition_point(|&ns| ns <= after_ns);
        let behind = times_ns.partition_point(|&ns| ns < until_ns);
        let (call, may) = *self.of_thread[thread].get(first..behind)?.first()?;
        let others = self.of_thread[thread][first..behind].iter().take(MOST_MISSING);
        Some((call, others.fold(may, |may, other| may.with(other.1))))
    }

    /// Returns the synchronization calls after some of them on the same thread, each with the first
    /// of them since the previous such call.
    pub(super) fn waits(&self, question: &Question<'_>) -> Vec<(Order, NodeId, Causes)> {
        let (timeline, roles) = (&question.graph.timeline, question.tables.roles());
        let mut last_ns = vec![i64::MIN; self.of_thread.len()];
        let mut found = Vec::new();
        for call in timeline.orders().filter(|&call| timeline.kind(call).is_call()) {
            let thread = timeline.lane(call);
            let waits = timeline.name(call).is_some_and(|name| may_wait(roles[name.row()]));
            if waits && thread < last_ns.len() {
                let until_ns = timeline.start_ns(call);
                if let Some((first, may)) = self.between(thread, last_ns[thread], until_ns + 1) {
                    found.push((call, first, may));
                }
                last_ns[thread] = until_ns;
            }
        }
        found
    }
}

/// The events that are inside the range of a collective, or are such a range.
struct CollectiveRanges {
    /// By event; empty if the trace has no such ranges.
    is_inside: Vec<bool>,
    /// Whether all recorded communication was launched in such a range.
    tell: bool,
}

impl CollectiveRanges {
    fn of(question: &Question<'_>) -> Self {
        let is_range = question.tables.strings.matching(is_collective_range);
        if !is_range.contains(&true) {
            return Self { is_inside: Vec::new(), tell: false };
        }
        let events = &question.tables.events;
        let mut is_inside = vec![false; events.len()];
        for event in question.nesting.outside_in() {
            let is_one = events.name(event).is_some_and(|name| is_range[name.row()]);
            let parent = question.nesting.parent(event);
            is_inside[event.row()] = is_one || parent.is_some_and(|it| is_inside[it.row()]);
        }
        let mut ranges = Self { is_inside, tell: true };
        let timeline = &question.graph.timeline;
        ranges.tell = communication(question)
            .filter_map(|work| timeline.launcher(work))
            .all(|call| ranges.holds(timeline.event(call)));
        ranges
    }

    fn holds(&self, event: EventId) -> bool {
        self.is_inside.get(event.row()).copied().unwrap_or(false)
    }

    /// Returns the device causes that occur in this trace: communication only if it is recorded.
    fn of_device(&self, question: &Question<'_>) -> Causes {
        let has_communication =
            !self.is_inside.is_empty() || communication(question).next().is_some();
        let without = Causes::DEVICE.without(Causes::COMMUNICATION);
        if has_communication { Causes::DEVICE } else { without }
    }

    /// Returns what a launch without an activity may have launched.
    fn of_launch(&self, call: Order, of_device: Causes, question: &Question<'_>) -> Causes {
        let timeline = &question.graph.timeline;
        let role = timeline.name(call).map(|name| question.tables.role(name));
        match role {
            Some(ApiRole::Launch) if !self.tell => of_device.without(Causes::COPIES),
            Some(ApiRole::Launch) if self.holds(timeline.event(call)) => Causes::COMMUNICATION,
            Some(ApiRole::Launch) => Causes::KERNELS,
            _ => Causes::COPIES,
        }
    }

    /// Returns what missing calls may have launched.
    fn of_missing_calls(
        &self,
        missing: &MissingCalls,
        of_device: Causes,
        question: &Question<'_>,
    ) -> Causes {
        let graph = question.graph;
        let between = graph.thread_nodes.between(missing.thread, missing.before, missing.behind);
        let is_inside = |&node: &NodeId| self.holds(graph.timeline.event(graph.nodes.event(node)));
        let may_communicate =
            !self.tell || is_inside(&missing.before) || between.iter().any(is_inside);
        if may_communicate { of_device } else { of_device.without(Causes::COMMUNICATION) }
    }
}

/// Returns the recorded communication activities.
fn communication<'q>(question: &'q Question<'_>) -> impl Iterator<Item = Order> + 'q {
    let edges = question.graph.edges.as_slice().iter();
    edges.filter(|edge| edge.kind == Kind::Communication).filter_map(Edge::event)
}
