//! What the replays of a graph have in common: which node waits for which.
//!
//! A graph launch does not say how its nodes depend on each other. Of nodes on one stream
//! order tells; between streams three or more replays do: a node that starts late, again
//! and again just after the end of the same node of another stream, waits for it. A node
//! waited for must have ended before the start in *every* replay, else two branches that
//! merely run at the same pace would become dependent.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use super::purposes::Purposes;
use crate::graph::model::{limits, Streams};
use crate::ids::Order;
use crate::vocabulary::ApiRole;

/// The graph launches of a trace.
#[derive(Default)]
pub(in crate::graph) struct Graphs {
    /// For nodes, what they wait for, learned from replays.
    pub(in crate::graph) waits: HashMap<Order, Vec<Order>>,
    /// The launches of graphs that were replayed often enough to learn from.
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
            learn(&replays, streams, &mut graphs.waits);
        }
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
    for node in 0..replays[0].nodes.len() {
        for producer in producers(node, &replays, late_ns, streams) {
            for replay in &replays {
                let found = waits.entry(replay.nodes[node]).or_default();
                found.push(replay.nodes[producer]);
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
    /// how long before.
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

/// What one node waits for, in all replays.
fn producers(
    node: usize,
    replays: &[Replay<'_>],
    late_ns: i64,
    streams: &Streams<'_>,
) -> Vec<usize> {
    let own = streams.stream_of(replays[0].nodes[node]);
    let mut supports: BTreeMap<usize, Vec<(usize, i64)>> = BTreeMap::new();
    for (number, replay) in replays.iter().enumerate() {
        if replay.lags_ns[node] <= late_ns {
            continue;
        }
        for (other, lag_ns) in replay.ended_before(node, streams) {
            if streams.stream_of(replay.nodes[other]) != own {
                supports.entry(other).or_default().push((number, lag_ns));
            }
        }
    }
    supports.retain(|&other, found| {
        found.len() >= limits::LEAST_SUPPORT
            && replays.iter().all(|it| it.ends_before(other, node, streams))
    });
    chosen(supports)
}

/// Takes the candidate that explains most late starts, the closest of several, and then
/// again of what is left.
fn chosen(mut supports: BTreeMap<usize, Vec<(usize, i64)>>) -> Vec<usize> {
    let mut found = Vec::new();
    loop {
        let strength = |(_, supported): &(&usize, &Vec<(usize, i64)>)| {
            (supported.len(), Reverse(supported.iter().map(|&(_, lag_ns)| lag_ns).sum::<i64>()))
        };
        let Some((&best, supported)) = supports.iter().rev().max_by_key(strength) else { break };
        if supported.len() < limits::LEAST_SUPPORT {
            break;
        }
        let explained: HashSet<_> = supported.iter().map(|&(replay, _)| replay).collect();
        found.push(best);
        supports.remove(&best);
        for supported in supports.values_mut() {
            supported.retain(|(replay, _)| !explained.contains(replay));
        }
    }
    found
}
