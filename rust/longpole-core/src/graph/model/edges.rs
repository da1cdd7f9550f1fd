//! The edges of the graph: which node depends on which, and why.
//!
//! The rules add edges in any order. They are then sorted by target, binding edge first, so that
//! the walk back reads one row per node. An edge stores no weight: its length follows from the
//! times of its nodes.

use std::cmp::Reverse;

use super::kinds::{Certainty, Evidence, Kind, Role};
use super::nodes::Nodes;
use crate::ids::{InColumn, NO_ROW, NodeId, Order};

/// A dependency: `target` cannot happen before `source`, for the reason given by the role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// The node that must have happened.
    pub source: NodeId,
    /// The node that waits for it.
    pub target: NodeId,
    event: u32,
    rival: u32,
    /// The name of its time on the path.
    pub kind: Kind,
    /// Why it exists.
    pub role: Role,
    /// How it is known.
    pub evidence: Evidence,
}

/// Binding order of two edges into one node, smallest first: the one that finished last, then by
/// role, then by content.
pub(crate) type BindingOrder = (Reverse<i64>, u8, Order, bool, Role);

impl Edge {
    /// Creates an edge whose time belongs to `event`.
    pub fn new(
        (source, target): (NodeId, NodeId),
        (kind, role): (Kind, Role),
        event: Option<Order>,
        evidence: Evidence,
    ) -> Self {
        Self { source, target, event: event.in_column(), rival: NO_ROW, kind, role, evidence }
    }

    /// Returns the same edge with a rival: another activity that may be the real source.
    #[must_use]
    pub fn with_rival(self, rival: Option<Order>) -> Self {
        Self { rival: rival.in_column(), ..self }
    }

    /// Returns the same edge in a graph with other node and event numbers.
    pub(super) fn renumbered(
        &self,
        node_of: &impl Fn(NodeId) -> NodeId,
        order_of: &impl Fn(Order) -> Order,
    ) -> Self {
        Self {
            source: node_of(self.source),
            target: node_of(self.target),
            event: self.event().map(order_of).in_column(),
            rival: self.rival().map(order_of).in_column(),
            ..*self
        }
    }

    /// Returns the rival: another activity that may be the real source.
    pub fn rival(&self) -> Option<Order> {
        Order::from_column(self.rival)
    }

    /// Returns how reliable the edge is, considered alone.
    pub fn certainty(&self) -> Certainty {
        match self.evidence {
            Evidence::None => Certainty::Unknown,
            Evidence::Inferred if self.role == Role::JointCollective => Certainty::Certain,
            Evidence::Inferred if self.role == Role::DeviceOccupied => Certainty::Doubtful,
            Evidence::Inferred if self.rival().is_some() => Certainty::Doubtful,
            Evidence::Inferred => Certainty::Likely,
            Evidence::Order | Evidence::Correlation if self.rival().is_some() => {
                Certainty::Doubtful
            }
            Evidence::Order | Evidence::Correlation | Evidence::Recorded | Evidence::Replayed => {
                Certainty::Certain
            }
        }
    }

    /// Returns the event that has the time of the edge.
    pub fn event(&self) -> Option<Order> {
        Order::from_column(self.event)
    }

    /// Returns the time from source to target; negative for an edge that leads back in time.
    pub fn gap_ns(&self, nodes: &Nodes) -> i64 {
        nodes.time_ns(self.target) - nodes.time_ns(self.source)
    }

    /// Returns how much of the minimum latency has passed at a time.
    pub fn passed_ns(&self, latency_ns: i64, at_ns: i64, nodes: &Nodes) -> i64 {
        at_ns.saturating_sub(nodes.time_ns(self.source)).min(latency_ns).max(0)
    }

    /// Returns when the edge finished, for the given node times.
    pub fn finished_ns(&self, times_ns: &[i64]) -> i64 {
        times_ns[if self.role.is_inside() { self.target } else { self.source }.row()]
    }

    /// Returns the sort key that determines which edge into a node binds, for the given node times.
    pub(crate) fn binding_order(&self, nodes: &Nodes, times_ns: &[i64]) -> BindingOrder {
        (
            Reverse(self.finished_ns(times_ns)),
            self.role.tie_class(),
            nodes.event(self.source),
            nodes.is_end(self.source),
            self.role,
        )
    }
}

/// The edges, grouped by target, binding edge first.
#[derive(Debug, Clone, Default)]
pub struct Edges {
    edges: Vec<Edge>,
    first_of_node: Vec<u32>,
}

impl Edges {
    /// Sorts edges by target and binding order.
    pub(super) fn of(mut edges: Vec<Edge>, nodes: &Nodes) -> Self {
        let first_of_node = first_of_node(&edges, nodes.len());
        // The edges arrive mostly in order of time, which a merge sort exploits; it also needs no
        // second copy.
        edges.sort_by_key(|edge| edge.target);
        Self { edges, first_of_node }.by_binding_order(nodes)
    }

    fn by_binding_order(mut self, nodes: &Nodes) -> Self {
        for node in nodes.ids() {
            let range = self.range(node);
            if range.len() > 1 {
                self.edges[range].sort_by_key(|edge| edge.binding_order(nodes, nodes.times_ns()));
            }
        }
        self
    }

    /// Returns all edges, by target.
    pub(super) fn into_rows(self) -> Vec<Edge> {
        self.edges
    }

    /// Returns the number of edges.
    pub fn len(&self) -> usize {
        self.edges.len()
    }

    /// Whether there are no edges.
    pub fn is_empty(&self) -> bool {
        self.edges.is_empty()
    }

    /// Returns all edges, by target.
    pub fn as_slice(&self) -> &[Edge] {
        &self.edges
    }

    /// Returns the indices of the edges into a node.
    pub fn range(&self, node: NodeId) -> std::ops::Range<usize> {
        self.first_of_node[node.row()] as usize..self.first_of_node[node.row() + 1] as usize
    }

    /// Returns the index of the binding edge of a node; `None` if no edge leads to it.
    pub fn binding(&self, node: NodeId) -> Option<usize> {
        Some(self.range(node)).filter(|range| !range.is_empty()).map(|range| range.start)
    }
}

fn first_of_node(edges: &[Edge], n_nodes: usize) -> Vec<u32> {
    crate::ids::row_in_column(edges.len());
    let mut first = vec![0; n_nodes + 1];
    for edge in edges {
        first[edge.target.row() + 1] += 1;
    }
    for node in 0..n_nodes {
        first[node + 1] += first[node];
    }
    first
}
