//! Missing records, placed as favourably and as unfavourably as the trace allows.
//!
//! An unexplained gap may have any cause that fits, or none that can be removed: the largest gain
//! removes it, the smallest keeps it. An activity whose launch is missing was launched at some time
//! between its stream neighbours: for the smallest gain, as late as possible. A cause that is
//! excluded by an earlier launch is not considered.

use super::causes::Causes;
use super::host_waits::host_waits;
use super::missing_activities::MissingActivities;
use super::missing_calls::{MissingCalls, missing_calls};
use super::question::Question;
use super::unexplained_gaps::UnexplainedGap;
use crate::graph::{Edge, Graph, Kind, Role, limits};
use crate::ids::{NodeId, Order, row_in_column};

/// Placement of missing records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Placing {
    /// As timed in the graph.
    AsTimed,
    /// So that a change gains the least.
    Least,
    /// So that a change gains the most.
    Most,
}

/// An edge with unexplained time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gap {
    pub(super) edge: u32,
    /// Its possible causes.
    pub(super) may: Causes,
    /// The causes of all of its time, regardless of what is unknown.
    pub(super) must: Causes,
}

/// Keeps a node after another one: an additional edge for the smallest gains.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bound {
    pub(super) target: NodeId,
    pub(super) source: NodeId,
    pub(super) least_ns: i64,
    /// Changes that remove the cause of this bound.
    pub(super) unless: Causes,
}

/// Everything that is missing in the windows.
#[derive(Debug, Clone, Default)]
pub(super) struct MissingRecords {
    pub(super) gaps: Vec<Gap>,
    /// Sorted by target.
    pub(super) bounds: Vec<Bound>,
    /// Number of activities in the windows whose launch is missing.
    pub(super) n_unlinked: usize,
    /// Whether launches of the trace lack their activity.
    pub(super) has_missing_activities: bool,
    /// The start of the first window, if a record before it is missing: it may have delayed the
    /// start, which then stays fixed under any change.
    pub(super) held_ns: Option<i64>,
    /// Edges of threads that may be waits for other threads, in order.
    pub(super) host_waits: Vec<u32>,
}

/// The reciprocal of the share of the windows below which gaps are ignored.
const NEGLIGIBLE: i64 = 200;

impl MissingRecords {
    pub(super) fn of(question: &Question<'_>) -> Self {
        let (graph, windows) = (question.graph, &question.scope.windows);
        let (Some(first), Some(last)) = (windows.first(), windows.last()) else {
            return Self::default();
        };
        let host_waits = host_waits(graph, question.tables);
        let missing_calls = missing_calls(question);
        if !is_any_missing(graph) && missing_calls.is_empty() && host_waits.is_empty() {
            return Self::default();
        }
        let within = (first.start_ns, last.end_ns);
        let launchers = Launchers::of(graph);
        let missing_activities = MissingActivities::of(question, &missing_calls);
        let mut open = Self { host_waits, ..Self::default() };
        let gaps_ns =
            open.add_gaps(graph, &missing_activities, within) + open.add_host_waits(graph, within);
        open.add_missing_calls((&missing_calls, missing_activities.of_device), graph, within);
        open.add_missing_activities(question, &missing_activities, within);
        open.n_unlinked = open.add_late_launches(graph, &launchers, within);
        open.has_missing_activities =
            !graph.missing_activities.is_empty() || !missing_calls.is_empty();
        let is_all_recorded = open.n_unlinked == 0 && !open.has_missing_activities;
        if is_all_recorded && gaps_ns < (within.1 - within.0) / NEGLIGIBLE {
            return Self::default();
        }
        let is_held =
            first.fixed_start_ns().is_none() && missing_activities.is_any_before(first.start_ns);
        open.held_ns = is_held.then_some(first.start_ns);
        open.bounds.retain(|bound| bound.source < bound.target);
        open.bounds.sort_by_key(|bound| bound.target);
        open
    }

    /// Whether nothing is missing in the windows.
    pub(super) fn is_empty(&self) -> bool {
        self.gaps.is_empty() && self.bounds.is_empty()
    }

    /// Adds the gaps of the windows. Returns their time.
    fn add_gaps(
        &mut self,
        graph: &Graph,
        missing: &MissingActivities,
        (start_ns, end_ns): (i64, i64),
    ) -> i64 {
        let edges = graph.edges.as_slice();
        let of_missing = missing.all().with(Causes::KERNELS);
        let last_works = LastWorks::of(graph);
        let mut time_ns = 0;
        for (number, edge) in edges.iter().enumerate() {
            let target_ns = graph.nodes.time_ns(edge.target);
            if !is_gap(edge) || target_ns <= start_ns || target_ns > end_ns {
                continue;
            }
            time_ns += edge.gap_ns(&graph.nodes).max(0);
            let of_edge = if edge.kind == Kind::Unrecorded && edge.role != Role::MissingNode {
                of_missing
            } else {
                missing.of_device
            };
            let (may, must) = causes(edge, graph, of_edge);
            self.gaps.push(Gap { edge: row_in_column(number), may, must });
            self.add_calls_beside(number, may, graph);
            let before = before(edge, graph).or_else(|| last_works.by(edge.target));
            if let Some(source) = before {
                let least_ns = target_ns - graph.nodes.time_ns(source);
                self.bounds.push(Bound { target: edge.target, source, least_ns, unless: must });
            }
        }
        time_ns
    }

    /// Adds time outside calls that may be a wait for another thread, and thus for anything that
    /// thread waits for; the wait remains without host work. Returns their time.
    fn add_host_waits(&mut self, graph: &Graph, (start_ns, end_ns): (i64, i64)) -> i64 {
        let may = Causes::DEVICE.with(Causes::BLOCKING_CALLS).with(Causes::STREAM_WAITS);
        let must = Causes::default();
        let mut time_ns = 0;
        for &number in &self.host_waits {
            let edge = &graph.edges.as_slice()[number as usize];
            let target_ns = graph.nodes.time_ns(edge.target);
            if target_ns <= start_ns || target_ns > end_ns {
                continue;
            }
            let least_ns = edge.gap_ns(&graph.nodes);
            time_ns += least_ns;
            self.gaps.push(Gap { edge: number, may, must });
            let (target, source) = (edge.target, edge.source);
            self.bounds.push(Bound { target, source, least_ns, unless: must });
        }
        time_ns
    }

    /// Adds the call before the gap that ends it: what the call waited for is unknown and may be
    /// what is changed.
    fn add_calls_beside(&mut self, gap: usize, may: Causes, graph: &Graph) {
        let edges = graph.edges.as_slice();
        let target = edges[gap].target;
        if graph.timeline.kind(graph.nodes.event(target)).is_device_work() {
            return;
        }
        let is_call = |place: &usize| {
            let edge = &edges[*place];
            *place != gap && edge.role == Role::ThreadOrder && edge.kind == Kind::Runtime
        };
        let beside = graph.edges.range(target).filter(is_call);
        let must = Causes::default();
        self.gaps.extend(beside.map(|place| Gap { edge: row_in_column(place), may, must }));
    }

    /// Adds the time of threads in which calls are missing, because these may have waited.
    fn add_missing_calls(
        &mut self,
        (missing_calls, of_device): (&[MissingCalls], Causes),
        graph: &Graph,
        (start_ns, end_ns): (i64, i64),
    ) {
        let (may, must) = (of_device.with(Causes::BLOCKING_CALLS), Causes::default());
        for missing in missing_calls {
            let [from_ns, until_ns] =
                [missing.before, missing.behind].map(|node| graph.nodes.time_ns(node));
            if until_ns <= start_ns || from_ns > end_ns {
                continue;
            }
            let gap = |place| Gap { edge: row_in_column(place), may, must };
            self.gaps.extend(missing.waits(graph).into_iter().map(gap));
            self.bounds.push(Bound {
                target: missing.behind,
                source: missing.before,
                least_ns: (until_ns - from_ns - missing.host_ns).max(0),
                unless: must,
            });
        }
    }

    /// Adds what missing activities of launches may have delayed: the next activity on each stream,
    /// and the next synchronization call of the thread. A missing activity may have kept the device
    /// busy until then, from its launch or from the last activity before.
    fn add_missing_activities(
        &mut self,
        question: &Question<'_>,
        missing: &MissingActivities,
        (start_ns, end_ns): (i64, i64),
    ) {
        let graph = question.graph;
        if missing.is_empty() {
            return;
        }
        let (timeline, nodes) = (&graph.timeline, &graph.nodes);
        let last_works = LastWorks::of(graph);
        let is_within = |node: NodeId| (start_ns..end_ns).contains(&(nodes.time_ns(node) - 1));
        for work in timeline.orders().filter(|&work| timeline.kind(work).is_device_work()) {
            let target = nodes.start(work);
            let Some(call) = timeline.launcher(work).filter(|_| is_within(target)) else {
                continue;
            };
            let before = before_node(target, graph);
            let after_ns = before.map_or(i64::MIN, |it| timeline.submitted_ns(nodes.event(it)));
            let Some((first, may)) =
                missing.between(timeline.lane(call), after_ns, timeline.start_ns(call))
            else {
                continue;
            };
            self.add_missing((first, may), before, target, graph);
        }
        for call in missing.waits(question) {
            let target = nodes.end(call.0);
            if is_within(target) {
                let before = last_works.by(target);
                self.add_missing(
                    (call.1, call.2.with(Causes::BLOCKING_CALLS)),
                    before,
                    target,
                    graph,
                );
            }
        }
    }

    /// Marks the edge that binds a node as possibly caused by a missing activity, and keeps the
    /// node after that activity.
    fn add_missing(
        &mut self,
        (first, may): (NodeId, Causes),
        before: Option<NodeId>,
        target: NodeId,
        graph: &Graph,
    ) {
        let nodes = &graph.nodes;
        let Some(binding) = graph.edges.binding(target) else { return };
        let edge = &graph.edges.as_slice()[binding];
        let is_open = matches!(
            edge.role,
            Role::StreamOrder | Role::Launch | Role::LaunchInside | Role::Sync | Role::ThreadOrder
        );
        if is_open {
            self.gaps.push(Gap { edge: row_in_column(binding), may, must: Causes::default() });
        }
        let is_known = edge.kind == Kind::Unrecorded;
        let is_kernel = is_known && may.without(Causes::STREAM_WAITS) == Causes::KERNELS;
        let unless = if is_kernel { Causes::KERNELS } else { Causes::default() };
        let from_ns = before.map_or(i64::MIN, |it| nodes.time_ns(it));
        let busy_ns = nodes.time_ns(target) - from_ns.max(nodes.time_ns(first));
        for source in before.into_iter().chain([first]) {
            self.bounds.push(Bound { target, source, least_ns: busy_ns.max(0), unless });
        }
    }

    /// Keeps each activity without a launcher after the last node of its thread before it must have
    /// been launched, or at its place if no call is recorded. Returns the number of such
    /// activities.
    fn add_late_launches(
        &mut self,
        graph: &Graph,
        launchers: &Launchers,
        (start_ns, end_ns): (i64, i64),
    ) -> usize {
        let timeline = &graph.timeline;
        let mut n_unlinked = 0;
        for work in timeline.orders().filter(|&work| timeline.kind(work).is_device_work()) {
            let begun_ns = timeline.start_ns(work);
            if timeline.launcher(work).is_some() || begun_ns <= start_ns || begun_ns > end_ns {
                continue;
            }
            n_unlinked += 1;
            let launched_ns = timeline.submitted_ns(work).min(begun_ns - limits::USUAL_LAUNCH_NS);
            let target = graph.nodes.start(work);
            self.open_to_host(work, target, graph);
            let Some(thread) = launchers.of_lane(timeline.lane(work)) else {
                self.add_unseen_host(target, graph);
                continue;
            };
            if let Some((source, _)) = graph.thread_nodes.around(thread, launched_ns, &graph.nodes)
            {
                let least_ns = limits::USUAL_LAUNCH_NS.min(begun_ns - graph.nodes.time_ns(source));
                self.bounds.push(Bound { target, source, least_ns, unless: Causes::default() });
            }
        }
        n_unlinked
    }
}

impl MissingRecords {
    /// Keeps an activity at its place unless host work is removed: if no call is recorded at all,
    /// the host may have taken all the time until then, regardless of the device.
    fn add_unseen_host(&mut self, target: NodeId, graph: &Graph) {
        let Some(source) = graph.nodes.ids().next() else { return };
        let least_ns = graph.nodes.time_ns(target) - graph.nodes.time_ns(source);
        self.bounds.push(Bound { target, source, least_ns, unless: Causes::HOST });
    }

    /// Adds the host as a possible cause of the gap before an activity without a launcher, if it
    /// may have been launched in the gap.
    fn open_to_host(&mut self, work: Order, target: NodeId, graph: &Graph) {
        let Some(binding) = graph.edges.binding(target) else { return };
        let edge = &graph.edges.as_slice()[binding];
        let may_be = graph.timeline.submitted_ns(work) > graph.nodes.time_ns(edge.source);
        if may_be && matches!(edge.role, Role::StreamOrder | Role::NoReason) {
            let (may, must) = (Causes::HOST, Causes::default());
            self.gaps.push(Gap { edge: row_in_column(binding), may, must });
        }
    }

    /// Removes what depends on an unexplained gap that the verdict leaves out.
    pub(super) fn without(&mut self, unexplained_gaps: &[UnexplainedGap], graph: &Graph) {
        let edges = graph.edges.as_slice();
        let targets: Vec<_> =
            unexplained_gaps.iter().map(|gap| edges[gap.edge as usize].target).collect();
        self.bounds.retain(|bound| !targets.contains(&bound.target));
        self.gaps
            .retain(|gap| unexplained_gaps.iter().all(|unexplained| gap.edge != unexplained.edge));
    }
}

/// Whether anything may be missing from the trace. In most traces nothing is, and the detailed
/// search is skipped.
fn is_any_missing(graph: &Graph) -> bool {
    graph.counts.unlinked_work > 0
        || !graph.missing_activities.is_empty()
        || graph.edges.as_slice().iter().any(is_gap)
}

/// Whether the time of an edge has no recorded cause.
fn is_gap(edge: &Edge) -> bool {
    matches!(edge.kind, Kind::Unexplained | Kind::Unrecorded | Kind::GraphGap)
}

/// Returns the possible and the certain causes of a gap.
fn causes(edge: &Edge, graph: &Graph, of_device: Causes) -> (Causes, Causes) {
    let (timeline, work) = (&graph.timeline, graph.nodes.event(edge.target));
    if edge.kind == Kind::GraphGap {
        // The replay is one activity of known length, and may hide nodes between the recorded ones.
        return (Causes::KERNELS, Causes::default());
    }
    if !timeline.kind(work).is_device_work() {
        return (of_device.with(Causes::BLOCKING_CALLS), Causes::default());
    }
    let from_ns = graph.nodes.time_ns(edge.source);
    let was_launched = match timeline.launcher(work) {
        Some(_) => true,
        None => timeline.submitted_ns(work) <= from_ns,
    };
    let waits = of_device.with(Causes::STREAM_WAITS);
    let may = if was_launched { waits } else { waits.with(Causes::HOST) };
    let is_kernel = edge.kind == Kind::Unrecorded && !of_device.meets(Causes::COMMUNICATION);
    (may, if is_kernel { Causes::KERNELS } else { Causes::default() })
}

/// Returns the activity that ended before a late start on the same stream.
fn before(edge: &Edge, graph: &Graph) -> Option<NodeId> {
    before_node(edge.target, graph)
}

fn before_node(target: NodeId, graph: &Graph) -> Option<NodeId> {
    let edges = &graph.edges.as_slice()[graph.edges.range(target)];
    let in_order = |edge: &&Edge| matches!(edge.role, Role::StreamOrder | Role::GraphOrder);
    edges.iter().find(in_order).map(|edge| edge.source)
}

/// The ends of GPU activities, in order of time.
struct LastWorks(Vec<NodeId>);

impl LastWorks {
    fn of(graph: &Graph) -> Self {
        let is_work =
            |node: &NodeId| graph.timeline.kind(graph.nodes.event(*node)).is_device_work();
        Self(graph.nodes.ids().filter(|node| graph.nodes.is_end(*node) && is_work(node)).collect())
    }

    /// Returns the last activity to end before a node.
    fn by(&self, target: NodeId) -> Option<NodeId> {
        let behind = self.0.partition_point(|&node| node < target);
        behind.checked_sub(1).map(|place| self.0[place])
    }
}

/// The thread that launches on each device lane.
struct Launchers {
    of_lane: Vec<Option<usize>>,
    usual: Option<usize>,
}

impl Launchers {
    fn of(graph: &Graph) -> Self {
        let timeline = &graph.timeline;
        let mut of_lane: Vec<Option<usize>> = Vec::new();
        let mut counts: Vec<usize> = Vec::new();
        let count = |counts: &mut Vec<usize>, thread: usize| {
            counts.resize(counts.len().max(thread + 1), 0);
            counts[thread] += 1;
        };
        for work in timeline.orders().filter(|&work| timeline.kind(work).is_device_work()) {
            let Some(call) = timeline.launcher(work) else { continue };
            let (lane, thread) = (timeline.lane(work), timeline.lane(call));
            of_lane.resize(of_lane.len().max(lane + 1), None);
            of_lane[lane] = Some(thread);
            count(&mut counts, thread);
        }
        if counts.is_empty() {
            // Otherwise the thread with the most calls.
            for call in timeline.orders().filter(|&event| timeline.kind(event).is_call()) {
                count(&mut counts, timeline.lane(call));
            }
        }
        let usual = (0..counts.len()).max_by_key(|&thread| counts[thread]);
        Self { of_lane, usual }
    }

    fn of_lane(&self, lane: usize) -> Option<usize> {
        self.of_lane.get(lane).copied().flatten().or(self.usual)
    }
}
