//! Edges into the starts of GPU activities: order and launches first, then the rules that explain a
//! later start.

use super::stream_order::Neighbours;
use super::{
    graphs, latent_waits, launches, occupied, overlapped, recorded_waits, released, rivals,
    stream_order, unexplained, unlinked, unrecorded,
};
use crate::error::Result;
use crate::graph::facts::Facts;
use crate::graph::model::{Edge, limits};
use crate::ids::Order;
use crate::progress::{Progress, report};

/// Adds the edges into the start and the end of every GPU activity.
pub(super) fn edges(
    facts: &Facts<'_>,
    edges: &mut Vec<Edge>,
    progress: Progress<'_>,
) -> Result<()> {
    let mut waits = recorded_waits::edges(facts);
    waits.extend(graphs::order(facts));
    waits.sort_by_key(|&(work, _)| work);
    for stream in &facts.streams.all {
        let mut neighbours = Neighbours::default();
        for (row, &work) in stream.works.iter().enumerate() {
            if row % (1 << 14) == 0 {
                report(progress, row as u64)?;
            }
            neighbours.go_to(work, facts.timeline);
            // Added in order of time, so that there is little to sort.
            start_edges(work, &neighbours, &waits, facts, edges);
            stream_order::end_edges(work, &neighbours, facts, edges);
            neighbours.add(work, facts.timeline);
        }
    }
    Ok(())
}

fn start_edges(
    work: Order,
    neighbours: &Neighbours,
    recorded_waits: &[(Order, Edge)],
    facts: &Facts<'_>,
    edges: &mut Vec<Edge>,
) {
    let first = edges.len();
    stream_order::start_edges(work, neighbours, facts, edges);
    launches::edges(work, facts, edges);
    let waits = recorded_waits.partition_point(|&(waiter, _)| waiter < work);
    let waits = recorded_waits[waits..].iter().take_while(|&&(waiter, _)| waiter == work);
    edges.extend(waits.map(|&(_, edge)| edge));
    edges.extend(graphs::waits(work, facts));
    explain(work, neighbours, facts, edges, first);
}

/// Adds the reason of a start that is later than its edges (those from `first` on) explain, or
/// marks the gap as unexplained.
fn explain(
    work: Order,
    neighbours: &Neighbours,
    facts: &Facts<'_>,
    edges: &mut Vec<Edge>,
    first: usize,
) {
    let nodes = facts.nodes;
    let start_ns = facts.timeline.start_ns(work);
    let binding = (first..edges.len())
        .filter(|&place| nodes.time_ns(edges[place].source) <= start_ns)
        .min_by_key(|&place| edges[place].binding_order(nodes, nodes.times_ns()));
    let Some(binding) = binding else {
        if edges.len() == first {
            edges.extend(unlinked::edge(work, facts));
        }
        return;
    };
    let ready_ns = edges[binding].finished_ns(nodes.times_ns());
    let (running, before) = (neighbours.running, neighbours.last_finished());
    edges.extend(latent_waits::edges(work, ready_ns, facts));
    if let Some(lost) = graphs::behind_lost(work, ready_ns, facts) {
        edges.push(lost);
    } else if let Some(reason) = reason(work, running, ready_ns, facts) {
        edges.push(reason);
    } else if running.is_none() {
        let (late_ns, binding) = (start_ns - ready_ns, &mut edges[binding]);
        if !unrecorded::rename_start(work, before, late_ns, binding, facts) {
            unexplained::rename(work, late_ns, binding, facts);
            if let Some(rival) = rivals::of_late_start(work, binding, facts) {
                *binding = binding.with_rival(Some(rival));
            }
        }
    }
}

fn reason(work: Order, running: Option<Order>, ready_ns: i64, facts: &Facts<'_>) -> Option<Edge> {
    let late_ns = facts.timeline.start_ns(work) - ready_ns;
    if let Some(running) = running {
        return overlapped::edge(work, running, late_ns, facts);
    }
    let occupied = || {
        if facts.is_in_graph(work) {
            let is_late = late_ns > limits::GRAPH_GAP_NS;
            return is_late.then(|| occupied::edge_of_node(work, ready_ns, facts)).flatten();
        }
        let is_late = late_ns > limits::LATE_START_NS && facts.timeline.launcher(work).is_some();
        is_late.then(|| occupied::edge(work, facts)).flatten()
    };
    released::edge(work, ready_ns, facts)
        .or_else(|| unlinked::launch(work, ready_ns, facts))
        .or_else(occupied)
}
