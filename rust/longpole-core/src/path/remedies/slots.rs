//! Storage for node times while changes are tried.
//!
//! A time is needed only until the last successor of its node is timed. Nodes share slots as
//! variables share registers, so that a pass stays in the cache for any length of trace. A node
//! that influences no requested time gets no slot and is skipped.

use super::missing_records::Bound;
use crate::graph::Graph;
use crate::ids::{NO_ROW, NodeId, row_in_column};
use crate::path::what_if::Room;

/// The slot of each node.
pub(super) struct Slots {
    /// One row for each timed node; [`NO_ROW`] if its time is never needed.
    of_node: Vec<u32>,
    n_slots: usize,
}

impl Slots {
    /// Assigns slots to the first nodes of a graph. Nodes in `asked` keep theirs.
    pub(super) fn of(graph: &Graph, n_nodes: usize, asked: &[NodeId], bounds: &[Bound]) -> Self {
        let mut slots = Self { of_node: vec![NO_ROW; n_nodes], n_slots: 0 };
        let mut free = Vec::new();
        for &node in asked {
            slots.give(node, &mut free);
        }
        let n_asked = slots.n_slots;
        let edges = graph.edges.as_slice();
        let mut bounds = bounds.iter().rev().peekable();
        for node in graph.nodes.ids().take(n_nodes).rev() {
            while bounds.next_if(|bound| bound.target > node).is_some() {}
            let Some(slot) = Room::of_node(&slots, node) else { continue };
            if slot >= n_asked {
                free.push(row_in_column(slot));
            }
            for edge in &edges[graph.edges.range(node)] {
                slots.give(edge.source, &mut free);
            }
            while let Some(bound) = bounds.next_if(|bound| bound.target == node) {
                slots.give(bound.source, &mut free);
            }
        }
        slots
    }

    /// Assigns a slot to a node that has none, a free one if possible.
    fn give(&mut self, node: NodeId, free: &mut Vec<u32>) {
        let slot = &mut self.of_node[node.row()];
        if *slot == NO_ROW {
            *slot = free.pop().unwrap_or_else(|| {
                self.n_slots += 1;
                row_in_column(self.n_slots - 1)
            });
        }
    }
}

impl Room for Slots {
    fn len(&self) -> usize {
        self.n_slots
    }

    fn of_node(&self, node: NodeId) -> Option<usize> {
        Some(self.slot(node)).filter(|&slot| slot != NO_ROW as usize)
    }

    fn slot(&self, node: NodeId) -> usize {
        self.of_node[node.row()] as usize
    }
}
