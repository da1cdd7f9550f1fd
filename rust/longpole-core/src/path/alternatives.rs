//! Alternative paths, where the accuracy of the clocks does not decide which path is critical.
//!
//! The timestamps of a device may be shifted by its [`ClockSlack`](crate::graph::ClockSlack)
//! without contradicting any record. If a call and an activity that released a start, or ended a
//! window, are closer together than that, either may be the last. If typical latencies decide
//! between them, the path is not doubtful.
//!
//! An inferred wait is also doubtful if the launch explains the start as well, or if the awaited
//! activity may have ended before the call began that is taken to have waited for it.

use std::collections::BTreeSet;

use super::clip::{last_of, node_of};
use super::schedule::Schedule;
use super::windows::Window;
use crate::graph::{Edge, Evidence, Graph, Role, limits};
use crate::ids::{EventId, NodeId};

/// The current nodes of the alternative paths while the path is walked back.
pub(super) struct Alternatives<'a> {
    graph: &'a Graph,
    schedule: &'a Schedule,
    nodes: BTreeSet<NodeId>,
}

impl<'a> Alternatives<'a> {
    /// Starts with the alternative end of a window whose path ends with `last`.
    pub(super) fn of(
        graph: &'a Graph,
        window: &Window,
        schedule: &'a Schedule,
        last: NodeId,
    ) -> Self {
        let mut alternatives = Self { graph, schedule, nodes: BTreeSet::new() };
        if schedule.is_by_time() {
            alternatives.nodes.extend(alternatives.other_end(window, last));
        }
        alternatives
    }

    /// Follows the next edge of the path. Returns whether an alternative is open or begins here,
    /// and the event that the alternative comes from.
    pub(super) fn step(&mut self, edge: &Edge) -> (bool, Option<EventId>) {
        let rival = self.rival(edge);
        let hidden = self.hidden_rival(edge);
        let is_open = self.are_open_at(edge.target) || rival.is_some() || hidden.is_some();
        self.nodes.extend(rival.map(|it| it.source).into_iter().chain(hidden));
        let event = |it: &Edge| self.graph.timeline.event(self.graph.nodes.event(it.source));
        (is_open, rival.map(event))
    }

    /// Walks the alternatives back to a node of the path and closes those that reach it. Returns
    /// whether any remain open.
    fn are_open_at(&mut self, node: NodeId) -> bool {
        while let Some(&last) = self.nodes.last().filter(|&&last| last > node) {
            self.nodes.pop_last();
            let reached_by = self.schedule.reached_by(last, self.graph);
            self.nodes.extend(reached_by.map(|it| self.graph.edges.as_slice()[it].source));
        }
        self.nodes.remove(&node);
        !self.nodes.is_empty()
    }

    /// Returns the edge that may bind in place of another one: the start of an activity if the
    /// timestamps of its device were shifted or if both edges explain it, or the end of a call that
    /// is taken to have waited.
    fn rival(&self, binding: &Edge) -> Option<&'a Edge> {
        let graph = self.graph;
        let others = graph.edges.as_slice()[graph.edges.range(binding.target)].iter();
        others.filter(|_| self.schedule.is_by_time()).find(|other| {
            if binding.role.launches() {
                self.may_have_released(other, binding)
            } else if binding.role == Role::Sync {
                self.may_not_have_waited(binding, other)
            } else {
                self.may_have_launched(other, binding)
            }
        })
    }

    /// Returns the end of the activity that may have bound the target of a recorded edge, although
    /// no edge shows that.
    fn hidden_rival(&self, edge: &Edge) -> Option<NodeId> {
        let is_inferred = edge.evidence == Evidence::Inferred;
        let rival = edge.rival().filter(|_| !is_inferred && self.schedule.is_by_time());
        rival.map(|rival| self.graph.nodes.end(rival))
    }

    /// Returns whether a start that its launch binds may have waited for another activity.
    fn may_have_released(&self, release: &Edge, launch: &Edge) -> bool {
        let slack = self.graph.clock_slack(self.graph.nodes.event(launch.target));
        release.role.releases()
            && !self.graph.is_oddly_late(release)
            && (self.apart_ns(launch, release) < slack.later_ns || self.is_tie(launch, release))
    }

    /// Returns whether a start that another activity released may have waited for its launch.
    fn may_have_launched(&self, launch: &Edge, release: &Edge) -> bool {
        let slack = self.graph.clock_slack(self.graph.nodes.event(release.target));
        let is_near = || self.apart_ns(release, launch) < slack.earlier_ns;
        (self.graph.was_on_the_way(launch, release) && is_near()) || self.is_tie(launch, release)
    }

    /// Returns whether the awaited activity may have ended before the call began.
    fn may_not_have_waited(&self, wait: &Edge, thread: &Edge) -> bool {
        let slack = self.graph.clock_slack(self.graph.nodes.event(wait.source));
        wait.evidence == Evidence::Inferred
            && thread.role == Role::ThreadOrder
            && self.apart_ns(wait, thread) < slack.earlier_ns
    }

    /// Returns whether a launch and an inferred wait explain a start equally well.
    fn is_tie(&self, launch: &Edge, release: &Edge) -> bool {
        let longer_ns =
            |edge: &Edge| edge.gap_ns(&self.graph.nodes) - self.graph.typical_ns(edge.role);
        launch.role.launches()
            && release.role == Role::EventWait
            && release.evidence == Evidence::Inferred
            && !self.graph.is_oddly_late(launch)
            && longer_ns(launch).abs_diff(longer_ns(release))
                < limits::EITHER_BOUND_NS.unsigned_abs()
    }

    /// Returns how much later one edge finished than another.
    fn apart_ns(&self, binding: &Edge, other: &Edge) -> i64 {
        let times_ns = self.schedule.times_ns(self.graph);
        binding.finished_ns(times_ns) - other.finished_ns(times_ns)
    }

    /// Returns the last host candidate for the end of a window that ends on a device, or the
    /// reverse, if it may come later.
    fn other_end(&self, window: &Window, last: NodeId) -> Option<NodeId> {
        let graph = self.graph;
        let time_ns = |node| self.schedule.time_ns(node, graph);
        let is_work = |node| graph.timeline.kind(graph.nodes.event(node)).is_device_work();
        let is_other =
            |moment: &_| node_of(graph, *moment).is_some_and(|it| is_work(it) != is_work(last));
        let others: Vec<_> = window.candidates.iter().copied().filter(is_other).collect();
        let other = last_of(graph, &others, &time_ns)?;
        let slack = |node| graph.clock_slack(graph.nodes.event(node));
        let slack_ns = if is_work(last) { slack(last).earlier_ns } else { slack(other).later_ns };
        (time_ns(last) - time_ns(other) < slack_ns).then_some(other)
    }
}
