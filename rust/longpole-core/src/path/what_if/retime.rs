//! The time of every node after a change, in one pass over the nodes.

use std::cmp::Reverse;

use super::changes::REMOVED;
use crate::error::Result;
use crate::graph::Graph;
use crate::ids::{NO_ROW, NodeId, row_in_column};
use crate::path::schedule::Schedule;
use crate::progress::{Progress, report};

/// Computes all times anew, in the order of the nodes: each comes when the last of its
/// sources, plus lag, has come. Nodes to which nothing leads keep their times. What came after
/// `from_ns` still does.
///
/// Among the edges that reach a node exactly, the binding rule decides.
///
/// # Errors
///
/// Only when `progress` asks to stop.
pub(super) fn retime(
    graph: &Graph,
    lags_ns: &[i64],
    from_ns: Option<i64>,
    progress: Progress<'_>,
) -> Result<Schedule> {
    let from_ns = from_ns.unwrap_or(i64::MIN);
    let mut retimed = Retimed {
        times_ns: graph.nodes.times_ns().to_vec(),
        reached_by: vec![NO_ROW; graph.nodes.len()],
    };
    for node in graph.nodes.ids() {
        if node.row() % (1 << 16) == 0 {
            report(progress, node.row() as u64)?;
        }
        retimed.reach(node, graph, lags_ns);
        if graph.nodes.time_ns(node) > from_ns {
            let time_ns = &mut retimed.times_ns[node.row()];
            *time_ns = from_ns.max(*time_ns);
        }
    }
    let Retimed { times_ns, reached_by } = retimed;
    Ok(Schedule { times_ns: Some(times_ns), reached_by: Some(reached_by) })
}

/// The times of the nodes up to one of them, and the edges that they are reached by.
struct Retimed {
    times_ns: Vec<i64>,
    reached_by: Vec<u32>,
}

impl Retimed {
    fn reach(&mut self, node: NodeId, graph: &Graph, lags_ns: &[i64]) {
        let edges = graph.edges.as_slice();
        let mut range = graph.edges.range(node);
        let reached_ns = |number: usize, times_ns: &[i64]| {
            (lags_ns[number] != REMOVED)
                .then(|| times_ns[edges[number].source.row()].saturating_add(lags_ns[number]))
        };
        let latest = range.clone().filter_map(|number| reached_ns(number, &self.times_ns)).max();
        let Some(time_ns) = latest else { return };
        self.times_ns[node.row()] = time_ns;
        // What bound, and shows as much as it did, still does, though its lag may be less.
        let bound = range.start;
        let shows_as_much = lags_ns[bound] > 0
            && self.times_ns[edges[bound].source.row()]
                .saturating_add(edges[bound].gap_ns(&graph.nodes))
                == time_ns;
        let reaches = |number: &usize| {
            reached_ns(*number, &self.times_ns) == Some(time_ns)
                || (*number == bound && shows_as_much)
        };
        // The edges stand in binding order of the observed times, which settles all
        // but when their sources finished.
        let binding = if range.len() == 1 {
            range.next()
        } else {
            range.filter(reaches).min_by_key(|&number| {
                let (_, class, source, is_end, role) =
                    edges[number].binding_order(&graph.nodes, graph.nodes.times_ns());
                (Reverse(edges[number].finished_ns(&self.times_ns)), class, source, is_end, role)
            })
        };
        self.reached_by[node.row()] = binding.map_or(NO_ROW, row_in_column);
    }
}
