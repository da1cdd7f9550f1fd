//! Graphs over several streams: their nodes wait for each other, and for a stream the
//! whole graph is one operation.

use crate::graph::facts::Facts;
use crate::graph::model::{first_of_last, latest_to_end, limits, Edge, Evidence, Kind, Role};
use crate::ids::Order;

/// The edges from the nodes that a node was learned to wait for.
pub(super) fn learned<'f>(
    work: Order,
    facts: &'f Facts<'_>,
) -> impl Iterator<Item = Edge> + use<'f> {
    let producers = facts.graphs.waits.get(&work).map_or(&[][..], Vec::as_slice);
    producers.iter().map(move |&it| facts.wait_edge(it, work, Evidence::Replayed))
}

/// The edge from a node of another stream of the same launch that ended just before this
/// one began, where the graph was not launched often enough to learn from.
pub(super) fn released(work: Order, ready_ns: i64, facts: &Facts<'_>) -> Option<Edge> {
    let timeline = facts.timeline;
    let (call, start_ns) = (timeline.launcher(work)?, timeline.start_ns(work));
    let is_late = start_ns - ready_ns > limits::LATE_NODE_NS;
    if !is_late || facts.graphs.learned.contains(&call) || !facts.is_in_graph(work) {
        return None;
    }
    let after_ns = ready_ns.max(start_ns - limits::WAIT_RELEASE_NS - 1);
    let is_of_launch = |&(_, other): &(i64, Order)| timeline.launcher(other) == Some(call);
    let producer = latest_to_end(facts.other_streams(work).filter_map(|stream| {
        let ended = facts.streams.all[stream].ending_in(after_ns, start_ns);
        first_of_last(ended.filter(is_of_launch))
    }))?;
    Some(facts.wait_edge(producer, work, Evidence::Inferred))
}

/// The edges that make a graph one operation of the stream of its first node: the next
/// work there follows the last node of every stream, and the first node of every stream
/// the work before. In order of the work that waits.
pub(super) fn order(facts: &Facts<'_>) -> Vec<(Order, Edge)> {
    let mut found: Vec<_> =
        facts.graphs.over_streams.iter().flat_map(|&call| around(call, facts)).collect();
    found.sort_by_key(|&(work, _)| work);
    found
}

fn around(call: Order, facts: &Facts<'_>) -> Vec<(Order, Edge)> {
    let (streams, timeline) = (&facts.streams, facts.timeline);
    let works = streams.launched_by(call);
    let home = streams.stream_of(works[0]);
    let called_ns = timeline.start_ns(call);
    let before = streams.all[home].last_submitted_before(called_ns);
    let next = streams.all[home].next_submitted_after(called_ns);
    let edge = |source: Order, target: Order| {
        let nodes = (facts.nodes.end(source), facts.nodes.start(target));
        let named = (Kind::KernelDelay, Role::GraphOrder);
        let is_forward = timeline.end_ns(source) <= timeline.start_ns(target);
        let edge = Edge::new(nodes, named, Some(target), Evidence::Inferred);
        is_forward.then_some((target, edge))
    };
    let (first, last) = ends_of_streams(works, facts);
    let first = first.into_iter().filter_map(|node| edge(before?, node));
    let last = last.into_iter().filter_map(|node| edge(node, next?));
    first.chain(last).collect()
}

/// The first to start and the last to end of some work on each stream but the first.
fn ends_of_streams(works: &[Order], facts: &Facts<'_>) -> (Vec<Order>, Vec<Order>) {
    let mut by_stream: std::collections::BTreeMap<usize, (Order, Order)> =
        std::collections::BTreeMap::new();
    for &work in works {
        let ends = by_stream.entry(facts.streams.stream_of(work)).or_insert((work, work));
        if facts.timeline.end_ns(work) > facts.timeline.end_ns(ends.1) {
            ends.1 = work;
        }
    }
    by_stream.remove(&facts.streams.stream_of(works[0]));
    by_stream.into_values().unzip()
}
