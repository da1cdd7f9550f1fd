//! Solves the joint graph of all ranks: the time of every boundary node.
//!
//! At the end of a matched member, its own minimum latency is replaced by one from the last arrival
//! of the call. Each call has one hub for its arrivals, so a call of a thousand ranks has a
//! thousand edges instead of a million.
//!
//! Limits: the latencies of a rank are scaled with the drift of its clock, rounded to nanoseconds.

use std::collections::HashMap;

use super::model::{Boundary, BoundaryKind, Call, Clock, ROOT, Rank};
use super::reduction::waits_for;
use crate::ids::{NO_ROW, row_in_column};
use crate::tables::NO_INTEGER;

/// Ranks, with their calls and clocks.
#[derive(Clone, Copy)]
pub struct Joint<'a> {
    /// The ranks, in order.
    pub ranks: &'a [&'a Rank],
    /// The calls of the ranks.
    pub calls: &'a [Call],
    /// The clocks of the ranks.
    pub clocks: &'a [Clock],
}

/// The time of every boundary node in common time, and how each was reached.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Solution {
    /// Index of the first node of each rank.
    pub first: Vec<usize>,
    /// The time of each node of each rank.
    pub times_ns: Vec<i64>,
    /// The node of the same rank by which it was reached, [`ROOT`], or `CALL` ([`NO_ROW`] - 1) if
    /// the call decided.
    pub reached_from: Vec<u32>,
    /// For each call, the index of the member that came last.
    pub last: Vec<u32>,
    /// From the earliest start to the last completion.
    pub run_ns: (i64, i64),
    /// Number of members that ended before another member of their call arrived.
    pub n_early_ends: u64,
}

/// Stands for the other ranks of a call in [`Solution::reached_from`].
pub(super) const CALL: u32 = NO_ROW - 1;

impl Solution {
    /// Returns the time of a node of a rank.
    pub fn time_ns(&self, rank: usize, node: usize) -> i64 {
        self.times_ns[self.first[rank] + node]
    }
}

/// Solves the joint graph. Transfer times come from `observed`, which equals `joint.ranks` unless
/// some ranks were changed. The beginning of each rank is moved earlier by `earlier_ns`.
pub fn solve(joint: Joint<'_>, observed: &[&Rank], earlier_ns: &[i64]) -> Solution {
    let mut solver = Solver::new(joint, observed);
    solver.link();
    solver.run(earlier_ns);
    solver.finish()
}

/// The arrival and the end of each member of a rank.
type MemberNodes = Vec<(u32, u32)>;

/// There are millions of nodes, so properties that few of them have are stored in maps.
struct Solver<'a> {
    joint: Joint<'a>,
    first: Vec<usize>,
    members: Vec<MemberNodes>,
    /// For the arrival and the end of a matched member, its call; otherwise [`NO_ROW`].
    call_of: Vec<u32>,
    /// For each member of each rank, the time from the last arrival to its end.
    transfers_ns: Vec<Vec<i64>>,
    /// The ends that wait for only some members of their call, with these members.
    waits_for: HashMap<usize, Vec<u32>>,
    /// For each call whose members have all arrived, the last one and its time.
    last_of_all: Vec<Option<(u32, i64)>>,
    found: Solution,
}

impl<'a> Solver<'a> {
    fn new(joint: Joint<'a>, observed: &[&Rank]) -> Self {
        let mut first = vec![0];
        for rank in joint.ranks {
            first.push(first[first.len() - 1] + rank.reduced.nodes.len());
        }
        let n = first[first.len() - 1];
        let mut solver = Self {
            joint,
            first,
            members: joint.ranks.iter().map(|rank| rank.nodes_of_members()).collect(),
            call_of: vec![NO_ROW; n],
            transfers_ns: joint.ranks.iter().map(|rank| vec![0; rank.members.len()]).collect(),
            waits_for: HashMap::new(),
            last_of_all: vec![None; joint.calls.len()],
            found: Solution::default(),
        };
        // Changes may divide a rank differently, so its nodes may have other indices than the
        // observed ones.
        let changed = joint.ranks.iter().zip(observed).enumerate();
        let changed = changed.filter(|(_, (rank, observed))| !std::ptr::eq(**rank, **observed));
        let changed = changed.map(|(place, (_, observed))| (place, observed.nodes_of_members()));
        let changed: HashMap<usize, MemberNodes> = changed.collect();
        for place in 0..joint.calls.len() {
            solver.add_call(place, observed, &changed);
        }
        solver
    }

    fn add_call(
        &mut self,
        place: usize,
        observed: &[&Rank],
        changed: &HashMap<usize, MemberNodes>,
    ) {
        let call = &self.joint.calls[place];
        let seen = |&(rank, member): &(u32, u32)| {
            self.observed_nodes(rank as usize, member as usize, observed, changed)
        };
        let Some(ends) = call.members.iter().map(seen).collect::<Option<Vec<_>>>() else { return };
        let stamp = |rank: usize, time_ns: i64| self.joint.clocks[rank].common_ns(time_ns);
        let arrived: Vec<_> =
            ends.iter().map(|&(rank, arrival, _)| stamp(rank, arrival.time_ns)).collect();
        for (at, &(rank, _, end)) in ends.iter().enumerate() {
            let end_ns = stamp(rank, end.time_ns);
            let waits_for = waits_for(call, at, observed, &arrived, end_ns);
            if waits_for.as_ref().is_some_and(|only| only.len() < ends.len()) && !call.is_pair {
                self.found.n_early_ends += 1;
            }
            let counted = |place: usize| {
                waits_for.as_ref().is_none_or(|it| it.contains(&row_in_column(place)))
            };
            let last_ns = (0..ends.len()).filter(|&it| counted(it)).map(|it| arrived[it]).max();
            let others_ns = match end.others_ns {
                NO_INTEGER => i64::MIN,
                time_ns => stamp(rank, time_ns),
            };
            let member = call.members[at].1 as usize;
            let nodes = self.members[rank][member];
            let node = |place: u32| self.first[rank] + place as usize;
            self.transfers_ns[rank][member] =
                (end_ns - last_ns.unwrap_or(end_ns).max(others_ns)).max(0);
            self.call_of[node(nodes.0)] = row_in_column(place);
            self.call_of[node(nodes.1)] = row_in_column(place);
            if let Some(only) = waits_for {
                self.waits_for.insert(node(nodes.1), only);
            }
        }
    }

    /// Returns the rank of a member, with its observed arrival and end; `None` if a change removed
    /// one of them.
    fn observed_nodes(
        &self,
        rank: usize,
        member: usize,
        observed: &[&Rank],
        changed: &HashMap<usize, MemberNodes>,
    ) -> Option<(usize, Boundary, Boundary)> {
        let now = self.members[rank][member];
        if now.0 == ROOT || now.1 == ROOT {
            return None;
        }
        let then = changed.get(&rank).map_or(now, |nodes| nodes[member]);
        let node = |place: u32| observed[rank].reduced.nodes.get(place as usize).copied();
        Some((rank, node(then.0)?, node(then.1)?))
    }

    /// Returns the call, if a node is an arrival.
    fn arrival(&self, node: usize) -> Option<u32> {
        let call = Some(self.call_of[node]).filter(|&call| call != NO_ROW)?;
        let (rank, local) = self.place(node);
        let kind = self.joint.ranks[rank].reduced.nodes[local].kind;
        matches!(kind, BoundaryKind::Arrival(_)).then_some(call)
    }

    /// Returns the call and the member, if a node is the end of a member.
    fn end(&self, rank: usize, local: usize) -> Option<(u32, usize)> {
        let kind = self.joint.ranks[rank].reduced.nodes[local].kind;
        let BoundaryKind::End(member) = kind else { return None };
        let call = self.call_of[self.first[rank] + local];
        (call != NO_ROW).then_some((call, member as usize))
    }

    fn link(&mut self) {
        let n = self.first[self.first.len() - 1];
        self.found.first.clone_from(&self.first);
        self.found.times_ns = vec![i64::MIN; n];
        self.found.reached_from = vec![ROOT; n];
        self.found.last = vec![0; self.joint.calls.len()];
    }

    /// Kahn's algorithm over nodes and hubs: a node is ready when all of its sources are known.
    fn run(&mut self, earlier_ns: &[i64]) {
        let n = self.first[self.first.len() - 1];
        let mut open: Vec<u32> = (0..n).map(|node| self.n_open(node)).collect();
        let mut hub_open: Vec<u32> =
            self.joint.calls.iter().map(|it| row_in_column(it.members.len())).collect();
        let targets = self.targets();
        let mut ready: Vec<usize> = (0..n).filter(|&node| open[node] == 0).collect();
        let mut is_done = vec![false; n];
        let mut left = None;
        loop {
            while let Some(node) = ready.pop() {
                if is_done[node] {
                    continue;
                }
                is_done[node] = true;
                self.settle(node, earlier_ns);
                for &target in targets.of_node(node) {
                    lower(&mut open, target as usize, &mut ready);
                }
                if let Some(call) = self.arrival(node) {
                    hub_open[call as usize] -= 1;
                    if hub_open[call as usize] == 0 {
                        self.last_of_all[call as usize] = Some(self.last_arrival(call, None));
                        for end in self.ends_of(call as usize) {
                            lower(&mut open, end, &mut ready);
                        }
                    }
                }
            }
            let left = left.get_or_insert_with(|| self.by_time(&is_done));
            let Some(stuck) = left.find(|&node| !is_done[node]) else { break };
            ready.push(stuck);
        }
    }

    /// Returns the nodes blocked by a cycle within one instant, in order of observed time.
    fn by_time(&self, is_done: &[bool]) -> std::vec::IntoIter<usize> {
        let left = (0..is_done.len()).filter(|&node| !is_done[node]);
        let stamped = left.map(|node| {
            let (rank, local) = self.place(node);
            let time_ns = self.joint.ranks[rank].reduced.nodes[local].time_ns;
            (self.joint.clocks[rank].common_ns(time_ns), node)
        });
        let mut order: Vec<_> = stamped.collect();
        order.sort_unstable();
        order.into_iter().map(|(_, node)| node).collect::<Vec<_>>().into_iter()
    }

    fn n_open(&self, node: usize) -> u32 {
        let (rank, local) = self.place(node);
        let sources = self.joint.ranks[rank].reduced.reaching(local);
        let n_local = row_in_column(sources.filter(|&(source, _)| source != ROOT).count());
        let own = self.own_source(rank, local).is_some();
        n_local + u32::from(own) + u32::from(self.end(rank, local).is_some())
    }

    /// Returns the source of the end of an unmatched member: its own arrival.
    fn own_source(&self, rank: usize, local: usize) -> Option<(u32, i64)> {
        let node = &self.joint.ranks[rank].reduced.nodes[local];
        let BoundaryKind::End(member) = node.kind else { return None };
        let is_alone = self.call_of[self.first[rank] + local] == NO_ROW;
        let (arrival, _) = self.members[rank][member as usize];
        (is_alone && node.own_ns != NO_INTEGER && arrival != ROOT).then_some((arrival, node.own_ns))
    }

    fn place(&self, node: usize) -> (usize, usize) {
        let rank = self.first.partition_point(|&first| first <= node) - 1;
        (rank, node - self.first[rank])
    }

    /// Returns the arrival nodes of the members of a call.
    fn arrivals_of(&self, call: u32) -> impl Iterator<Item = usize> + '_ {
        self.joint.calls[call as usize].members.iter().map(|&(rank, member)| {
            let (rank, member) = (rank as usize, member as usize);
            self.first[rank] + self.members[rank][member].0 as usize
        })
    }

    /// Returns the end nodes of the members of a call.
    fn ends_of(&self, call: usize) -> impl Iterator<Item = usize> + '_ {
        self.joint.calls[call].members.iter().map(|&(rank, member)| {
            let (rank, member) = (rank as usize, member as usize);
            self.first[rank] + self.members[rank][member].1 as usize
        })
    }

    /// Returns the targets of each node within its rank.
    fn targets(&self) -> Targets {
        Targets::of(self.found.times_ns.len(), || {
            self.joint.ranks.iter().enumerate().flat_map(move |(place, rank)| {
                let base = self.first[place];
                (0..rank.reduced.nodes.len()).flat_map(move |local| {
                    let sources = rank.reduced.reaching(local).chain(self.own_source(place, local));
                    let sources = sources.filter(|&(source, _)| source != ROOT);
                    sources.map(move |(it, _)| (base + it as usize, row_in_column(base + local)))
                })
            })
        })
    }

    fn settle(&mut self, node: usize, earlier_ns: &[i64]) {
        let (rank, local) = self.place(node);
        let clock = self.joint.clocks[rank];
        let reduced = &self.joint.ranks[rank].reduced;
        let mut best = (i64::MIN, false, ROOT);
        for (source, latency_ns) in reduced.reaching(local).chain(self.own_source(rank, local)) {
            let time_ns = match source {
                ROOT => clock.common_ns(latency_ns) - earlier_ns[rank],
                source => {
                    let before_ns = self.found.times_ns[self.first[rank] + source as usize];
                    before_ns.saturating_add(clock.scaled_ns(latency_ns))
                }
            };
            best = best.max((time_ns, source == reduced.nodes[local].bound_by, source));
        }
        if let Some((call, member)) = self.end(rank, local) {
            let only = self.waits_for.get(&node);
            let of_all = self.last_of_all[call as usize].filter(|_| only.is_none());
            let (last, last_ns) = of_all.unwrap_or_else(|| self.last_arrival(call, only));
            self.found.last[call as usize] = last;
            let transfer_ns = clock.scaled_ns(self.transfers_ns[rank][member]);
            let time_ns = last_ns.saturating_add(transfer_ns);
            let is_first = last_ns >= self.others_ns(rank, local, best.0);
            if time_ns > best.0 || (time_ns == best.0 && is_first) {
                best = (time_ns, true, CALL);
            }
        }
        self.found.times_ns[node] = best.0;
        self.found.reached_from[node] = best.2;
    }

    /// Returns when everything else that the end of a member waits for had finished, by observed
    /// times.
    fn others_ns(&self, rank: usize, local: usize, best_ns: i64) -> i64 {
        let node: Boundary = self.joint.ranks[rank].reduced.nodes[local];
        match node.others_ns {
            NO_INTEGER => i64::MIN,
            time_ns => self.joint.clocks[rank].common_ns(time_ns).min(best_ns),
        }
    }

    /// Returns the member of a call that arrives last, of all or some members, and its time.
    fn last_arrival(&self, call: u32, only: Option<&Vec<u32>>) -> (u32, i64) {
        let arrivals = self.arrivals_of(call).enumerate();
        let counted = arrivals
            .map(|(it, node)| (row_in_column(it), node))
            .filter(|(it, _)| only.is_none_or(|only| only.contains(it)));
        let timed = counted.map(|(it, node)| (self.found.times_ns[node], std::cmp::Reverse(it)));
        timed.max().map_or((0, i64::MIN), |(time_ns, it)| (it.0, time_ns))
    }

    fn finish(mut self) -> Solution {
        let ranks = self.joint.ranks.iter().zip(self.joint.clocks).enumerate();
        let starts = ranks.clone().map(|(_, (rank, clock))| clock.common_ns(rank.window_ns.0));
        let start_ns = starts.min().unwrap_or(0);
        let ends = ranks.filter_map(|(place, (rank, _))| {
            let node = rank.completion(None)?;
            Some(self.found.times_ns[self.first[place] + node])
        });
        let end_ns = ends.max().unwrap_or(start_ns).max(start_ns);
        self.found.run_ns = (start_ns, end_ns);
        self.found
    }
}

fn lower(open: &mut [u32], node: usize, ready: &mut Vec<usize>) {
    open[node] = open[node].saturating_sub(1);
    if open[node] == 0 {
        ready.push(node);
    }
}

// The targets of each node, stored in one column.

/// The targets of each node.
pub(super) struct Targets {
    first: Vec<u32>,
    targets: Vec<u32>,
}

impl Targets {
    /// Builds the targets from pairs of a node and its target. `pairs` is iterated twice, with the
    /// same result: the pairs are counted first, then stored, because there are too many to collect
    /// and sort.
    pub(super) fn of<I: Iterator<Item = (usize, u32)>>(n: usize, pairs: impl Fn() -> I) -> Self {
        // Counts are shifted by two, so that filling a node moves the start of the next one.
        let mut first = vec![0_u32; n + 2];
        for (source, _) in pairs() {
            first[source + 2] += 1;
        }
        for place in 2..first.len() {
            first[place] += first[place - 1];
        }
        let mut targets = vec![0; first[n + 1] as usize];
        for (source, target) in pairs() {
            targets[first[source + 1] as usize] = target;
            first[source + 1] += 1;
        }
        Self { first, targets }
    }

    pub(super) fn of_node(&self, node: usize) -> &[u32] {
        &self.targets[self.first[node] as usize..self.first[node + 1] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::Targets;

    #[test]
    fn targets_stand_with_their_node_in_the_order_given() {
        let pairs = [(2, 3), (0, 1), (2, 4), (0, 2), (2, 0)];
        let found = Targets::of(5, || pairs.into_iter());
        let rows: Vec<_> = (0..5).map(|node| found.of_node(node).to_vec()).collect();
        assert_eq!(rows, [vec![1, 2], vec![], vec![3, 4, 0], vec![], vec![]]);
    }
}
