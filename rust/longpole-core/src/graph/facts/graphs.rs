//! What the replays of a graph have in common: which node waits for which.
//!
//! A graph launch does not say how its nodes depend on each other. Of nodes on one stream
//! order tells; between streams three or more replays do: a node that starts late, again
//! and again just after the end of the same node of another stream, waits for it. A node
//! waited for must have ended before the start in *every* replay, else two branches that
//! merely run at the same pace would become dependent. What ended too shortly before to be
//! waited for is told from what a wait usually takes in this graph. Of a graph launched once
//! or twice the same is inferred, for each launch by itself.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::RangeInclusive;

use super::purposes::Purposes;
use crate::graph::model::{limits, Streams};
use crate::ids::Order;
use crate::vocabulary::ApiRole;

/// The graph launches of a trace.
#[derive(Default)]
pub(in crate::graph) struct Graphs {
    /// For nodes, what they wait for.
    pub(in crate::graph) waits: HashMap<Order, Vec<Order>>,
    /// The launches of graphs that were replayed often enough for that to be learned.
    pub(in crate::graph) learned: HashSet<Order>,
    /// How many launches of graphs there are.
    pub(in crate::graph) n_launches: u64,
    /// The launches of graphs over several streams.
    pub(in crate::graph) over_streams: Vec<Order>,
}

/// A node of a graph: its stream, its name, and which of that name on that stream it is.
type NodeKey = (usize, u32, u32);

pub(super) fn of_trace(streams: &Streams<'_>, purposes: &Purposes) -> Graphs {
    let timeline = streams.timeline;
    let mut graphs = Graphs::default();
    let mut groups: BTreeMap<Vec<NodeKey>, Vec<Vec<Order>>> = BTreeMap::new();
    for call in timeline.orders().filter(|&event| timeline.kind(event).is_call()) {
        let works = streams.launched_by(call);
        if works.is_empty() || purposes.purpose(call, timeline) != ApiRole::GraphLaunch {
            continue;
        }
        graphs.n_launches += 1;
        let stream = streams.stream_of(works[0]);
        if works.iter().any(|&work| streams.stream_of(work) != stream) {
            graphs.over_streams.push(call);
            let (keys, nodes) = sorted_nodes(works, streams);
            groups.entry(keys).or_default().push(nodes);
        }
    }
    for replays in groups.into_values() {
        if replays.len() >= limits::LEAST_REPLAYS {
            let launchers = replays.iter().filter_map(|nodes| timeline.launcher(nodes[0]));
            graphs.learned.extend(launchers);
        }
        learn(&replays, streams, &mut graphs.waits);
    }
    graphs
}

/// The nodes of a launch by their keys.
fn sorted_nodes(works: &[Order], streams: &Streams<'_>) -> (Vec<NodeKey>, Vec<Order>) {
    let mut n_seen: HashMap<(usize, u32), u32> = HashMap::new();
    let key = |&work: &Order| {
        let name =
            streams.timeline.name(work).map_or(u32::MAX, |it| crate::ids::row_in_column(it.row()));
        let stream = streams.stream_of(work);
        let count = n_seen.entry((stream, name)).or_default();
        *count += 1;
        ((stream, name, *count), work)
    };
    let mut nodes: Vec<_> = works.iter().map(key).collect();
    nodes.sort_unstable();
    nodes.into_iter().unzip()
}

/// Finds what the nodes of a graph wait for; a replay lists them all in the same order.
fn learn(replays: &[Vec<Order>], streams: &Streams<'_>, waits: &mut HashMap<Order, Vec<Order>>) {
    let replays: Vec<_> = replays.iter().map(|nodes| Replay::of(nodes, streams)).collect();
    let late_ns = usual_lag_ns(&replays).saturating_mul(2).max(limits::LATE_REPLAY_NS);
    let nodes = 0..replays[0].nodes.len();
    let found: Vec<_> = nodes.map(|node| late_starts(node, &replays, late_ns, streams)).collect();
    let usual_ns = usual_wait_ns(&found);
    let lags_ns = usual_ns / 2..=usual_ns.saturating_mul(3).min(limits::WAIT_RELEASE_NS);
    for (node, late) in found.into_iter().enumerate() {
        let late: Vec<_> = late.into_iter().map(|it| it.within(&lags_ns)).collect();
        if replays.len() < limits::LEAST_REPLAYS {
            for start in &late {
                let replay = &replays[start.replay];
                let producer = start.candidates.first().map(|&(it, _)| replay.nodes[it]);
                waits.entry(replay.nodes[node]).or_default().extend(producer);
            }
            continue;
        }
        for producer in producers(&late) {
            for replay in &replays {
                waits.entry(replay.nodes[node]).or_default().push(replay.nodes[producer]);
            }
        }
    }
}

/// One launch of a graph.
struct Replay<'a> {
    nodes: &'a [Order],
    /// When stream and call of each node were ready.
    ready_ns: Vec<i64>,
    /// How long after that each node started.
    lags_ns: Vec<i64>,
    /// The nodes by their ends.
    by_end: Vec<(i64, usize)>,
}

impl<'a> Replay<'a> {
    fn of(nodes: &'a [Order], streams: &Streams<'_>) -> Self {
        let timeline = streams.timeline;
        let ready_ns = |&work: &Order| {
            let called_ns = timeline.submitted_ns(work);
            streams
                .before_on_stream(work)
                .map_or(called_ns, |it| timeline.end_ns(it).max(called_ns))
        };
        let ends = nodes.iter().enumerate().map(|(node, &work)| (timeline.end_ns(work), node));
        let mut by_end: Vec<_> = ends.collect();
        by_end.sort_unstable();
        let ready_ns: Vec<_> = nodes.iter().map(ready_ns).collect();
        let started_after = |(&work, ready_ns): (&Order, &i64)| timeline.start_ns(work) - ready_ns;
        let lags_ns = nodes.iter().zip(&ready_ns).map(started_after).collect();
        Self { nodes, ready_ns, lags_ns, by_end }
    }

    /// The nodes that ended after a node was ready, at most so long before it started, and
    /// how long before; the last one first.
    fn ended_before(
        &self,
        node: usize,
        streams: &Streams<'_>,
    ) -> impl Iterator<Item = (usize, i64)> + '_ {
        let start_ns = streams.timeline.start_ns(self.nodes[node]);
        let after_ns = self.ready_ns[node].max(start_ns - limits::WAIT_RELEASE_NS - 1);
        let behind = self.by_end.partition_point(|&(end_ns, _)| end_ns <= start_ns);
        let ended = self.by_end[..behind].iter().rev();
        ended
            .take_while(move |end| end.0 > after_ns)
            .map(move |&(end_ns, it)| (it, start_ns - end_ns))
    }

    fn ends_before(&self, one: usize, other: usize, streams: &Streams<'_>) -> bool {
        let timeline = streams.timeline;
        timeline.end_ns(self.nodes[one]) <= timeline.start_ns(self.nodes[other])
    }
}

/// A low percentile of how late nodes start, which is what a start takes that waits for
/// nothing.
fn usual_lag_ns(replays: &[Replay<'_>]) -> i64 {
    let lags = replays.iter().flat_map(|replay| replay.lags_ns.iter().copied());
    let mut lags: Vec<_> = lags.collect();
    let place = lags.len().saturating_sub(1) * limits::TYPICAL_PERCENT / 100;
    *lags.select_nth_unstable(place).1
}

/// A start that comes late, and the nodes that it may have waited for: which, and how long
/// before the start they ended, the last one first.
struct LateStart {
    replay: usize,
    candidates: Vec<(usize, i64)>,
}

impl LateStart {
    /// The same with the candidates that ended as long before as waits take.
    fn within(mut self, lags_ns: &RangeInclusive<i64>) -> Self {
        self.candidates.retain(|(_, lag_ns)| lags_ns.contains(lag_ns));
        self
    }
}

/// The late starts of a node. What it may have waited for is a node of another stream that
/// ended before it started in every replay.
fn late_starts(
    node: usize,
    replays: &[Replay<'_>],
    late_ns: i64,
    streams: &Streams<'_>,
) -> Vec<LateStart> {
    let own = streams.stream_of(replays[0].nodes[node]);
    let may_be = |other: usize| {
        streams.stream_of(replays[0].nodes[other]) != own
            && replays.iter().all(|it| it.ends_before(other, node, streams))
    };
    let late = replays.iter().enumerate().filter(|(_, it)| it.lags_ns[node] > late_ns);
    late.map(|(number, replay)| {
        let ended = replay.ended_before(node, streams);
        LateStart { replay: number, candidates: ended.filter(|&(it, _)| may_be(it)).collect() }
    })
    .collect()
}

/// What a wait between nodes takes in this graph: the median from the last candidate of each
/// late start.
fn usual_wait_ns(found: &[Vec<LateStart>]) -> i64 {
    let last = |start: &LateStart| start.candidates.first().map(|&(_, lag_ns)| lag_ns);
    let mut lags_ns: Vec<_> = found.iter().flatten().filter_map(last).collect();
    lags_ns.sort_unstable();
    lags_ns.get(lags_ns.len() / 2).copied().unwrap_or(0)
}

/// What one node waits for, in all replays: what was the last to end before several late
/// starts, and before those that are left.
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
