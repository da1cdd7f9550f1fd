//! The critical path of a run: parts within ranks, and transfers between them.

use super::model::{BoundaryKind, ROOT};
use super::solve::{CALL, Joint, Solution};
use crate::graph::Graph;
use crate::ids::{NodeId, row_in_column};
use crate::names::named;
use crate::path::{Segment, segment};

named! {
    /// The kind of a part of the path.
    LegKind {
        /// Within the rank, between two nodes of its graph.
        Within "within",
        /// A transfer, from the arrival of the last member.
        Transfer "transfer",
        /// Before the first event of the rank.
        BeforeFirst "before_first",
    }
}

/// A part of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leg {
    /// Index of the rank.
    pub rank: u32,
    /// Its kind.
    pub kind: LegKind,
    /// Source node in the graph of the rank; [`ROOT`] for its beginning.
    pub source: u32,
    /// Target node; for a transfer, the event of the member that came last.
    pub target: u32,
    /// Start, in common time.
    pub start_ns: i64,
    /// End, in common time.
    pub end_ns: i64,
    /// The call, for a transfer.
    pub call: Option<u32>,
}

/// Returns the path to the completion of a step, or of the run (`None`), back to `start_ns`.
pub fn route(joint: Joint<'_>, solution: &Solution, step: Option<i64>, start_ns: i64) -> Vec<Leg> {
    let walk = Walk {
        joint,
        solution,
        calls: call_of_member(joint),
        arrivals: Arrivals::of(joint),
        start_ns,
    };
    let mut legs = Vec::new();
    let mut next = last_completion(joint, solution, step);
    while let Some((rank, node)) = next.filter(|&(rank, node)| walk.is_inside(rank, node)) {
        if solution.reached_from[solution.first[rank] + node] == CALL {
            let Some((transfer, arrival)) = walk.transfer(rank, node) else { break };
            legs.push(transfer);
            next = Some(arrival);
        } else {
            let (time_range, before) = walk.time_range(rank, node);
            legs.extend(Some(time_range).filter(|leg| leg.source != leg.target));
            next = before.map(|before| (rank, before));
        }
    }
    legs.reverse();
    legs
}

/// The state of the walk back along the path.
struct Walk<'a> {
    joint: Joint<'a>,
    solution: &'a Solution,
    calls: Vec<Vec<Option<u32>>>,
    arrivals: Arrivals,
    start_ns: i64,
}

impl Walk<'_> {
    fn is_inside(&self, rank: usize, node: usize) -> bool {
        self.solution.time_ns(rank, node) > self.start_ns
    }

    /// Returns the transfer that ends at a node, and the arrival of the member that came last.
    fn transfer(&self, rank: usize, node: usize) -> Option<(Leg, (usize, usize))> {
        let BoundaryKind::End(member) = self.joint.ranks[rank].reduced.nodes[node].kind else {
            return None;
        };
        let call = *self.calls[rank].get(member as usize)?.as_ref()?;
        let end_ns = self.solution.time_ns(rank, node);
        let last = self.solution.last_of(self.joint, &self.arrivals, call, rank, end_ns);
        let (last_rank, last_member) = self.joint.calls[call as usize].members[last];
        let rank = last_rank as usize;
        let arrival = self.arrivals.node(rank, last_member)?;
        let leg = Leg {
            rank: last_rank,
            kind: LegKind::Transfer,
            source: ROOT,
            target: self.joint.ranks[rank].members[last_member as usize].event,
            start_ns: self.solution.time_ns(rank, arrival),
            end_ns,
            call: Some(call),
        };
        Some((leg, (rank, arrival)))
    }

    /// Returns the part within a rank that ends at a node, and the node at its beginning.
    fn time_range(&self, rank: usize, node: usize) -> (Leg, Option<usize>) {
        let nodes = &self.joint.ranks[rank].reduced.nodes;
        let from = self.solution.reached_from[self.solution.first[rank] + node];
        let before = (from != ROOT).then_some(from as usize);
        let leg = Leg {
            rank: row_in_column(rank),
            kind: LegKind::Within,
            source: before.map_or(ROOT, |before| nodes[before].node),
            target: nodes[node].node,
            start_ns: before.map_or(self.start_ns, |before| self.solution.time_ns(rank, before)),
            end_ns: self.solution.time_ns(rank, node),
            call: None,
        };
        (leg, before)
    }
}

impl Solution {
    /// Returns the member of a call whose arrival the end on `rank` waited for.
    fn last_of(
        &self,
        joint: Joint<'_>,
        arrivals: &Arrivals,
        call: u32,
        rank: usize,
        end_ns: i64,
    ) -> usize {
        let members = &joint.calls[call as usize].members;
        let arrived = |&(its, member): &(u32, u32)| {
            let node = arrivals.node(its as usize, member);
            node.map_or(i64::MIN, |node| self.time_ns(its as usize, node))
        };
        let times: Vec<_> = members.iter().map(arrived).collect();
        let counted =
            (0..members.len()).filter(|&it| times[it] <= end_ns || members[it].0 as usize == rank);
        counted.max_by_key(|&it| (times[it], std::cmp::Reverse(it))).unwrap_or(0)
    }
}

/// Returns, for each call, how much later its last member arrives than the median one.
pub fn lateness(joint: Joint<'_>, solution: &Solution) -> Vec<i64> {
    let arrivals = Arrivals::of(joint);
    let late_ns = |call: &super::model::Call| {
        let arrived = |&(rank, member): &(u32, u32)| {
            let node = arrivals.node(rank as usize, member)?;
            Some(solution.time_ns(rank as usize, node))
        };
        let mut times: Vec<_> = call.members.iter().filter_map(arrived).collect();
        times.sort_unstable();
        let median = times.get(times.len().saturating_sub(1) / 2).copied().unwrap_or(0);
        times.last().map_or(0, |last| last - median)
    };
    joint.calls.iter().map(late_ns).collect()
}

/// The arrival nodes of the members of each rank.
struct Arrivals(Vec<Vec<(u32, u32)>>);

impl Arrivals {
    fn of(joint: Joint<'_>) -> Self {
        Self(joint.ranks.iter().map(|rank| rank.nodes_of_members()).collect())
    }

    fn node(&self, rank: usize, member: u32) -> Option<usize> {
        let (node, _) = self.0[rank][member as usize];
        (node != ROOT).then_some(node as usize)
    }
}

fn call_of_member(joint: Joint<'_>) -> Vec<Vec<Option<u32>>> {
    let mut found: Vec<_> = joint.ranks.iter().map(|rank| vec![None; rank.members.len()]).collect();
    for (place, call) in joint.calls.iter().enumerate() {
        for &(rank, member) in &call.members {
            found[rank as usize][member as usize] = Some(row_in_column(place));
        }
    }
    found
}

/// Returns the rank that completes a step last, and the node at which it does.
fn last_completion(
    joint: Joint<'_>,
    solution: &Solution,
    step: Option<i64>,
) -> Option<(usize, usize)> {
    let nodes = joint.ranks.iter().enumerate();
    let nodes = nodes.filter_map(|(rank, it)| Some((rank, it.completion(step)?)));
    nodes.max_by_key(|&(rank, node)| (solution.time_ns(rank, node), std::cmp::Reverse(rank)))
}

/// A part of the path within one rank, from one node of its graph to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop {
    /// Source node; [`ROOT`] for the first event to which the path leads.
    pub source: u32,
    /// Target node.
    pub target: u32,
}

/// Returns the segments of such a part, in order of time, as observed.
pub fn expand(graph: &Graph, hop: Hop) -> Vec<Segment> {
    let mut node = NodeId::from_row(hop.target as usize);
    let mut found: Vec<Segment> = Vec::new();
    while hop.source == ROOT || node.row() != hop.source as usize {
        let Some(number) = graph.edges.binding(node) else { break };
        let edge = &graph.edges.as_slice()[number];
        push(&mut found, segment(graph, edge, graph.nodes.times_ns()));
        node = edge.source;
    }
    found.reverse();
    found
}

/// Adds a segment before all others; neighbours that differ only in time are merged.
fn push(found: &mut Vec<Segment>, segment: Segment) {
    if segment.start_ns == segment.end_ns {
        return;
    }
    let alike = |it: &Segment| (it.kind, it.event, it.evidence);
    match found.last_mut() {
        Some(behind) if alike(behind) == alike(&segment) => {
            behind.start_ns = segment.start_ns;
            behind.certainty = behind.certainty.max(segment.certainty);
        }
        _ => found.push(segment),
    }
}
