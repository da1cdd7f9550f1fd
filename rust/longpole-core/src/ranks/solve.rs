//! Solves the graph of all ranks: when every boundary node comes.
//!
//! At the end of a matched member its own minimum latency is left out, and one from the last
//! arrival of the call put in. One hub for each call stands for its arrivals, so that a call of
//! a thousand ranks has a thousand edges and not a million.
//!
//! Limits: latencies of a rank are scaled with the drift of its clock, rounded to the
//! nanosecond.

use super::awaited::waits_for;
use super::calls::Call;
use super::clock::Clock;
use super::model::{Boundary, Rank, ROOT};
use super::targets::Targets;
use crate::ids::{row_in_column, NO_ROW};
use crate::tables::NO_INTEGER;

/// Ranks, what joins them, and their clocks.
#[derive(Clone, Copy)]
pub struct Joint<'a> {
    /// The ranks, in order.
    pub ranks: &'a [&'a Rank],
    /// Their calls.
    pub calls: &'a [Call],
    /// Their clocks.
    pub clocks: &'a [Clock],
}

/// When every boundary node comes on the common clock, and what it hangs on.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Solution {
    /// The first node of each rank.
    pub first: Vec<usize>,
    /// The time of each node of each rank.
    pub times_ns: Vec<i64>,
    /// The node of the same rank that it was reached from, [`ROOT`], or [`NO_ROW`] less one
    /// where the call decided (`CALL`).
    pub reached_from: Vec<u32>,
    /// For each call, the place of the member that came last.
    pub last: Vec<u32>,
    /// From the earliest start to the last completion.
    pub run_ns: (i64, i64),
    /// Members that ended before another one of their call arrived.
    pub n_early_ends: u64,
    /// Nodes that closed a circle within one instant.
    pub n_circles: u64,
}

/// Stands for the other ranks of a call among what a node was reached from.
pub(super) const CALL: u32 = NO_ROW - 1;

impl Solution {
    /// The time of a node of a rank.
    pub fn time_ns(&self, rank: usize, node: usize) -> i64 {
        self.times_ns[self.first[rank] + node]
    }

    /// How long the run takes.
    pub fn makespan_ns(&self) -> i64 {
        self.run_ns.1 - self.run_ns.0
    }
}

/// The edges of one end of a member: from which arrivals, and how long after the last.
struct Transfer {
    call: u32,
    lag_ns: i64,
    /// Members of the call whose arrival counts; none for all.
    only: Option<Vec<u32>>,
}

/// Solves the joint graph. `observed` gives what the transfers took; it is `joint.ranks`
/// unless some of these were changed. Each rank's beginning is moved earlier by `earlier_ns`.
pub fn solve(joint: Joint<'_>, observed: &[&Rank], earlier_ns: &[i64]) -> Solution {
    let mut solver = Solver::new(joint, observed);
    solver.link();
    solver.run(earlier_ns);
    solver.finish()
}

/// The arrival and the end of each member of each rank: where they were observed, and where
/// they are now.
struct Nodes {
    observed: Vec<Vec<(u32, u32)>>,
    solved: Vec<Vec<(u32, u32)>>,
}

fn nodes_of(ranks: &[&Rank]) -> Vec<Vec<(u32, u32)>> {
    ranks.iter().map(|rank| rank.nodes_of_members()).collect()
}

struct Solver<'a> {
    joint: Joint<'a>,
    first: Vec<usize>,
    /// For each node that ends a matched member.
    transfers: Vec<Option<Transfer>>,
    /// For each node, the call that waits for this arrival.
    hub_of: Vec<u32>,
    /// The arrivals of each call: nodes of all ranks.
    arrivals: Vec<Vec<usize>>,
    /// The end of an arrival, and the arrival of an end.
    partner: Vec<u32>,
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
            transfers: Vec::new(),
            hub_of: vec![NO_ROW; n],
            arrivals: vec![Vec::new(); joint.calls.len()],
            partner: vec![NO_ROW; n],
            found: Solution::default(),
        };
        solver.transfers.resize_with(n, || None);
        solver.pair_nodes();
        // Changes may cut a rank elsewhere: its nodes have other places than the observed ones.
        let nodes = Nodes { observed: nodes_of(observed), solved: nodes_of(joint.ranks) };
        for place in 0..joint.calls.len() {
            solver.add_call(place, observed, &nodes);
        }
        solver
    }

    fn pair_nodes(&mut self) {
        for (rank, &base) in self.joint.ranks.iter().zip(&self.first) {
            for (arrival, end) in rank.nodes_of_members() {
                if arrival != ROOT && end != ROOT {
                    self.partner[base + arrival as usize] = row_in_column(base + end as usize);
                    self.partner[base + end as usize] = row_in_column(base + arrival as usize);
                }
            }
        }
    }

    fn add_call(&mut self, place: usize, observed: &[&Rank], nodes: &Nodes) {
        let call = &self.joint.calls[place];
        let ends: Vec<_> = call
            .members
            .iter()
            .map(|&(rank, member)| {
                let (rank, member) = (rank as usize, member as usize);
                let (arrival, end) = nodes.solved[rank][member];
                let seen = nodes.observed[rank][member];
                let node = |place: u32| observed[rank].reduced.nodes.get(place as usize).copied();
                (rank, arrival, end, node(seen.0), node(seen.1))
            })
            .collect();
        let is_lost = |place: u32| place == ROOT;
        if ends.iter().any(|it| it.3.is_none() || it.4.is_none() || is_lost(it.1) || is_lost(it.2))
        {
            return;
        }
        let stamp = |rank: usize, time_ns: i64| self.joint.clocks[rank].common_ns(time_ns);
        let arrived: Vec<_> =
            ends.iter().map(|it| stamp(it.0, it.3.map_or(0, |node| node.time_ns))).collect();
        for (at, &(rank, arrival, end, _, node)) in ends.iter().enumerate() {
            let Some(node) = node else { continue };
            let end_ns = stamp(rank, node.time_ns);
            let waits_for = waits_for(call, at, observed, &arrived, end_ns);
            if waits_for.as_ref().is_some_and(|only| only.len() < ends.len()) && !call.is_pair {
                self.found.n_early_ends += 1;
            }
            let counted = |place: usize| {
                waits_for.as_ref().is_none_or(|it| it.contains(&row_in_column(place)))
            };
            let last_ns = (0..ends.len()).filter(|&it| counted(it)).map(|it| arrived[it]).max();
            let others_ns = match node.others_ns {
                NO_INTEGER => i64::MIN,
                time_ns => stamp(rank, time_ns),
            };
            let lag_ns = (end_ns - last_ns.unwrap_or(end_ns).max(others_ns)).max(0);
            let call = row_in_column(place);
            self.transfers[self.first[rank] + end as usize] =
                Some(Transfer { call, lag_ns, only: waits_for });
            self.hub_of[self.first[rank] + arrival as usize] = call;
            self.arrivals[place].push(self.first[rank] + arrival as usize);
        }
    }

    fn link(&mut self) {
        let n = self.first[self.first.len() - 1];
        self.found.first.clone_from(&self.first);
        self.found.times_ns = vec![i64::MIN; n];
        self.found.reached_from = vec![ROOT; n];
        self.found.last = vec![0; self.joint.calls.len()];
    }

    /// Kahn's order over nodes and hubs: a node is ready when all it hangs on is known.
    fn run(&mut self, earlier_ns: &[i64]) {
        let n = self.first[self.first.len() - 1];
        let mut open: Vec<u32> = (0..n).map(|node| self.n_open(node)).collect();
        let mut hub_open: Vec<u32> =
            self.arrivals.iter().map(|it| row_in_column(it.len())).collect();
        let targets = self.targets();
        let mut ready: Vec<usize> = (0..n).filter(|&node| open[node] == 0).collect();
        let mut is_done = vec![false; n];
        let mut next_forced = 0;
        let order = self.by_time();
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
                let hub = self.hub_of[node];
                if hub != NO_ROW {
                    hub_open[hub as usize] -= 1;
                    if hub_open[hub as usize] == 0 {
                        for end in self.ends_of(hub as usize) {
                            lower(&mut open, end, &mut ready);
                        }
                    }
                }
            }
            while next_forced < n && is_done[order[next_forced]] {
                next_forced += 1;
            }
            let Some(&stuck) = order.get(next_forced) else { break };
            self.found.n_circles += 1;
            ready.push(stuck);
        }
    }

    /// The nodes in order of observed time, for what a circle within one instant holds up.
    fn by_time(&self) -> Vec<usize> {
        let mut order: Vec<_> = (0..self.first[self.first.len() - 1]).collect();
        let stamps: Vec<_> = self
            .joint
            .ranks
            .iter()
            .zip(self.joint.clocks)
            .flat_map(|(rank, clock)| {
                rank.reduced.nodes.iter().map(|it| clock.common_ns(it.time_ns))
            })
            .collect();
        order.sort_by_key(|&node| (stamps[node], node));
        order
    }

    fn n_open(&self, node: usize) -> u32 {
        let (rank, local) = self.place(node);
        let sources = self.joint.ranks[rank].reduced.reaching(local);
        let n_local = row_in_column(sources.filter(|&(source, _)| source != ROOT).count());
        let own = self.own_source(rank, local).is_some();
        n_local + u32::from(own) + u32::from(self.transfers[node].is_some())
    }

    /// The own arrival of the end of a member that stayed alone.
    fn own_source(&self, rank: usize, local: usize) -> Option<(u32, i64)> {
        let node = self.joint.ranks[rank].reduced.nodes[local];
        let base = self.first[rank];
        let is_alone = self.transfers[base + local].is_none();
        let arrival = self.partner[base + local];
        (is_alone && node.own_ns != NO_INTEGER && arrival != NO_ROW)
            .then(|| (row_in_column(arrival as usize - base), node.own_ns))
    }

    fn place(&self, node: usize) -> (usize, usize) {
        let rank = self.first.partition_point(|&first| first <= node) - 1;
        (rank, node - self.first[rank])
    }

    fn ends_of(&self, call: usize) -> Vec<usize> {
        self.arrivals[call].iter().map(|&node| self.partner[node] as usize).collect()
    }

    /// Which nodes hang on each node of their own rank.
    fn targets(&self) -> Targets {
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        for (place, rank) in self.joint.ranks.iter().enumerate() {
            let base = self.first[place];
            for local in 0..rank.reduced.nodes.len() {
                let sources = rank.reduced.reaching(local).chain(self.own_source(place, local));
                let sources = sources.filter(|&(source, _)| source != ROOT);
                let target = row_in_column(base + local);
                pairs.extend(sources.map(|(it, _)| (row_in_column(base + it as usize), target)));
            }
        }
        Targets::of(pairs, self.found.times_ns.len())
    }

    fn settle(&mut self, node: usize, earlier_ns: &[i64]) {
        let (rank, local) = self.place(node);
        let clock = self.joint.clocks[rank];
        let reduced = &self.joint.ranks[rank].reduced;
        let mut best = (i64::MIN, false, ROOT);
        for (source, lag_ns) in reduced.reaching(local).chain(self.own_source(rank, local)) {
            let time_ns = match source {
                ROOT => clock.common_ns(lag_ns) - earlier_ns[rank],
                source => {
                    let before_ns = self.found.times_ns[self.first[rank] + source as usize];
                    before_ns.saturating_add(clock.scaled_ns(lag_ns))
                }
            };
            best = best.max((time_ns, source == reduced.nodes[local].bound_by, source));
        }
        if let Some(transfer) = &self.transfers[node] {
            let (last, last_ns) = self.last_arrival(transfer);
            self.found.last[transfer.call as usize] = last;
            let time_ns = last_ns.saturating_add(clock.scaled_ns(transfer.lag_ns));
            let is_first = last_ns >= self.others_ns(rank, local, best.0);
            if time_ns > best.0 || (time_ns == best.0 && is_first) {
                best = (time_ns, true, CALL);
            }
        }
        self.found.times_ns[node] = best.0;
        self.found.reached_from[node] = best.2;
    }

    /// When what else the end of a member waits for was over, in observed times.
    fn others_ns(&self, rank: usize, local: usize, best_ns: i64) -> i64 {
        let node: Boundary = self.joint.ranks[rank].reduced.nodes[local];
        match node.others_ns {
            NO_INTEGER => i64::MIN,
            time_ns => self.joint.clocks[rank].common_ns(time_ns).min(best_ns),
        }
    }

    fn last_arrival(&self, transfer: &Transfer) -> (u32, i64) {
        let arrivals = &self.arrivals[transfer.call as usize];
        let counted = (0..arrivals.len()).filter(|&it| {
            transfer.only.as_ref().is_none_or(|only| only.contains(&row_in_column(it)))
        });
        let timed = counted.map(|it| (self.found.times_ns[arrivals[it]], std::cmp::Reverse(it)));
        timed.max().map_or((0, i64::MIN), |(time_ns, it)| (row_in_column(it.0), time_ns))
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
