//! Graphs over several streams: their nodes wait for each other, and each stream treats the whole
//! graph as one operation.

use crate::graph::facts::Facts;
use crate::graph::model::{Edge, Evidence, Kind, Role, latest_to_end};
use crate::ids::Order;

/// Returns the edges from the nodes that a node waits for, learned from several launches or
/// inferred.
pub(super) fn waits(work: Order, facts: &Facts<'_>) -> impl Iterator<Item = Edge> {
    let producers = facts.graphs.waits.get(&work).map_or(&[][..], Vec::as_slice);
    let call = facts.timeline.launcher(work);
    let is_learned =
        !producers.is_empty() && call.is_some_and(|call| facts.graphs.learned.contains(&call));
    let evidence = if is_learned { Evidence::Replayed } else { Evidence::Inferred };
    let rival = facts.graphs.rivals.get(&work).copied();
    producers.iter().map(move |&it| facts.wait_edge(it, work, evidence).with_rival(rival))
}

/// Returns the edge of a start that follows missing nodes, for starts that are later than all
/// recorded dependencies explain: they began when the missing nodes ended.
pub(super) fn after_missing(work: Order, ready_ns: i64, facts: &Facts<'_>) -> Option<Edge> {
    let behind = facts.graphs.after_missing.get(&work)?;
    let timeline = facts.timeline;
    if timeline.start_ns(work) - ready_ns <= behind.late_ns {
        return None;
    }
    let was_over = |&source: &Order| timeline.end_ns(source) <= timeline.start_ns(work);
    let sources = behind.sources.iter().copied().filter(was_over);
    let last = latest_to_end(sources.map(|source| (timeline.end_ns(source), source)));
    let called = timeline.launcher(work).map(|call| facts.nodes.end(call));
    let ends = last.map(|source| facts.nodes.end(source)).into_iter().chain(called);
    let source = ends.filter(|&it| facts.nodes.time_ns(it) <= timeline.start_ns(work)).max()?;
    let nodes = (source, facts.nodes.start(work));
    Some(Edge::new(nodes, (Kind::Unrecorded, Role::MissingNode), Some(work), Evidence::None))
}

/// Returns the edges that make a graph one operation of the stream of its first node: the next
/// activity there follows the last node of every stream, and the first node of every stream follows
/// the activity before. Sorted by waiting activity.
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
    let next = streams.all[home].submitted_after(called_ns).next();
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

/// Returns the first activity to start and the last to end on each stream but the first.
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
