//! The critical path of a run, as stretches within ranks and transfers between them.

use super::model::{BoundaryKind, ROOT};
use super::solve::{CALL, Joint, Solution};
use crate::ids::row_in_column;
use crate::names::named;

named! {
    /// What a part of the path is.
    LegKind {
        /// A stretch within the rank, between two nodes of its graph.
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
    /// The place of the rank.
    pub rank: u32,
    /// What it is.
    pub kind: LegKind,
    /// From the node of the graph of the rank; [`ROOT`] for its beginning.
    pub source: u32,
    /// To this node; of a transfer, the event of the member that came last.
    pub target: u32,
    /// When it begins, on the common clock.
    pub start_ns: i64,
    /// When it ends.
    pub end_ns: i64,
    /// The call of a transfer.
    pub call: Option<u32>,
}

/// The path to the completion of a step, or with none of the run, back to `start_ns`.
pub fn route(joint: Joint<'_>, solution: &Solution, step: Option<i64>, start_ns: i64) -> Vec<Leg> {
    let calls = call_of_member(joint);
    let arrivals = Arrivals::of(joint);
    let mut legs = Vec::new();
    let Some((mut rank, mut node)) = last_completion(joint, solution, step) else { return legs };
    loop {
        let boundary = joint.ranks[rank].reduced.nodes[node];
        let end_ns = solution.time_ns(rank, node);
        let from = solution.reached_from[solution.first[rank] + node];
        if end_ns <= start_ns {
            break;
        }
        if from == CALL {
            let BoundaryKind::End(member) = boundary.kind else { break };
            let Some(&call) = calls[rank].get(member as usize).and_then(Option::as_ref) else {
                break;
            };
            let last = solution.last_of(joint, &arrivals, call, rank, end_ns);
            let (its_rank, its_member) = joint.calls[call as usize].members[last];
            rank = its_rank as usize;
            let Some(arrival) = arrivals.node(rank, its_member) else { break };
            let leg = Leg {
                rank: its_rank,
                kind: LegKind::Transfer,
                source: ROOT,
                target: joint.ranks[rank].members[its_member as usize].event,
                start_ns: solution.time_ns(rank, arrival),
                end_ns,
                call: Some(call),
            };
            legs.push(leg);
            node = arrival;
            continue;
        }
        let before = (from != ROOT).then_some(from as usize);
        let leg = Leg {
            rank: row_in_column(rank),
            kind: LegKind::Within,
            source: before.map_or(ROOT, |it| joint.ranks[rank].reduced.nodes[it].node),
            target: boundary.node,
            start_ns: before.map_or(start_ns, |it| solution.time_ns(rank, it)),
            end_ns,
            call: None,
        };
        if leg.source != leg.target {
            legs.push(leg);
        }
        match before {
            Some(before) => node = before,
            None => break,
        }
    }
    legs.reverse();
    legs
}

impl Solution {
    /// The member of a call whose arrival one of its ends waited for.
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

/// For each call, by how much its last member comes later than the median one.
pub fn lateness(joint: Joint<'_>, solution: &Solution) -> Vec<i64> {
    let arrivals = Arrivals::of(joint);
    let late_ns = |call: &super::calls::Call| {
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

/// The nodes at which the members of each rank arrive.
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

/// The rank that completes a step last, and the node at which it does.
fn last_completion(
    joint: Joint<'_>,
    solution: &Solution,
    step: Option<i64>,
) -> Option<(usize, usize)> {
    let nodes = joint.ranks.iter().enumerate();
    let nodes = nodes.filter_map(|(rank, it)| Some((rank, it.completion(step)?)));
    nodes.max_by_key(|&(rank, node)| (solution.time_ns(rank, node), std::cmp::Reverse(rank)))
}
