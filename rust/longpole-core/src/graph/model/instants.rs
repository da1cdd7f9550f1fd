//! Orders the nodes of one instant by the edges between them.
//!
//! The default order of nodes nearly always respects all edges. If an edge leads backward in it,
//! the nodes of that instant are reordered. If the edges of an instant form a cycle, its weakest
//! edge is cut.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;

use super::edges::Edge;
use super::kinds::Evidence;
use super::nodes::Nodes;
use crate::ids::NodeId;

/// A topological order of the nodes, and the edges cut to get it.
pub(super) struct NodeOrder {
    /// The nodes in that order; `None` if the existing order is already topological.
    pub(super) nodes: Option<Vec<NodeId>>,
    /// Indices of the zero-length edges that closed a cycle, sorted.
    pub(super) cut: Vec<usize>,
}

/// Orders the nodes topologically. No edge may lead back in time.
pub(super) fn order(edges: &[Edge], nodes: &Nodes) -> NodeOrder {
    let mut of_instant: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
    for edge in edges.iter().filter(|edge| edge.source >= edge.target) {
        of_instant.entry(nodes.time_ns(edge.target)).or_default();
    }
    if of_instant.is_empty() {
        return NodeOrder { nodes: None, cut: Vec::new() };
    }
    for (place, edge) in edges.iter().enumerate() {
        if nodes.time_ns(edge.source) == nodes.time_ns(edge.target)
            && let Some(places) = of_instant.get_mut(&nodes.time_ns(edge.target))
        {
            places.push(place);
        }
    }
    let mut order: Vec<_> = nodes.ids().collect();
    let mut cut = Vec::new();
    for (time_ns, places) in of_instant {
        let first = nodes.times_ns().partition_point(|&time| time < time_ns);
        let behind = nodes.times_ns().partition_point(|&time| time <= time_ns);
        let mut instant = Instant::new(first..behind, edges, nodes, places);
        order[first..behind].copy_from_slice(&instant.order());
        cut.append(&mut instant.cut);
    }
    cut.sort_unstable();
    NodeOrder { nodes: Some(order), cut }
}

/// The nodes of one instant. A node is numbered by its distance from the first of them.
struct Instant<'a> {
    first: usize,
    edges: &'a [Edge],
    nodes: &'a Nodes,
    /// For each node, the indices of its outgoing edges.
    leaving: Vec<Vec<usize>>,
    /// For each node, the number of incoming edges from remaining nodes.
    n_entering: Vec<usize>,
    is_left: Vec<bool>,
    cut: Vec<usize>,
}

impl<'a> Instant<'a> {
    fn new(range: Range<usize>, edges: &'a [Edge], nodes: &'a Nodes, places: Vec<usize>) -> Self {
        let (first, count) = (range.start, range.len());
        let mut leaving = vec![Vec::new(); count];
        let mut n_entering = vec![0; count];
        for place in places {
            leaving[edges[place].source.row() - first].push(place);
            n_entering[edges[place].target.row() - first] += 1;
        }
        Self {
            first,
            edges,
            nodes,
            leaving,
            n_entering,
            is_left: vec![true; count],
            cut: Vec::new(),
        }
    }

    fn order(&mut self) -> Vec<NodeId> {
        let count = self.is_left.len();
        let mut free: BinaryHeap<_> =
            (0..count).filter(|&node| self.n_entering[node] == 0).map(Reverse).collect();
        let mut order = Vec::with_capacity(count);
        while order.len() < count {
            let released = if let Some(Reverse(node)) = free.pop() {
                self.is_left[node] = false;
                order.push(NodeId::from_row(self.first + node));
                std::mem::take(&mut self.leaving[node])
            } else {
                vec![self.cut_weakest()]
            };
            for place in released {
                let target = self.target(place);
                self.n_entering[target] -= 1;
                if self.n_entering[target] == 0 {
                    free.push(Reverse(target));
                }
            }
        }
        order
    }

    fn target(&self, place: usize) -> usize {
        self.edges[place].target.row() - self.first
    }

    /// Removes the weakest edge of all cycles: inferred edges first, then launches, then waits, and
    /// the order of a lane last.
    fn cut_weakest(&mut self) -> usize {
        let circle_of = self.circles();
        let weakness = |place: &usize| {
            let edge = &self.edges[*place];
            let inferred = edge.evidence == Evidence::Inferred;
            let order = edge.binding_order(self.nodes, self.nodes.times_ns());
            (inferred, edge.role.tie_class(), order)
        };
        let closes = |node: usize, place: usize| circle_of[node] == circle_of[self.target(place)];
        let (place, node) = (0..self.is_left.len())
            .filter(|&node| self.is_left[node])
            .flat_map(|node| self.leaving[node].iter().map(move |&place| (place, node)))
            .filter(|&(place, node)| closes(node, place))
            .max_by_key(|(place, _)| weakness(place))
            .expect("where no node is free, those left form a circle");
        self.leaving[node].retain(|&other| other != place);
        self.cut.push(place);
        place
    }

    /// Returns the strongly connected component of each remaining node (Kosaraju's algorithm, with
    /// explicit stacks).
    fn circles(&self) -> Vec<usize> {
        let count = self.is_left.len();
        let mut entering = vec![Vec::new(); count];
        for node in (0..count).filter(|&node| self.is_left[node]) {
            for &place in &self.leaving[node] {
                entering[self.target(place)].push(node);
            }
        }
        let mut circle_of = vec![usize::MAX; count];
        for root in self.finished_last() {
            let mut todo = vec![root];
            while let Some(node) = todo.pop() {
                if circle_of[node] == usize::MAX {
                    circle_of[node] = root;
                    todo.extend(
                        entering[node].iter().filter(|&&before| circle_of[before] == usize::MAX),
                    );
                }
            }
        }
        circle_of
    }

    /// Returns the remaining nodes, in reverse order of completion of a depth-first search.
    fn finished_last(&self) -> Vec<usize> {
        let mut seen = vec![false; self.is_left.len()];
        let mut finished = Vec::new();
        for root in (0..self.is_left.len()).filter(|&node| self.is_left[node]) {
            let mut todo = vec![(root, false)];
            while let Some((node, is_done)) = todo.pop() {
                if is_done {
                    finished.push(node);
                } else if !seen[node] {
                    seen[node] = true;
                    todo.push((node, true));
                    todo.extend(
                        self.leaving[node].iter().map(|&place| (self.target(place), false)),
                    );
                }
            }
        }
        finished.reverse();
        finished
    }
}
