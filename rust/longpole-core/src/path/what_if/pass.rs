//! One pass over the nodes, which times each of them in several what-ifs at once.
//!
//! Memory bandwidth limits a single what-if, so several share a pass: a node has a time for each.
//! Times are floating-point numbers, because every processor adds and compares those in pairs. They
//! are relative to the first node, and thus exact for traces of up to 104 days.

use std::cmp::Reverse;

use super::changes::REMOVED;
use super::rows::{Rows, Times, float};
use crate::error::Result;
use crate::graph::{Edge, Graph, Role};
use crate::ids::{NO_ROW, NodeId, row_in_column};
use crate::progress::{Progress, report};

/// The fixed start of a window: everything before stays the same.
pub(in crate::path) struct FixedStart {
    pub(in crate::path) at_ns: i64,
    /// Number of nodes at or before this time.
    pub(in crate::path) n_before: usize,
}

impl FixedStart {
    pub(in crate::path) fn at(at_ns: i64, graph: &Graph) -> Self {
        let n_before = graph.nodes.times_ns().partition_point(|&time_ns| time_ns <= at_ns);
        Self { at_ns, n_before }
    }

    /// Returns the remaining part of each latency.
    pub(in crate::path) fn left_ns(&self, latencies_ns: &[i64], graph: &Graph) -> Vec<i64> {
        let edges = graph.edges.as_slice().iter();
        let left_ns = |(edge, &latency_ns): (&Edge, &i64)| {
            latency_ns - edge.passed_ns(latency_ns, self.at_ns, &graph.nodes)
        };
        edges.zip(latencies_ns).map(left_ns).collect()
    }
}

/// An additional edge in a what-if.
pub(in crate::path) struct Extra<const LANES: usize> {
    pub(in crate::path) target: NodeId,
    pub(in crate::path) source: NodeId,
    /// The latency in each lane; negative infinity in lanes without this edge.
    pub(in crate::path) latencies: Times<LANES>,
    /// Whether all lanes have this edge.
    pub(in crate::path) is_in_all: bool,
}

/// Storage for node times.
pub(in crate::path) trait Room {
    /// Returns the slot of a node, if its time is needed.
    fn of_node(&self, node: NodeId) -> Option<usize>;
    /// Returns the slot of a node whose time is needed.
    fn slot(&self, node: NodeId) -> usize;
    /// Returns the number of slots.
    fn len(&self) -> usize;
}

/// One slot for each of the given number of nodes.
pub(in crate::path) struct All(pub(in crate::path) usize);

impl Room for All {
    fn of_node(&self, node: NodeId) -> Option<usize> {
        Some(node.row())
    }

    fn slot(&self, node: NodeId) -> usize {
        node.row()
    }

    fn len(&self) -> usize {
        self.0
    }
}

/// The input of a pass besides the rows.
pub(in crate::path) struct Pass<'a, R: Room> {
    pub(in crate::path) graph: &'a Graph,
    /// The remaining latencies at the start.
    pub(in crate::path) latencies_ns: &'a [i64],
    pub(in crate::path) start: Option<&'a FixedStart>,
    pub(in crate::path) room: &'a R,
    /// Number of nodes to time.
    pub(in crate::path) n_nodes: usize,
}

impl<R: Room> Pass<'_, R> {
    /// Computes the time of each needed node in each lane, relative to the first node. `extras`
    /// must be sorted by target.
    ///
    /// # Errors
    ///
    /// Returns an error only if `progress` asks to stop.
    pub(in crate::path) fn run<const LANES: usize>(
        &self,
        rows: &Rows<LANES>,
        extras: impl Iterator<Item = Extra<LANES>>,
        times: &mut Vec<Times<LANES>>,
        progress: Progress<'_>,
    ) -> Result<()> {
        let graph = self.graph;
        times.resize(self.room.len(), [0.0; LANES]);
        let first_ns = graph.nodes.times_ns().first().copied().unwrap_or(0);
        let edges = graph.edges.as_slice();
        let (start_ns, n_before) = self.start.map_or((0, 0), |start| (start.at_ns, start.n_before));
        let mut extras = extras.peekable();
        for node in graph.nodes.ids().take(self.n_nodes) {
            if node.row() % (1 << 16) == 0 {
                report(progress, node.row() as u64)?;
            }
            let Some(slot) = self.room.of_node(node) else { continue };
            while extras.next_if(|extra| extra.target < node).is_some() {}
            if node.row() < n_before {
                times[slot] = [float(start_ns - first_ns); LANES];
                continue;
            }
            let mut latest = [f64::NEG_INFINITY; LANES];
            let mut is_led_to = false;
            for number in graph.edges.range(node) {
                let source = &times[self.room.slot(edges[number].source)];
                let (latencies, is_kept) = rows.latencies(number, self.latencies_ns[number]);
                reach(&mut latest, source, &latencies);
                is_led_to |= is_kept;
            }
            while let Some(extra) = extras.next_if(|extra| extra.target == node) {
                reach(&mut latest, &times[self.room.slot(extra.source)], &extra.latencies);
                is_led_to |= extra.is_in_all;
            }
            // A node without incoming edges keeps its time; all other nodes come after the first
            // one.
            if !is_led_to && latest.iter().any(|time_ns| *time_ns < 0.0) {
                let observed_ns = float(graph.nodes.time_ns(node) - first_ns);
                latest = latest.map(|time_ns| if time_ns < 0.0 { observed_ns } else { time_ns });
            }
            times[slot] = latest;
        }
        Ok(())
    }
}

/// Raises the time of a node to what an edge requires, in each lane.
#[inline]
fn reach<const LANES: usize>(
    latest: &mut Times<LANES>,
    source: &Times<LANES>,
    latencies: &Times<LANES>,
) {
    for lane in 0..LANES {
        let reached = source[lane] + latencies[lane];
        latest[lane] = if reached > latest[lane] { reached } else { latest[lane] };
    }
}

// The edge by which each node is reached after a change.

/// Returns the edge by which each node is reached at new times, [`NO_ROW`] for none.
///
/// Among the edges that reach a node exactly, the binding order decides.
pub(super) fn reached_by(graph: &Graph, latencies_ns: &[i64], times_ns: &[i64]) -> Vec<u32> {
    let new = Retimed { graph, latencies_ns, times_ns };
    graph.nodes.ids().map(|node| new.reached_by(node).map_or(NO_ROW, row_in_column)).collect()
}

/// The times and minimum latencies after a change.
struct Retimed<'a> {
    graph: &'a Graph,
    latencies_ns: &'a [i64],
    times_ns: &'a [i64],
}

impl Retimed<'_> {
    fn reached_by(&self, node: NodeId) -> Option<usize> {
        let edges = self.graph.edges.as_slice();
        let mut range = self.graph.edges.range(node);
        let latest_ns = range.clone().filter_map(|number| self.reached_ns(number)).max()?;
        if range.len() == 1 {
            return range.next();
        }
        // An edge that bound, and still has its full time, still binds, although its latency may be
        // smaller.
        let bound = range.start;
        let shows_as_much = self.latencies_ns[bound] > 0
            && self.times_ns[edges[bound].source.row()]
                .saturating_add(edges[bound].gap_ns(&self.graph.nodes))
                == latest_ns;
        let reaches = |number: &usize| {
            self.reached_ns(*number) == Some(latest_ns) || (*number == bound && shows_as_much)
        };
        // The edges are in binding order of the observed times. Only the finishing times of their
        // sources can change that order.
        range.filter(reaches).min_by_key(|&number| {
            let nodes = &self.graph.nodes;
            let (_, class, source, is_end, role) =
                edges[number].binding_order(nodes, nodes.times_ns());
            (Reverse(edges[number].finished_ns(self.times_ns)), class, source, is_end, role)
        })
    }

    fn reached_ns(&self, number: usize) -> Option<i64> {
        let latency_ns =
            Some(self.latencies_ns[number]).filter(|&latency_ns| latency_ns != REMOVED)?;
        let source = self.graph.edges.as_slice()[number].source;
        Some(self.times_ns[source.row()].saturating_add(latency_ns))
    }
}

// The minimum latency of each edge.

/// Returns the minimum latency that each edge adds to its source, one row per edge.
///
/// A binding edge keeps its observed time. For other edges, the latency is the time that would
/// remain without anything else in the way. No latency exceeds the observed time, and some edge
/// into each node keeps all of it, so that unchanged latencies reproduce every observed time.
///
/// If the predecessor of an activity ended while its launch was on the way, the activity began when
/// the launch arrived. In that case the launch keeps its full time, and the predecessor has the
/// typical latency.
pub fn latencies_ns(graph: &Graph) -> Vec<i64> {
    let mut latencies_ns = Vec::with_capacity(graph.edges.len());
    for node in graph.nodes.ids() {
        let edges = &graph.edges.as_slice()[graph.edges.range(node)];
        let Some((binding, others)) = edges.split_first() else { continue };
        let arriving = others.iter().position(|it| graph.was_on_the_way(it, binding));
        latencies_ns.push(match arriving {
            Some(_) => graph.typical_ns(binding.role),
            None => binding.gap_ns(&graph.nodes),
        });
        latencies_ns.extend(others.iter().enumerate().map(|(place, edge)| match arriving {
            Some(launch) if launch == place => edge.gap_ns(&graph.nodes),
            _ => latency_ns(edge, binding, graph),
        }));
    }
    latencies_ns
}

fn latency_ns(edge: &Edge, binding: &Edge, graph: &Graph) -> i64 {
    if !edge.role.is_self_time() {
        return edge.gap_ns(&graph.nodes).min(graph.typical_ns(edge.role));
    }
    match binding.role {
        Role::Handover => 0,
        _ => graph.nodes.time_ns(edge.target) - binding.finished_ns(graph.nodes.times_ns()),
    }
}
