//! Where the times of nodes are kept while changes are tried.
//!
//! A time is needed only until the last node behind it has come. Nodes share room as variables
//! share registers, so that a pass stays in the cache whatever the length of the trace; a node
//! from which nothing leads to a time that is asked for gets no room, and is left out.

use super::open::Bound;
use crate::graph::Graph;
use crate::ids::{NO_ROW, NodeId, row_in_column};
use crate::path::what_if::Room;

/// The room of each node.
pub(super) struct Slots {
    /// One row for each node that is timed, [`NO_ROW`] where its time is never needed.
    of_node: Vec<u32>,
    n_slots: usize,
}

impl Slots {
    /// Room for the first nodes of a graph. Those that are `asked` for keep theirs.
    pub(super) fn of(
        graph: &Graph,
        n_nodes: usize,
        asked: impl Iterator<Item = NodeId>,
        bounds: &[Bound],
    ) -> Self {
        let mut slots = Self { of_node: vec![NO_ROW; n_nodes], n_slots: 0 };
        let mut free = Vec::new();
        asked.for_each(|node| slots.give(node, &mut free));
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

    /// Gives room to a node that has none, if possible what is free.
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
