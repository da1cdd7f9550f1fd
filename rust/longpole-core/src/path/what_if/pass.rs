//! One pass over the nodes, which times each of them in several what-ifs at once.
//!
//! Memory bandwidth limits a single what-if, so several share a pass: a node has a time for each.
//! Times are floating-point numbers, because every processor adds and compares those in pairs. They
//! are relative to the first node, and thus exact for traces of up to 104 days.

use super::rows::{Rows, Times, float};
use crate::error::Result;
use crate::graph::{Edge, Graph};
use crate::ids::NodeId;
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
    pub(in crate::path) fn left_ns(&self, lags_ns: &[i64], graph: &Graph) -> Vec<i64> {
        let edges = graph.edges.as_slice().iter();
        let left_ns = |(edge, &lag_ns): (&Edge, &i64)| {
            lag_ns - edge.passed_ns(lag_ns, self.at_ns, &graph.nodes)
        };
        edges.zip(lags_ns).map(left_ns).collect()
    }
}

/// An additional edge in a what-if.
pub(in crate::path) struct Extra<const LANES: usize> {
    pub(in crate::path) target: NodeId,
    pub(in crate::path) source: NodeId,
    /// The latency in each lane; negative infinity in lanes without this edge.
    pub(in crate::path) lags: Times<LANES>,
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
    pub(in crate::path) lags_ns: &'a [i64],
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
                let (lags, is_kept) = rows.lags(number, self.lags_ns[number]);
                reach(&mut latest, source, &lags);
                is_led_to |= is_kept;
            }
            while let Some(extra) = extras.next_if(|extra| extra.target == node) {
                reach(&mut latest, &times[self.room.slot(extra.source)], &extra.lags);
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
    lags: &Times<LANES>,
) {
    for lane in 0..LANES {
        let reached = source[lane] + lags[lane];
        latest[lane] = if reached > latest[lane] { reached } else { latest[lane] };
    }
}
