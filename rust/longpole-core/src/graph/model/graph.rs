//! The graph itself: timeline, nodes and edges, and what could not be settled.
//!
//! Edges that lead back in time, and those that close a circle within one instant, are
//! taken out and kept apart, so that the nodes stand in an order in which every edge
//! leads onward.

use super::clocks::{ClockShift, ClockSlack};
use super::edges::{Edge, Edges};
use super::kinds::Role;
use super::nodes::Nodes;
use super::thread_nodes::ThreadNodes;
use super::timeline::Timeline;
use super::{instants, latencies, limits};
use crate::ids::{EventId, NodeId, Order};

/// Why every moment of a trace came when it did. See [`build`](crate::graph::build).
#[derive(Debug, Clone, Default)]
pub struct Graph {
    /// The events that take part, in content order.
    pub timeline: Timeline,
    /// Their starts and ends, in an order in which every edge leads onward.
    pub nodes: Nodes,
    /// The nodes of each thread.
    pub(crate) thread_nodes: ThreadNodes,
    /// Calls whose work on a device is not in the trace, in order.
    pub(crate) lost_launches: Vec<Order>,
    /// The edges into each node, the binding one first.
    pub edges: Edges,
    /// Edges that would lead back in time, left out of the graph.
    pub violations: Vec<Edge>,
    /// Edges of no length that closed a circle, left out of the graph.
    pub cut: Vec<Edge>,
    /// The devices whose stamps were moved, for their clocks disagree with the host's.
    pub clock_shifts: Vec<ClockShift>,
    /// How much more the stamps of each lane of a device may be moved.
    pub(in crate::graph) clock_slacks: Vec<ClockSlack>,
    /// What the edges of each role usually take.
    pub(in crate::graph) typical_ns: Vec<i64>,
    /// What could not be settled, or settled with a doubt.
    pub counts: Counts,
}

/// Declares counts that each have a name outside, which is that of the field.
macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counts of what could not be settled, or settled with a doubt.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct Counts { $($(#[$doc])* pub $name: u64,)* }

        impl Counts {
            /// Each count with its name, in a fixed order.
            pub fn named(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name),)*]
            }
        }
    };
}

counts! {
    /// Events that end before they begin: they take no part.
    negative_duration,
    /// Events without an end, or too far from all others: they take no part.
    untimed,
    /// Events of a thread that others cross.
    crossing,
    /// Work on a device whose call is not in the trace.
    unlinked_work,
    /// Work that began before its own call.
    clock_skew,
    /// The same by more than clocks usually disagree.
    large_clock_skew,
    /// Edges that would lead back in time.
    violation,
    /// Edges that closed a circle of no length.
    circle,
    /// Records of synchronisation that do not say what was waited for.
    unknown_sync,
    /// Records of synchronisation whose call is not in the trace.
    sync_without_call,
    /// Devices whose stamps were moved, for their clocks disagree with the host's.
    clock_shifts,
    /// Kernels of a collective of several devices that waited for another one of it.
    joint_collectives,
    /// Launches whose work is not in the trace.
    lost_launches,
    /// Nodes of graphs that are not in the trace, though other launches of the graph have them.
    lost_nodes,
    /// Calls that waited for something that is not in the trace.
    unrecorded_waits,
    /// Gaps of threads that waited for a queue between threads.
    queue_waits,
    /// Runs of queries that waited for work.
    polling_loops,
    /// Copies to pageable memory whose missing call kept a thread waiting.
    lost_copy_calls,
    /// Threads whose first event follows the main thread.
    thread_starts,
    /// Launches of graphs.
    graph_launches,
    /// Devices whose process launches on other devices too.
    sibling_devices,
}

impl Graph {
    /// A graph of events that come from no trace, given as `(start, end)`, with the
    /// edges that `edges` lays among their starts and ends.
    pub fn of_events(
        spans: &[(i64, i64)],
        edges: impl FnOnce(&Timeline, &Nodes) -> Vec<Edge>,
    ) -> Self {
        let timeline = Timeline::of_spans(spans);
        let nodes = Nodes::of(&timeline);
        let thread_nodes = ThreadNodes::of(&timeline, &nodes);
        let edges = edges(&timeline, &nodes);
        Self::of((timeline, nodes, thread_nodes), edges, Counts::default())
    }

    /// Puts nodes and edges in order.
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
        graph.typical_ns = latencies::typical_ns(&graph.edges, &graph.nodes);
        graph.count_skew();
        graph
    }

    fn reorder(&mut self, order: &[NodeId], edges: &mut [Edge]) {
        let mut place = vec![NodeId::from_row(0); order.len()];
        for (row, node) in order.iter().enumerate() {
            place[node.row()] = NodeId::from_row(row);
        }
        self.nodes = self.nodes.reordered(order);
        self.thread_nodes = ThreadNodes::of(&self.timeline, &self.nodes);
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

    /// What an edge of a role usually takes; 0 where none ever bound.
    pub(crate) fn typical_ns(&self, role: Role) -> i64 {
        self.typical_ns[role as usize]
    }

    /// How much more the stamps of a piece of device work may be moved.
    pub(crate) fn clock_slack(&self, work: Order) -> ClockSlack {
        self.clock_slacks.get(self.timeline.lane(work)).copied().unwrap_or_default()
    }

    /// Whether work was launched so shortly before that its launch and not what bound it says how
    /// long it took to begin.
    pub(crate) fn was_on_the_way(&self, launch: &Edge, binding: &Edge) -> bool {
        launch.role.launches()
            && launch.gap_ns(&self.nodes) <= limits::UNDISTURBED_NS
            && binding.role.releases()
            && self.is_oddly_late(binding)
    }

    /// Whether an edge took so much longer than is typical that there is another reason.
    pub(crate) fn is_oddly_late(&self, edge: &Edge) -> bool {
        let typical_ns = self.typical_ns(edge.role);
        typical_ns > 0 && edge.gap_ns(&self.nodes) / limits::ODDLY_LONG > typical_ns
    }

    /// Whether an edge leads from a thread or stream to itself.
    pub fn is_within_lane(&self, edge: &Edge) -> bool {
        let lane = |node| self.timeline.lane(self.nodes.event(node));
        lane(edge.source) == lane(edge.target)
    }

    /// The node at which an event of the trace ends, if it takes part.
    pub fn end_of(&self, event: EventId) -> Option<NodeId> {
        self.timeline.order(event).map(|order| self.nodes.end(order))
    }

    /// The node at which an event of the trace starts, if it takes part.
    pub fn start_of(&self, event: EventId) -> Option<NodeId> {
        self.timeline.order(event).map(|order| self.nodes.start(order))
    }
}
