//! The critical path: walks back from the end of a window along the edge that finished last.

use std::collections::BTreeSet;

use super::clip::{last_of, moved, node_of};
use super::schedule::Schedule;
use super::windows::Window;
use crate::graph::limits::{INCONCLUSIVE_PART, TOGETHER_NS};
use crate::graph::{Certainty, Edge, Evidence, Graph, Kind, Role, limits};
use crate::ids::{EventId, NodeId, row_in_column};

/// A segment of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Start time.
    pub start_ns: i64,
    /// End time.
    pub end_ns: i64,
    /// The kind of its time.
    pub kind: Kind,
    /// The event that has the time.
    pub event: Option<EventId>,
    /// How the segment is known.
    pub evidence: Evidence,
    /// How reliable it is.
    pub certainty: Certainty,
    /// The other activity that may be meant.
    pub rival: Option<EventId>,
}

impl Segment {
    /// Returns the duration of the segment.
    pub fn duration_ns(&self) -> i64 {
        self.end_ns - self.start_ns
    }
}

/// The chain that determined the end of a window.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Path {
    /// Start of the window.
    pub start_ns: i64,
    /// End of the window.
    pub end_ns: i64,
    /// The segments, which cover the window without gaps or overlaps, in order of time.
    pub segments: Vec<Segment>,
    /// The indices of their edges, in order.
    pub edges: Vec<u32>,
    /// The time before a choice that nothing in the trace decides: in a graph launched once or
    /// twice, either of two nodes that ended together may have been waited for.
    pub undecided_ns: i64,
}

impl Path {
    /// Returns the time of all segments of some kinds.
    pub fn kinds_ns(&self, kinds: &[Kind]) -> i64 {
        self.sum_ns(|segment| kinds.contains(&segment.kind))
    }

    /// Returns the time that is inferred.
    pub fn inferred_ns(&self) -> i64 {
        self.sum_ns(|segment| segment.evidence == Evidence::Inferred)
    }

    /// Returns the time with a given certainty.
    pub fn certainty_ns(&self, certainty: Certainty) -> i64 {
        self.sum_ns(|segment| segment.certainty == certainty)
    }

    /// Returns the time before the first unexplained segment, seen from the end of the window: if
    /// the cause of that segment is another one, all of this time may be wrong.
    pub fn behind_unknown_ns(&self) -> i64 {
        let last = self.segments.iter().rposition(|it| Kind::UNKNOWN.contains(&it.kind));
        last.map_or(0, |last| self.segments[last].start_ns - self.start_ns)
    }

    /// Whether so much time is unknown that the path is inconclusive. Half of the undecided time
    /// counts, because both choices are equally likely.
    pub fn is_inconclusive(&self) -> bool {
        let length_ns = self.end_ns - self.start_ns;
        self.kinds_ns(Kind::UNKNOWN) + self.undecided_ns / 2 > length_ns / INCONCLUSIVE_PART
    }

    fn sum_ns(&self, counts: impl Fn(&Segment) -> bool) -> i64 {
        self.segments.iter().filter(|segment| counts(segment)).map(Segment::duration_ns).sum()
    }
}

/// Walks back from the end of a window to its start, always along the edge by which a node is
/// reached. If the walk runs out of edges early, or nothing happened at the end of the window, a
/// segment marks that time.
///
/// Segments before an unexplained edge are doubtful until the walk reaches another lane, because
/// the path may be different if the cause is. Segments before an undecided wait are doubtful until
/// the walk leaves the devices. Where the clocks of host and device do not decide between two
/// paths, segments are doubtful until the two meet.
pub fn walk(graph: &Graph, window: &Window, schedule: &Schedule) -> Path {
    let times_ns = moved(graph, window, &|node| schedule.time_ns(node, graph));
    walk_between(graph, window, schedule, times_ns)
}

/// Like [`walk`], with a given start and end of the window.
pub(super) fn walk_between(
    graph: &Graph,
    window: &Window,
    schedule: &Schedule,
    (start_ns, end_ns): (i64, i64),
) -> Path {
    let time_ns = |node| schedule.time_ns(node, graph);
    let mut path = Path { start_ns, end_ns, ..Path::default() };
    let Some(mut node) = last_node(graph, window, schedule) else { return path };
    let mut is_behind_unknown = false;
    let mut is_undecided = false;
    let mut later = None;
    let mut alternatives = Alternatives::of(graph, window, schedule, node);
    if time_ns(node) < end_ns {
        path.push(unknown(time_ns(node), end_ns, Kind::AfterLastEvent));
    }
    while time_ns(node) > start_ns {
        let Some(number) = schedule.reached_by(node, graph) else {
            path.push(unknown(start_ns, time_ns(node), Kind::BeforeFirstEvent));
            break;
        };
        let edge = &graph.edges.as_slice()[number];
        path.edges.push(row_in_column(number));
        is_behind_unknown = is_behind_unknown && graph.is_within_lane(edge);
        is_undecided = is_undecided && is_on_device(graph, edge.source);
        let mut found = segment(graph, edge, schedule.times_ns(graph));
        let (is_open, rival) = alternatives.step(edge);
        found.rival = found.rival.or(rival);
        let is_blurred = is_blurred(graph, edge, &found, later, schedule);
        if is_open || is_blurred || is_behind_unknown || is_undecided {
            found.certainty = found.certainty.max(Certainty::Doubtful);
        }
        if is_undecided {
            path.undecided_ns += found.end_ns - found.start_ns.max(start_ns);
        }
        path.push(found);
        is_behind_unknown |= edge.evidence == Evidence::None;
        is_undecided |= is_toss_up(graph, edge);
        later = Some(edge);
        node = edge.source;
    }
    // Shrinks the vector to its exact size, because a verdict keeps the paths of all windows.
    path.segments = path.segments.iter().rev().copied().collect();
    path.edges = path.edges.iter().rev().copied().collect();
    path
}

/// Whether an error of the device clock may be a large part of a segment that leads from the host
/// to a device or back, or that lies on the device before or after such a segment.
fn is_blurred(
    graph: &Graph,
    edge: &Edge,
    segment: &Segment,
    later: Option<&Edge>,
    schedule: &Schedule,
) -> bool {
    let on_device = [edge.source, edge.target].map(|node| is_on_device(graph, node));
    if on_device == [false; 2] {
        return false;
    }
    let node = if on_device[0] { edge.source } else { edge.target };
    let doubt_ns = graph.clock_slack(graph.nodes.event(node)).doubt_ns;
    if segment.duration_ns() >= limits::DOUBTED_CLOCK_PART * doubt_ns {
        return false;
    }
    let earlier = || schedule.reached_by(edge.source, graph).map(|it| &graph.edges.as_slice()[it]);
    on_device != [true; 2]
        || later.is_some_and(|edge| !is_on_device(graph, edge.target))
        || earlier().is_some_and(|edge| !is_on_device(graph, edge.source))
}

fn is_on_device(graph: &Graph, node: NodeId) -> bool {
    graph.timeline.kind(graph.nodes.event(node)).is_device_work()
}

/// Whether a graph node waited for one of two others that ended together, and the trace does not
/// decide which.
fn is_toss_up(graph: &Graph, edge: &Edge) -> bool {
    let Some(rival) = edge.rival().filter(|_| edge.role == Role::EventWait) else { return false };
    let timeline = &graph.timeline;
    let (source, target) = (graph.nodes.event(edge.source), graph.nodes.event(edge.target));
    let launcher = timeline.launcher(target);
    let is_within_launch = launcher.is_some()
        && [source, rival].iter().all(|&work| timeline.launcher(work) == launcher);
    let apart_ns = timeline.end_ns(source).abs_diff(timeline.end_ns(rival));
    is_within_launch && apart_ns <= TOGETHER_NS
}

/// Returns the segment of an edge, for the given node times.
pub fn segment(graph: &Graph, edge: &Edge, times_ns: &[i64]) -> Segment {
    Segment {
        start_ns: times_ns[edge.source.row()],
        end_ns: times_ns[edge.target.row()],
        kind: edge.kind,
        event: edge.event().map(|order| graph.timeline.event(order)),
        evidence: edge.evidence,
        certainty: edge.certainty(),
        rival: edge.rival().map(|order| graph.timeline.event(order)),
    }
}

fn unknown(start_ns: i64, end_ns: i64, kind: Kind) -> Segment {
    let (evidence, certainty) = (Evidence::None, Certainty::Unknown);
    Segment { start_ns, end_ns, kind, event: None, evidence, certainty, rival: None }
}

impl Path {
    /// Adds a segment before all others, clipped to the window, and merges it with its neighbour if
    /// they differ only in time.
    fn push(&mut self, segment: Segment) {
        let start_ns = segment.start_ns.max(self.start_ns);
        let segment = Segment { start_ns, end_ns: segment.end_ns.min(self.end_ns), ..segment };
        if segment.start_ns >= segment.end_ns {
            return;
        }
        let alike = |other: &Segment| (other.kind, other.event, other.evidence);
        match self.segments.last_mut() {
            Some(behind) if alike(behind) == alike(&segment) => {
                behind.start_ns = segment.start_ns;
                behind.certainty = behind.certainty.max(segment.certainty);
                behind.rival = behind.rival.or(segment.rival);
            }
            _ => self.segments.push(segment),
        }
    }
}

/// Returns the node at which a window ends: that of the candidate that ends last; of several, the
/// first in content order.
pub(super) fn last_node(graph: &Graph, window: &Window, schedule: &Schedule) -> Option<NodeId> {
    last_of(graph, &window.candidates, &|node| schedule.time_ns(node, graph))
}

// Alternative paths, where the accuracy of the clocks does not decide which path is critical.
//
// The timestamps of a device may be shifted by its [`ClockSlack`](crate::graph::ClockSlack)
// without contradicting any record. If a call and an activity that released a start, or ended a
// window, are closer together than that, either may be the last. If typical latencies decide
// between them, the path is not doubtful.
//
// An inferred wait is also doubtful if the launch explains the start as well, or if the awaited
// activity may have ended before the call began that is taken to have waited for it.

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
