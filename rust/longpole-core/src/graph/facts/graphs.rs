//! Dependencies between the nodes of a CUDA graph, learned from its launches.
//!
//! A graph launch does not record how its nodes depend on each other. Nodes on one stream run in
//! order. Between streams, dependencies are learned from three or more launches: a node that
//! repeatedly starts late, just after the end of the same node of another stream, waits for it. The
//! awaited node must have ended before the start in *every* launch; otherwise two branches that
//! only run at the same pace would look dependent. Ends too close to the start are excluded by the
//! usual wait latency of the graph. For a graph launched once or twice, dependencies are inferred
//! for each launch separately.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use super::launches::Purposes;
use super::templates;
use super::templates::Template;
use crate::graph::model::{Streams, limits};
use crate::ids::{Order, RowMap, RowSet};
use crate::tables::Tables;
use crate::vocabulary::ApiRole;

/// The graph launches of a trace.
#[derive(Default)]
pub(in crate::graph) struct Graphs {
    /// For each node, the nodes that it waits for.
    pub(in crate::graph) waits: RowMap<Order, Vec<Order>>,
    /// For an inferred wait, the other activity that may have been waited for.
    pub(in crate::graph) rivals: RowMap<Order, Order>,
    /// Launches of graphs that were launched often enough to learn their dependencies.
    pub(in crate::graph) learned: RowSet<Order>,
    /// Number of graph launches.
    pub(in crate::graph) n_launches: u64,
    /// Launches of graphs that use several streams.
    pub(in crate::graph) over_streams: Vec<Order>,
    /// For activities that follow nodes missing from the trace, what is known about those nodes.
    pub(in crate::graph) after_missing: RowMap<Order, AfterMissing>,
    /// Number of missing nodes: nodes that other launches of the same graph have.
    pub(in crate::graph) n_missing_nodes: u64,
}

/// What is known about a start that waited for missing nodes.
#[derive(Default)]
pub(in crate::graph) struct AfterMissing {
    /// The activities that the missing nodes followed.
    pub(in crate::graph) sources: BTreeSet<Order>,
    /// An activity that starts this long after all its known predecessors waited for the missing
    /// nodes.
    pub(in crate::graph) late_ns: i64,
}

pub(super) fn of_trace(streams: &Streams<'_>, purposes: &Purposes, tables: &Tables) -> Graphs {
    let timeline = streams.timeline;
    let launches_graph = |&call: &Order| {
        timeline.kind(call).is_call()
            && !streams.launched_by(call).is_empty()
            && purposes.purpose(call, timeline) == ApiRole::GraphLaunch
    };
    let calls: Vec<_> = timeline.orders().filter(launches_graph).collect();
    let is_over_streams = |&call: &Order| {
        let works = streams.launched_by(call);
        works.iter().any(|&work| streams.stream_of(work) != streams.stream_of(works[0]))
    };
    let over_streams = calls.iter().copied().filter(is_over_streams).collect();
    let mut graphs = Graphs { n_launches: calls.len() as u64, over_streams, ..Graphs::default() };
    let found = templates::of_launches(&calls, streams, tables);
    for template in found.into_iter().filter(Template::tells_something) {
        if template.replays.len() >= limits::LEAST_REPLAYS {
            graphs.learned.extend(template.replays.iter().map(|replay| replay.call));
        }
        learn(&template, streams, &mut graphs);
    }
    graphs
}

/// Finds what the nodes of a graph wait for, and which activities follow missing nodes.
fn learn(template: &Template, streams: &Streams<'_>, graphs: &mut Graphs) {
    let replays: Vec<_> =
        template.replays.iter().map(|replay| Replay::of(replay, template, streams)).collect();
    let late_ns = usual_latency_ns(&replays).saturating_mul(2).max(limits::LATE_REPLAY_NS);
    let nodes = 0..template.n_nodes;
    let found: Vec<_> = nodes.map(|node| late_starts(node, &replays, late_ns, streams)).collect();
    let usual_ns = usual_wait_ns(&found);
    let quickest_ns = quickest_wait_ns(&found, usual_ns);
    let latencies_ns = usual_ns / 2..=usual_ns.saturating_mul(3).min(limits::WAIT_RELEASE_NS);
    let within =
        |late: Vec<LateStart>| late.into_iter().map(|it| it.within(&latencies_ns)).collect();
    let late: Vec<Vec<LateStart>> = found.into_iter().map(within).collect();
    let producers_of = if replays.len() < limits::LEAST_REPLAYS {
        guess_waits(&late, &replays, quickest_ns, graphs);
        vec![Vec::new(); template.n_nodes]
    } else {
        let producers_of: Vec<_> = late.iter().map(|late| producers(late)).collect();
        add_waits(&producers_of, &replays, graphs);
        producers_of
    };
    let before = |node: usize| producers_of[node].iter().copied().chain(template.before[node]);
    let preceding: Vec<Vec<usize>> = (0..template.n_nodes).map(|it| before(it).collect()).collect();
    for replay in &template.replays {
        add_missing(&replay.nodes, replay.call, &preceding, late_ns, streams, graphs);
    }
}

/// Adds the waits of a graph with few launches: each late start waits for its likeliest candidate,
/// and the next candidate is its rival.
fn guess_waits(
    late: &[Vec<LateStart>],
    replays: &[Replay<'_>],
    quickest_ns: i64,
    graphs: &mut Graphs,
) {
    for (node, starts) in late.iter().enumerate() {
        for start in starts {
            let nodes = replays[start.replay].nodes;
            let mut candidates = start.likeliest_first(quickest_ns).filter_map(|it| nodes[it]);
            if let Some(work) = nodes[node] {
                graphs.waits.entry(work).or_default().extend(candidates.next());
                graphs.rivals.extend(candidates.next().map(|rival| (work, rival)));
            }
        }
    }
}

/// Adds to every launch the waits that all launches together show.
fn add_waits(producers_of: &[Vec<usize>], replays: &[Replay<'_>], graphs: &mut Graphs) {
    for replay in replays {
        for (node, producers) in producers_of.iter().enumerate() {
            let known = producers.iter().filter_map(|&producer| replay.nodes[producer]);
            if let Some(work) = replay.nodes[node].filter(|_| !producers.is_empty()) {
                graphs.waits.entry(work).or_default().extend(known);
            }
        }
    }
}

/// Records what follows the nodes missing from one launch: the nodes that wait for them, and the
/// next activity on the stream of the graph, which waits for all of them.
fn add_missing(
    nodes: &[Option<Order>],
    call: Order,
    preceding: &[Vec<usize>],
    late_ns: i64,
    streams: &Streams<'_>,
    graphs: &mut Graphs,
) {
    if nodes.iter().all(Option::is_some) {
        return;
    }
    let mut is_followed = vec![false; nodes.len()];
    for (node, work) in nodes.iter().enumerate() {
        for &other in &preceding[node] {
            is_followed[other] = true;
        }
        let missing = || preceding[node].iter().copied().filter(|&it| nodes[it].is_none());
        if let Some(work) = work.filter(|_| missing().next().is_some()) {
            let sources = known_before(missing(), nodes, preceding);
            graphs.after_missing.insert(work, AfterMissing { sources, late_ns });
        }
    }
    graphs.n_missing_nodes += nodes.iter().filter(|node| node.is_none()).count() as u64;
    let ends = (0..nodes.len()).filter(|&node| !is_followed[node] && nodes[node].is_none());
    let sources = known_before(ends, nodes, preceding);
    let home = streams.stream_of(streams.launched_by(call)[0]);
    let next = streams.all[home].submitted_after(streams.timeline.start_ns(call)).next();
    if let Some(next) = next.filter(|_| !sources.is_empty()) {
        let late_ns = limits::LATE_AFTER_MISSING_NS;
        graphs.after_missing.entry(next).or_insert(AfterMissing { sources, late_ns });
    }
}

/// Returns the recorded nodes that the missing ones followed, directly or through other missing
/// nodes.
fn known_before(
    missing: impl Iterator<Item = usize>,
    nodes: &[Option<Order>],
    preceding: &[Vec<usize>],
) -> BTreeSet<Order> {
    let mut found = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut open: Vec<_> = missing.collect();
    while let Some(node) = open.pop() {
        for &before in &preceding[node] {
            match nodes[before] {
                Some(work) => {
                    found.insert(work);
                }
                None if seen.insert(before) => open.push(before),
                None => {}
            }
        }
    }
    found
}

/// One launch of a graph.
struct Replay<'a> {
    nodes: &'a [Option<Order>],
    /// For each node, when its stream and its call were ready; `None` if unknown.
    ready_ns: Vec<Option<i64>>,
    /// For each node, the time from then to its start.
    latencies_ns: Vec<Option<i64>>,
    /// The nodes, sorted by end.
    by_end: Vec<(i64, usize)>,
}

impl<'a> Replay<'a> {
    fn of(replay: &'a templates::Replayed, template: &Template, streams: &Streams<'_>) -> Self {
        let timeline = streams.timeline;
        let nodes = &replay.nodes[..];
        let ready_ns = |(node, work): (usize, &Option<Order>)| {
            let work = (*work)?;
            let called_ns = timeline.submitted_ns(work);
            if template.before[node].is_some_and(|before| nodes[before].is_none()) {
                return None;
            }
            let before = streams.before_on_stream(work);
            Some(before.map_or(called_ns, |it| timeline.end_ns(it).max(called_ns)))
        };
        let known = nodes.iter().enumerate().filter_map(|(node, work)| Some((node, (*work)?)));
        let mut by_end: Vec<_> = known.map(|(node, work)| (timeline.end_ns(work), node)).collect();
        by_end.sort_unstable();
        let ready_ns: Vec<_> = nodes.iter().enumerate().map(ready_ns).collect();
        let started_after = |(work, ready_ns): (&Option<Order>, &Option<i64>)| {
            Some(timeline.start_ns((*work)?) - (*ready_ns)?)
        };
        let latencies_ns = nodes.iter().zip(&ready_ns).map(started_after).collect();
        Self { nodes, ready_ns, latencies_ns, by_end }
    }

    /// Returns the nodes that ended after `node` was ready and at most `WAIT_RELEASE_NS` before it
    /// started, each with that time, latest end first.
    fn ended_before(
        &self,
        node: usize,
        streams: &Streams<'_>,
    ) -> impl Iterator<Item = (usize, i64)> + '_ {
        let start_ns = self.nodes[node].map_or(i64::MIN, |it| streams.timeline.start_ns(it));
        let ready_ns = self.ready_ns[node].unwrap_or(i64::MAX);
        let after_ns = ready_ns.max(start_ns.saturating_sub(limits::WAIT_RELEASE_NS + 1));
        let behind = self.by_end.partition_point(|&(end_ns, _)| end_ns <= start_ns);
        let ended = self.by_end[..behind].iter().rev();
        ended
            .take_while(move |end| end.0 > after_ns)
            .map(move |&(end_ns, it)| (it, start_ns - end_ns))
    }

    /// Whether one node ended before another started, in launches where both are recorded.
    fn ends_before(&self, one: usize, other: usize, streams: &Streams<'_>) -> bool {
        let timeline = streams.timeline;
        let (Some(one), Some(other)) = (self.nodes[one], self.nodes[other]) else { return true };
        timeline.end_ns(one) <= timeline.start_ns(other)
    }

    fn stream_of(&self, node: usize, streams: &Streams<'_>) -> Option<usize> {
        self.nodes[node].map(|work| streams.stream_of(work))
    }
}

/// Returns a low percentile of the start latencies: the latency of a start that waits for nothing.
fn usual_latency_ns(replays: &[Replay<'_>]) -> i64 {
    let latencies = replays.iter().flat_map(|replay| replay.latencies_ns.iter().copied().flatten());
    let mut latencies: Vec<_> = latencies.collect();
    let Some(last) = latencies.len().checked_sub(1) else { return 0 };
    *latencies.select_nth_unstable(last * limits::TYPICAL_PERCENT / 100).1
}

/// A late start and its candidates: the nodes that it may have waited for, each with the time from
/// its end to the start, latest end first.
struct LateStart {
    replay: usize,
    candidates: Vec<(usize, i64)>,
}

impl LateStart {
    /// Keeps the candidates whose time before the start is typical for a wait.
    fn within(mut self, latencies_ns: &RangeInclusive<i64>) -> Self {
        self.candidates.retain(|(_, latency_ns)| latencies_ns.contains(latency_ns));
        self
    }

    /// Returns the candidates, with those that ended less than the fastest wait before the start at
    /// the end.
    fn likeliest_first(&self, quickest_ns: i64) -> impl Iterator<Item = usize> + '_ {
        let of = move |too_soon: bool| {
            let is_so =
                move |&&(_, latency_ns): &&(usize, i64)| (latency_ns < quickest_ns) == too_soon;
            self.candidates.iter().filter(is_so).map(|&(node, _)| node)
        };
        of(false).chain(of(true))
    }
}

/// Returns the late starts of a node. A candidate is a node of another stream that ended before
/// this one started in every launch.
fn late_starts(
    node: usize,
    replays: &[Replay<'_>],
    late_ns: i64,
    streams: &Streams<'_>,
) -> Vec<LateStart> {
    let stream = |node: usize| replays.iter().find_map(|it| it.stream_of(node, streams));
    let own = stream(node);
    let may_be = |other: usize| {
        stream(other) != own && replays.iter().all(|it| it.ends_before(other, node, streams))
    };
    let is_late =
        |it: &Replay<'_>| it.latencies_ns[node].is_some_and(|latency_ns| latency_ns > late_ns);
    let late = replays.iter().enumerate().filter(|(_, it)| is_late(it));
    late.map(|(number, replay)| {
        let ended = replay.ended_before(node, streams);
        LateStart { replay: number, candidates: ended.filter(|&(it, _)| may_be(it)).collect() }
    })
    .collect()
}

/// Returns the usual latency of a wait between nodes of this graph: the median over late starts,
/// each measured from its last candidate.
fn usual_wait_ns(found: &[Vec<LateStart>]) -> i64 {
    let last = |start: &LateStart| start.candidates.first().map(|&(_, latency_ns)| latency_ns);
    let mut latencies_ns: Vec<_> = found.iter().flatten().filter_map(last).collect();
    latencies_ns.sort_unstable();
    latencies_ns.get(latencies_ns.len() / 2).copied().unwrap_or(0)
}

/// Returns the smallest latency of a wait between nodes of this graph: the shortest among late
/// starts with only one candidate if there are several, otherwise half the usual latency.
fn quickest_wait_ns(found: &[Vec<LateStart>], usual_ns: i64) -> i64 {
    let only = |start: &LateStart| match start.candidates[..] {
        [(_, latency_ns)] => Some(latency_ns),
        _ => None,
    };
    let half_ns = usual_ns / 2;
    let latencies_ns = || found.iter().flatten().filter_map(only).filter(|&ns| ns >= half_ns);
    let are_enough = latencies_ns().count() >= limits::LEAST_REPLAYS;
    let quickest_ns = latencies_ns().min().filter(|_| are_enough);
    // The minimum of a small sample overestimates the true minimum.
    quickest_ns.map_or(half_ns, |ns| ns - ns / 10)
}

/// Returns the nodes that one node waits for in all launches: the node that ended last before
/// several late starts, then the same for the late starts that remain.
fn producers(late: &[LateStart]) -> Vec<usize> {
    let mut n_last: BTreeMap<usize, usize> = BTreeMap::new();
    for &(producer, _) in late.iter().filter_map(|start| start.candidates.first()) {
        *n_last.entry(producer).or_default() += 1;
    }
    let mut found: Vec<_> = n_last
        .into_iter()
        .filter(|&(_, count)| count >= limits::LEAST_SUPPORT)
        .map(|(producer, _)| producer)
        .collect();
    for start in late {
        if !start.candidates.iter().any(|(it, _)| found.contains(it)) {
            found.extend(start.candidates.first().map(|&(it, _)| it));
        }
    }
    found
}
