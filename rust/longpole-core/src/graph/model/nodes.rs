//! The nodes of the graph: the start and the end of every event.
//!
//! Nodes are rows in order of time, so that a sweep over nodes is a sweep over time and re-timing
//! needs no sort. The default order within one instant suits threads; if an edge requires another
//! order, `instants` changes it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::timeline::Timeline;
use crate::ids::{InColumn, NO_ROW, NodeId, Order, row_in_column};

/// The starts and ends of all events, in order of time. A node is an index into that order.
///
/// Within one instant, ends come first (inner first), then events without duration (start, then
/// end), then starts (outer first).
#[derive(Debug, Clone, Default)]
pub struct Nodes {
    time_ns: Vec<i64>,
    event: Vec<u32>,
    is_end: Vec<bool>,
    start: Vec<u32>,
    end: Vec<u32>,
}

impl Nodes {
    pub(in crate::graph) fn of(timeline: &Timeline) -> Self {
        let n_nodes = 2 * timeline.len();
        let mut nodes = Self {
            time_ns: Vec::with_capacity(n_nodes),
            event: Vec::with_capacity(n_nodes),
            is_end: Vec::with_capacity(n_nodes),
            start: vec![NO_ROW; timeline.len()],
            end: vec![NO_ROW; timeline.len()],
        };
        let mut open = BinaryHeap::new();
        let orders: Vec<_> = timeline.orders().collect();
        for instant in
            orders.chunk_by(|&one, &two| timeline.start_ns(one) == timeline.start_ns(two))
        {
            let now = timeline.start_ns(instant[0]);
            nodes.close_until(now, &mut open, timeline);
            // Content order puts longer events first and those without duration last.
            let lasting = instant.partition_point(|&event| timeline.end_ns(event) > now);
            for &event in &instant[lasting..] {
                nodes.push(now, event, false);
                nodes.push(now, event, true);
            }
            for &event in &instant[..lasting] {
                nodes.push(now, event, false);
                open.push(Reverse((timeline.end_ns(event), Reverse(event))));
            }
        }
        nodes.close_until(i64::MAX, &mut open, timeline);
        nodes
    }

    fn close_until(&mut self, now: i64, open: &mut BinaryHeap<OpenEnd>, timeline: &Timeline) {
        while let Some(&Reverse((end, Reverse(event)))) =
            open.peek().filter(|first| first.0.0 <= now)
        {
            open.pop();
            debug_assert_eq!(end, timeline.end_ns(event));
            self.push(end, event, true);
        }
    }

    fn push(&mut self, time_ns: i64, event: Order, is_end: bool) {
        let node = Some(NodeId::from_row(self.time_ns.len())).in_column();
        let side = if is_end { &mut self.end } else { &mut self.start };
        side[event.row()] = node;
        self.time_ns.push(time_ns);
        self.event.push(Some(event).in_column());
        self.is_end.push(is_end);
    }

    /// Reorders the nodes; `order` lists the old node for each new one.
    pub(super) fn reordered(&self, order: &[NodeId]) -> Self {
        let mut nodes =
            Self { start: self.start.clone(), end: self.end.clone(), ..Self::default() };
        for &node in order {
            nodes.push(self.time_ns(node), self.event(node), self.is_end(node));
        }
        nodes
    }

    /// Returns the nodes of the events that are in a part, and the new node of each; [`NO_ROW`] for
    /// others.
    pub(super) fn part(&self, order_of: &[u32]) -> (Self, Vec<u32>) {
        let n_events = order_of.iter().filter(|&&order| order != NO_ROW).count();
        let mut nodes =
            Self { start: vec![NO_ROW; n_events], end: vec![NO_ROW; n_events], ..Self::default() };
        let mut node_of = vec![NO_ROW; self.len()];
        for node in self.ids() {
            if let Some(event) = Order::from_column(order_of[self.event(node).row()]) {
                node_of[node.row()] = row_in_column(nodes.len());
                nodes.push(self.time_ns(node), event, self.is_end(node));
            }
        }
        (nodes, node_of)
    }

    /// Returns the number of nodes.
    pub fn len(&self) -> usize {
        self.time_ns.len()
    }

    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.time_ns.is_empty()
    }

    /// Returns all nodes, in order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = NodeId> + ExactSizeIterator + Clone {
        (0..self.len()).map(NodeId::from_row)
    }

    /// Returns the time of a node.
    pub fn time_ns(&self, node: NodeId) -> i64 {
        self.time_ns[node.row()]
    }

    /// Returns the column of times.
    pub fn times_ns(&self) -> &[i64] {
        &self.time_ns
    }

    /// Returns the event that starts or ends at a node.
    pub fn event(&self, node: NodeId) -> Order {
        Order::from_row(self.event[node.row()] as usize)
    }

    /// Whether a node is the end of an event.
    pub fn is_end(&self, node: NodeId) -> bool {
        self.is_end[node.row()]
    }

    /// Returns the node at which an event starts.
    pub fn start(&self, event: Order) -> NodeId {
        NodeId::from_row(self.start[event.row()] as usize)
    }

    /// Returns the node at which an event ends.
    pub fn end(&self, event: Order) -> NodeId {
        NodeId::from_row(self.end[event.row()] as usize)
    }
}

/// An event end not yet reached: earliest first, inner before outer.
type OpenEnd = Reverse<(i64, Reverse<Order>)>;

// The nodes of each thread in order of time, for binary search.

/// The starts and ends of the events of each thread.
#[derive(Debug, Clone, Default)]
pub(crate) struct ThreadNodes {
    /// Sorted by lane, then by time.
    nodes: Vec<NodeId>,
    /// Index of the first node of each lane in `nodes`; the last row is the total number.
    first: Vec<usize>,
}

impl ThreadNodes {
    pub(in crate::graph) fn of(timeline: &Timeline, nodes: &Nodes) -> Self {
        let n_lanes = timeline.orders().map(|event| timeline.lane(event) + 1).max().unwrap_or(0);
        let is_of_thread = |event| !timeline.kind(event).is_device_work();
        let mut first = vec![0; n_lanes + 1];
        for event in timeline.orders().filter(|&event| is_of_thread(event)) {
            first[timeline.lane(event) + 1] += 2; // its start and its end
        }
        for lane in 0..n_lanes {
            first[lane + 1] += first[lane];
        }
        let mut next = first.clone();
        let mut found = vec![NodeId::from_row(0); first[n_lanes]];
        for node in nodes.ids() {
            let event = nodes.event(node);
            if is_of_thread(event) {
                let place = &mut next[timeline.lane(event)];
                found[*place] = node;
                *place += 1;
            }
        }
        Self { nodes: found, first }
    }

    /// Returns the last node of a thread at or before a time and the first after it; `None` unless
    /// both exist.
    pub(crate) fn around(
        &self,
        lane: usize,
        time_ns: i64,
        nodes: &Nodes,
    ) -> Option<(NodeId, NodeId)> {
        let of_lane = self.of_lane(lane);
        let behind = of_lane.partition_point(|&node| nodes.time_ns(node) <= time_ns);
        Some((of_lane[behind.checked_sub(1)?], *of_lane.get(behind)?))
    }

    /// Returns the nodes of a thread after one of them, up to another.
    pub(crate) fn between(&self, lane: usize, before: NodeId, until: NodeId) -> &[NodeId] {
        let of_lane = self.of_lane(lane);
        let [first, behind] =
            [before, until].map(|node| of_lane.partition_point(|&other| other <= node));
        of_lane.get(first..behind).unwrap_or_default()
    }

    /// Returns the nodes of a thread, in order; empty for device lanes.
    pub(crate) fn of_lane(&self, lane: usize) -> &[NodeId] {
        match self.first.get(lane..lane + 2) {
            Some(&[first, behind]) => &self.nodes[first..behind],
            _ => &[],
        }
    }

    /// Returns the first node of each thread that has nodes, in order of lane.
    pub(in crate::graph) fn firsts(&self) -> impl Iterator<Item = NodeId> + '_ {
        (0..self.first.len()).filter_map(|lane| self.of_lane(lane).first().copied())
    }
}
