//! The graph: timeline, nodes, edges, and counts of unresolved dependencies.
//!
//! Edges that lead back in time, and edges that close a cycle within one instant, are removed and
//! kept separately. In the remaining graph, the node order is topological.

use super::edges::{Edge, Edges};
use super::kinds::Role;
use super::limits::{TYPICAL_PERCENT, UNDISTURBED_NS};
use super::nodes::{Nodes, ThreadNodes};
use super::timeline::{ClockShift, ClockSlack, Timeline};
use super::{instants, limits, nodes};
use crate::ids::{EventId, NodeId, Order};
use crate::names::Names;
use crate::tables::Tables;

/// The dependency graph of a trace. See [`build`](crate::graph::build).
#[derive(Debug, Clone, Default)]
pub struct Graph {
    /// The events of the graph, in content order.
    pub timeline: Timeline,
    /// The starts and ends of these events, in topological order.
    pub nodes: Nodes,
    /// The nodes of each thread.
    pub(crate) thread_nodes: ThreadNodes,
    /// Launch calls whose activity is missing from the trace, in order.
    pub(crate) missing_activities: Vec<Order>,
    /// The edges into each node, the binding one first.
    pub edges: Edges,
    /// Edges that would lead back in time, removed from the graph.
    pub violations: Vec<Edge>,
    /// Zero-length edges that closed a cycle, removed from the graph.
    pub cut: Vec<Edge>,
    /// Devices whose timestamps were shifted because their clock disagrees with the host's.
    pub clock_shifts: Vec<ClockShift>,
    /// For each lane, how much further its device timestamps could be shifted.
    pub(in crate::graph) clock_slacks: Vec<ClockSlack>,
    /// The typical latency of the edges of each role.
    pub(in crate::graph) typical_ns: Vec<i64>,
    /// Counts of dependencies that are unresolved or uncertain.
    pub counts: Counts,
}

/// Declares counts. The public name of each is the name of its field.
macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counts of dependencies that are unresolved or uncertain.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct Counts { $($(#[$doc])* pub $name: u64,)* }

        impl Counts {
            /// Returns all counts with their names, in a fixed order.
            pub fn named(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name),)*]
            }
        }
    };
}

counts! {
    /// Events that end before they begin; left out of the graph.
    negative_duration,
    /// Events without an end, or too far from all others; left out of the graph.
    untimed,
    /// Events of a thread that partially overlap with others.
    crossing,
    /// GPU activities whose launch call is not in the trace.
    unlinked_work,
    /// GPU activities that began before their launch call.
    clock_skew,
    /// GPU activities that began before their launch call by more than clocks usually disagree.
    large_clock_skew,
    /// Edges that would lead back in time.
    violation,
    /// Zero-length edges that closed a cycle.
    circle,
    /// Synchronization records that do not identify what was waited for.
    unknown_sync,
    /// Synchronization records whose call is not in the trace.
    sync_without_call,
    /// Devices whose timestamps were shifted because their clock disagrees with the host's.
    clock_shifts,
    /// Kernels of a multi-device collective that waited for another kernel of it.
    joint_collectives,
    /// Launches whose activity is missing from the trace.
    missing_activities,
    /// Graph nodes that are missing from a launch, although other launches of the graph have them.
    missing_nodes,
    /// Calls that waited for something missing from the trace.
    unrecorded_waits,
    /// Gaps of threads that waited for a queue filled by another thread.
    queue_waits,
    /// Runs of queries that polled for GPU activities.
    polling_loops,
    /// Pageable copies whose call is missing and that a thread waited for.
    missing_copy_calls,
    /// Threads whose first event follows the main thread.
    thread_starts,
    /// Graph launches.
    graph_launches,
    /// Devices whose process also launches on other devices.
    sibling_devices,
}

impl Graph {
    /// Builds a graph of synthetic events, given as `(start, end)`, with the edges that `edges`
    /// returns for their starts and ends.
    pub fn of_events(
        spans: &[(i64, i64)],
        edges: impl FnOnce(&Timeline, &Nodes) -> Vec<Edge>,
    ) -> Self {
        let timeline = Timeline::of_spans(spans);
        let nodes = Nodes::of(&timeline);
        let thread_nodes = nodes::ThreadNodes::of(&timeline, &nodes);
        let edges = edges(&timeline, &nodes);
        Self::of((timeline, nodes, thread_nodes), edges, Counts::default())
    }

    /// Sorts nodes and edges, and removes edges that violate the order.
    pub(in crate::graph) fn of(
        (timeline, nodes, thread_nodes): (Timeline, Nodes, ThreadNodes),
        mut edges: Vec<Edge>,
        counts: Counts,
    ) -> Self {
        let violations: Vec<_> = edges.extract_if(.., |edge| edge.gap_ns(&nodes) < 0).collect();
        let order = instants::order(&edges, &nodes);
        let cut: Vec<_> = order.cut.iter().map(|&place| edges[place]).collect();
        for &place in order.cut.iter().rev() {
            edges.remove(place);
        }
        let mut graph =
            Self { timeline, nodes, thread_nodes, violations, cut, counts, ..Self::default() };
        if let Some(order) = order.nodes {
            graph.reorder(&order, &mut edges);
        }
        graph.edges = Edges::of(edges, &graph.nodes);
        graph.typical_ns = typical_ns(&graph.edges, &graph.nodes);
        graph.count_skew();
        graph
    }

    fn reorder(&mut self, order: &[NodeId], edges: &mut [Edge]) {
        let mut place = vec![NodeId::from_row(0); order.len()];
        for (row, node) in order.iter().enumerate() {
            place[node.row()] = NodeId::from_row(row);
        }
        self.nodes = self.nodes.reordered(order);
        self.thread_nodes = nodes::ThreadNodes::of(&self.timeline, &self.nodes);
        for edge in edges.iter_mut().chain(&mut self.violations).chain(&mut self.cut) {
            edge.source = place[edge.source.row()];
            edge.target = place[edge.target.row()];
        }
    }

    fn count_skew(&mut self) {
        let early_ns =
            |edge: &&Edge| (edge.role == Role::Launch).then(|| -edge.gap_ns(&self.nodes));
        let skews: Vec<_> = self.violations.iter().filter_map(|edge| early_ns(&edge)).collect();
        let large = skews.iter().filter(|&&ns| ns > limits::CLOCK_TOLERANCE_NS);
        self.counts.large_clock_skew = large.count() as u64;
        self.counts.clock_skew = skews.len() as u64;
        self.counts.violation = self.violations.len() as u64;
        self.counts.circle = self.cut.len() as u64;
    }

    /// Returns the typical latency of the edges of a role; 0 if none ever bound.
    pub(crate) fn typical_ns(&self, role: Role) -> i64 {
        self.typical_ns[role as usize]
    }

    /// Returns how much further the timestamps of a GPU activity could be shifted.
    pub(crate) fn clock_slack(&self, work: Order) -> ClockSlack {
        self.clock_slacks.get(self.timeline.lane(work)).copied().unwrap_or_default()
    }

    /// Whether an activity was launched so shortly before its start that the launch, not the
    /// binding edge, explains the latency of the start.
    pub(crate) fn was_on_the_way(&self, launch: &Edge, binding: &Edge) -> bool {
        launch.role.launches()
            && launch.gap_ns(&self.nodes) <= limits::UNDISTURBED_NS
            && binding.role.releases()
            && self.is_oddly_late(binding)
    }

    /// Whether an edge took so much longer than typical that it must have another reason.
    pub(crate) fn is_oddly_late(&self, edge: &Edge) -> bool {
        let typical_ns = self.typical_ns(edge.role);
        typical_ns > 0 && edge.gap_ns(&self.nodes) / limits::ODDLY_LONG > typical_ns
    }

    /// Whether an edge connects two nodes of one lane.
    pub fn is_within_lane(&self, edge: &Edge) -> bool {
        let lane = |node| self.timeline.lane(self.nodes.event(node));
        lane(edge.source) == lane(edge.target)
    }

    /// Returns the end node of an event, if it is in the graph.
    pub fn end_of(&self, event: EventId) -> Option<NodeId> {
        self.timeline.order(event).map(|order| self.nodes.end(order))
    }

    /// Returns the start node of an event, if it is in the graph.
    pub fn start_of(&self, event: EventId) -> Option<NodeId> {
        self.timeline.order(event).map(|order| self.nodes.start(order))
    }
}

// The typical latency of the edges of each role.

/// Returns the low percentile of the binding edges of each role, or 0 if none ever bound. If
/// something else finished shortly before, its latency may be part of the gap, which makes the gap
/// longer. For roles that only bind this way, the shortest gap of any edge counts.
pub(super) fn typical_ns(edges: &Edges, nodes: &Nodes) -> Vec<i64> {
    let times_ns = nodes.times_ns();
    let mut least_ns = vec![i64::MAX; Role::ALL.len()];
    let mut has_bound = vec![false; Role::ALL.len()];
    let mut alone_ns = vec![Vec::new(); Role::ALL.len()];
    for node in nodes.ids() {
        let edges = &edges.as_slice()[edges.range(node)];
        for edge in edges {
            let least_ns = &mut least_ns[edge.role as usize];
            *least_ns = (*least_ns).min(edge.gap_ns(nodes));
        }
        let Some(binding) = edges.first().filter(|edge| !edge.role.is_self_time()) else {
            continue;
        };
        // An activity that starts inside its call may have waited for the host, not for the
        // activity before it.
        let is_inside = edges.iter().any(|edge| edge.role == Role::LaunchInside);
        if is_inside && binding.role == Role::StreamOrder {
            continue;
        }
        has_bound[binding.role as usize] = true;
        let after_ns = |next: &Edge| binding.finished_ns(times_ns) - next.finished_ns(times_ns);
        if edges.get(1).is_none_or(|next| after_ns(next) >= UNDISTURBED_NS) {
            alone_ns[binding.role as usize].push(binding.gap_ns(nodes));
        }
    }
    let least = |role: usize| if has_bound[role] { least_ns[role] } else { 0 };
    let typical = |(role, alone)| low_percentile(alone).unwrap_or_else(|| least(role));
    alone_ns.into_iter().enumerate().map(typical).collect()
}

fn low_percentile(mut gaps_ns: Vec<i64>) -> Option<i64> {
    let place = gaps_ns.len().checked_sub(1)? * TYPICAL_PERCENT / 100;
    Some(*gaps_ns.select_nth_unstable(place).1)
}

// Moves the events of a graph to other times and keeps its edges.

impl Graph {
    /// Returns the graph of the same events at the times in `tables`. Edges keep their roles; of
    /// those into a node, the one that finishes last at the new times binds.
    ///
    /// `tables` are the tables of this graph with other times. The timestamp shifts of devices stay
    /// the same.
    #[must_use]
    pub fn retimed(self, tables: &Tables) -> Self {
        let Self { timeline: before, nodes: nodes_before, edges, counts, .. } = self;
        drop(self.thread_nodes); // a second graph needs memory
        let (timeline, order_of) = before.retimed(tables);
        drop(before);
        let nodes = Nodes::of(&timeline);
        let node_of = |node: NodeId| {
            let order = order_of[nodes_before.event(node).row()];
            if nodes_before.is_end(node) { nodes.end(order) } else { nodes.start(order) }
        };
        let renumber = |edges: &mut [Edge]| {
            for edge in edges {
                *edge = edge.renumbered(&node_of, &|order: Order| order_of[order.row()]);
            }
        };
        let (mut edges, mut violations, mut cut) = (edges.into_rows(), self.violations, self.cut);
        renumber(&mut edges);
        renumber(&mut violations);
        renumber(&mut cut);
        let mut missing_activities: Vec<_> =
            self.missing_activities.iter().map(|order| order_of[order.row()]).collect();
        missing_activities.sort_unstable();
        drop((nodes_before, order_of));
        let thread_nodes = ThreadNodes::of(&timeline, &nodes);
        let graph = Self::of((timeline, nodes, thread_nodes), edges, counts);
        Self {
            missing_activities,
            violations,
            cut,
            counts,
            clock_shifts: self.clock_shifts,
            clock_slacks: self.clock_slacks,
            ..graph
        }
    }

    /// Returns the start and end of a trace event at new node times, as the clocks of the trace
    /// would have recorded them; `None` for events outside the graph.
    pub(crate) fn stamps_ns(&self, event: EventId, times_ns: &[i64]) -> Option<(i64, i64)> {
        let order = self.timeline.order(event)?;
        let shift_ns = self.timeline.clock_shift_ns(order);
        let stamp_ns = |node: NodeId| times_ns[node.row()] - shift_ns;
        Some((stamp_ns(self.nodes.start(order)), stamp_ns(self.nodes.end(order))))
    }
}
