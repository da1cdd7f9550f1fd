//! Edges between the forward and the backward thread, which run in turns.

use crate::graph::facts::Facts;
use crate::graph::model::{Edge, Evidence, Kind, Nodes, Role};
use crate::ids::{NodeId, Order};

/// Adds an edge to the start of the backward thread's work, and one from its end back to the
/// forward thread.
///
/// A gap of the forward thread in which the backward thread works is a wait. Time inside an
/// operator is a wait only if the backward thread is idle at the start and at the end of that time.
pub(super) fn edges(chains: &[Edge], facts: &Facts<'_>) -> Vec<Edge> {
    if facts.autograd.is_empty() {
        return Vec::new();
    }
    let bursts = bursts(chains, facts);
    let mut turns_of = vec![Vec::new(); bursts.len()];
    for (place, pair) in facts.autograd.iter().enumerate() {
        turns_of[pair.forward.row()].push((place, Turns::among(&bursts[pair.backward.row()])));
    }
    let mut found = vec![Vec::new(); facts.autograd.len()];
    for gap in chains.iter().filter(|it| matches!(it.kind, Kind::HostGap | Kind::Operator)) {
        for (place, turns) in &mut turns_of[facts.thread_of(gap)] {
            found[*place].extend(turns.next(gap, facts.nodes).into_iter().flatten());
        }
    }
    found.concat()
}

/// A period in which a thread works without a gap, from node to node.
#[derive(Clone, Copy)]
struct Burst {
    start: NodeId,
    end: NodeId,
}

/// Returns the bursts of each backward thread, in order; empty for other threads.
fn bursts(chains: &[Edge], facts: &Facts<'_>) -> Vec<Vec<Burst>> {
    let n_lanes = facts.tables.lanes.len();
    let mut is_backward = vec![false; n_lanes];
    for pair in &facts.autograd {
        is_backward[pair.backward.row()] = true;
    }
    let mut bursts: Vec<Vec<Burst>> = vec![Vec::new(); n_lanes];
    for edge in chains.iter().filter(|edge| edge.kind != Kind::HostGap) {
        let thread = facts.thread_of(edge);
        if !is_backward[thread] {
            continue;
        }
        match bursts[thread].last_mut() {
            Some(last) if last.end == edge.source => last.end = edge.target,
            _ => bursts[thread].push(Burst { start: edge.source, end: edge.target }),
        }
    }
    bursts
}

/// Matches the gaps of a forward thread with the bursts of a backward thread. Both are in order of
/// time, so each burst is visited once.
#[derive(Clone)]
struct Turns<'b> {
    bursts: &'b [Burst],
    /// Number of bursts that end before the gap begins.
    n_over: usize,
    /// Number of bursts that begin before the gap ends.
    n_begun: usize,
}

impl<'b> Turns<'b> {
    fn among(bursts: &'b [Burst]) -> Self {
        Self { bursts, n_over: 0, n_begun: 0 }
    }

    /// Returns the edges to and from the backward thread for the next gap, if it works in that gap.
    fn next(&mut self, gap: &Edge, nodes: &Nodes) -> [Option<Edge>; 2] {
        let (gap_start_ns, gap_end_ns) = (nodes.time_ns(gap.source), nodes.time_ns(gap.target));
        let is_over = |burst: &Burst| nodes.time_ns(burst.end) <= gap_start_ns;
        let has_begun = |burst: &Burst| nodes.time_ns(burst.start) < gap_end_ns;
        self.n_over += self.bursts[self.n_over..].iter().take_while(|it| is_over(it)).count();
        self.n_begun += self.bursts[self.n_begun..].iter().take_while(|it| has_begun(it)).count();
        if self.n_over >= self.n_begun {
            return [None, None];
        }
        let (first, last) = (self.bursts[self.n_over], self.bursts[self.n_begun - 1]);
        let idle_before = nodes.time_ns(first.start) >= gap_start_ns;
        let idle_after = nodes.time_ns(last.end) <= gap_end_ns;
        if gap.kind == Kind::Operator && !(idle_before && idle_after) {
            return [None, None];
        }
        [
            idle_before.then(|| handover((gap.source, first.start), gap.event())),
            idle_after.then(|| handover((last.end, gap.target), gap.event())),
        ]
    }
}

fn handover(nodes: (NodeId, NodeId), label: Option<Order>) -> Edge {
    Edge::new(nodes, (Kind::Handover, Role::Handover), label, Evidence::Inferred)
}
