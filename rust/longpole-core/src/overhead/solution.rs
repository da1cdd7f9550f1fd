//! The trace without the recording cost.

use std::cell::LazyCell;
use std::sync::Arc;

use super::classes::Class;
use super::costs::Costs;
use super::pieces::{At, Pieces};
use crate::error::Result;
use crate::graph::{Edge, Graph};
use crate::ids::NodeId;
use crate::path;
use crate::path::{Scope, moved};
use crate::progress::{Progress, report};
use crate::stack::Nesting;
use crate::tables::{NO_INTEGER, Tables};

/// The same events at the estimated times without a profiler.
#[derive(Debug, Clone)]
pub struct Solution {
    /// The tables with these times.
    pub tables: Tables,
    /// The graph of these tables.
    pub graph: Graph,
    /// The length of the shown window.
    pub lengths: Lengths,
}

/// The length of the shown window of a scope, with bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lengths {
    /// The length as recorded.
    pub recorded_ns: i64,
    /// The length without the recording cost.
    pub usual_ns: i64,
    /// Lower bound, for the largest recording cost.
    pub least_ns: i64,
    /// Upper bound, for the smallest recording cost.
    pub most_ns: i64,
    /// The difference between two runs of one program on one machine in percent, in addition.
    pub run_percent: i64,
}

impl Lengths {
    /// Returns the lengths with `factor` times the recording cost subtracted, none of them longer
    /// than the recorded one.
    ///
    /// # Errors
    ///
    /// Returns an error only if `progress` asks to stop.
    pub fn of(
        graph: &Graph,
        tables: &Tables,
        nesting: &Nesting,
        costs: &Costs,
        (scope, factor): (&Scope, f64),
        progress: Progress<'_>,
    ) -> Result<Self> {
        let pieces = Pieces::of(graph, tables, nesting);
        let latencies_ns = path::latencies_ns(graph);
        Self::with(graph, &latencies_ns, (costs, &pieces), (scope, factor), progress)
    }

    fn with(
        graph: &Graph,
        latencies_ns: &[i64],
        (costs, pieces): (&Costs, &Pieces),
        (scope, factor): (&Scope, f64),
        progress: Progress<'_>,
    ) -> Result<Self> {
        let recorded_ns = usual_ns(graph, scope, graph.nodes.times_ns());
        let together = costs.together();
        let length_ns = |at, factor| {
            let costs_ns = pieces.costs_ns(&together, at);
            let times_ns = times_ns(graph, latencies_ns, &costs_ns, factor, progress)?;
            Result::Ok(usual_ns(graph, scope, &times_ns).min(recorded_ns))
        };
        let (usual_ns, least_ns) = (length_ns(At::Usual, factor)?, length_ns(At::Most, 1.0)?);
        let host_limits = recorded_ns - least_ns > recorded_ns / HOST_LIMITS_ONE_IN;
        let varies = host_limits || costs.of(Class::GraphLaunch).is_some();
        Ok(Self {
            recorded_ns,
            usual_ns,
            least_ns: least_ns.min(usual_ns),
            most_ns: length_ns(At::Least, 1.0)?.max(usual_ns),
            run_percent: if varies { HOST_PERCENT } else { DEVICE_PERCENT },
        })
    }
}

/// Why no factor of the costs gives a window the requested length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misfit {
    /// The requested length is longer than the recorded one.
    Longer,
    /// The requested length is shorter than the given one, which remains without all costs.
    Shorter(i64),
}

/// Above this factor, subtracting more changes little.
const GREATEST_FACTOR: f64 = 64.0;

/// Tolerance for a requested length outside the possible range, because of rounding.
const TOLERANCE_PER_MILLE: i64 = 5;

/// Difference between two runs of one program on one machine in percent, if the host limits it
/// and if a device does. Recording the kernels of a CUDA graph one by one makes the device slower,
/// by up to 9 % of a graph of 450 small kernels.
const HOST_PERCENT: i64 = 10;

const DEVICE_PERCENT: i64 = 5;

/// The host limits a program whose recording cost is more than one part in this many of the window.
const HOST_LIMITS_ONE_IN: i64 = 500;

/// Maximum number of steps in the search for a factor.
const MOST_TRIALS: usize = 48;

/// Subtracts `factor` times the recording cost.
///
/// # Errors
///
/// Returns an error only if `progress` asks to stop.
pub fn solution(
    graph: Graph,
    tables: &Tables,
    nesting: &Nesting,
    costs: &Costs,
    (scope, factor): (&Scope, f64),
    progress: Progress<'_>,
) -> Result<Solution> {
    let latencies_ns = path::latencies_ns(&graph);
    let pieces = Pieces::of(&graph, tables, nesting);
    let (of_graph, about) = ((costs, &pieces), (scope, factor));
    let lengths = Lengths::with(&graph, &latencies_ns, of_graph, about, progress)?;
    let costs_ns = pieces.costs_ns(costs, At::Usual);
    drop(pieces);
    let times_ns = times_ns(&graph, &latencies_ns, &costs_ns, factor, progress)?;
    drop((latencies_ns, costs_ns));
    let tables = moved_tables(&graph, tables, &times_ns);
    drop(times_ns);
    let graph = graph.retimed(&tables);
    Ok(Solution { tables, graph, lengths })
}

/// Returns the factor of the costs with which the usual window takes `step_ns`.
///
/// # Errors
///
/// Returns an error only if `progress` asks to stop. The inner error is the reason why no factor
/// exists.
pub fn fitted(
    graph: &Graph,
    tables: &Tables,
    nesting: &Nesting,
    costs: &Costs,
    (scope, step_ns): (&Scope, i64),
    progress: Progress<'_>,
) -> Result<std::result::Result<f64, Misfit>> {
    let latencies_ns = path::latencies_ns(graph);
    let costs_ns = Pieces::of(graph, tables, nesting).costs_ns(costs, At::Usual);
    let length_ns = |factor: f64| {
        let times_ns = times_ns(graph, &latencies_ns, &costs_ns, factor, progress)?;
        Result::Ok(usual_ns(graph, scope, &times_ns))
    };
    let tolerance_ns = step_ns / 1000 * TOLERANCE_PER_MILLE;
    let recorded_ns = length_ns(0.0)?;
    if step_ns > recorded_ns + tolerance_ns {
        return Ok(Err(Misfit::Longer));
    }
    let shortest_ns = length_ns(GREATEST_FACTOR)?;
    if step_ns < shortest_ns - tolerance_ns {
        return Ok(Err(Misfit::Shorter(shortest_ns)));
    }
    let (mut low, mut high) = (0.0, GREATEST_FACTOR);
    for _ in 0..MOST_TRIALS {
        let middle = f64::midpoint(low, high);
        match length_ns(middle)?.cmp(&step_ns) {
            std::cmp::Ordering::Greater => low = middle,
            std::cmp::Ordering::Less => high = middle,
            std::cmp::Ordering::Equal => return Ok(Ok(middle)),
        }
    }
    Ok(Ok(high))
}

/// Returns the length of the shown window at other times of its events.
fn usual_ns(graph: &Graph, scope: &Scope, times_ns: &[i64]) -> i64 {
    let (start_ns, end_ns) = moved(graph, scope.window(), &|node| times_ns[node.row()]);
    end_ns - start_ns
}

/// Returns the tables with the events at new node times.
fn moved_tables(graph: &Graph, tables: &Tables, times_ns: &[i64]) -> Tables {
    let events = &tables.events;
    let moments = LazyCell::new(|| Moments::of(graph, times_ns));
    let mut starts = Vec::with_capacity(events.len());
    let mut durations = Vec::with_capacity(events.len());
    for event in events.ids() {
        let known = graph.stamps_ns(event, times_ns);
        let lane = events.lane(event).row();
        let start_ns =
            known.map_or_else(|| moments.moved_ns(lane, events.start_ns(event)), |it| it.0);
        starts.push(start_ns);
        durations.push(match (known, events.duration_ns(event)) {
            (Some((start_ns, end_ns)), _) => end_ns - start_ns,
            (None, Some(_)) if events.end_ns(event).is_some() => {
                moments.moved_ns(lane, events.end_ns(event).unwrap_or_default()) - start_ns
            }
            (None, duration_ns) => duration_ns.unwrap_or(NO_INTEGER),
        });
    }
    Tables { events: Arc::new(events.retimed(starts, durations)), ..tables.clone() }
}

/// The shift of times between events: that of the nearest events on the same thread or stream,
/// otherwise of the thread with the most events.
struct Moments {
    /// Recorded and new time of each event, by lane, in order.
    of_lane: Vec<Vec<(i64, i64)>>,
    busiest: usize,
}

impl Moments {
    fn of(graph: &Graph, times_ns: &[i64]) -> Self {
        let mut of_lane: Vec<Vec<(i64, i64)>> = Vec::new();
        let mut counts: Vec<usize> = Vec::new();
        for node in graph.nodes.ids() {
            let event = graph.nodes.event(node);
            let lane = graph.timeline.lane(event);
            if of_lane.len() <= lane {
                of_lane.resize(lane + 1, Vec::new());
                counts.resize(lane + 1, 0);
            }
            let shift_ns = graph.timeline.clock_shift_ns(event);
            let moment = (graph.nodes.time_ns(node) - shift_ns, times_ns[node.row()] - shift_ns);
            of_lane[lane].push(moment);
            counts[lane] += usize::from(!graph.timeline.kind(event).is_device_work());
        }
        let busiest = (0..counts.len()).max_by_key(|&lane| (counts[lane], std::cmp::Reverse(lane)));
        Self { of_lane, busiest: busiest.unwrap_or(0) }
    }

    fn moved_ns(&self, lane: usize, time_ns: i64) -> i64 {
        let own = self.of_lane.get(lane).filter(|moments| !moments.is_empty());
        let Some(moments) = own.or_else(|| self.of_lane.get(self.busiest)) else { return time_ns };
        let behind = moments.partition_point(|moment| moment.0 <= time_ns);
        let before = behind.checked_sub(1).map(|place| moments[place]);
        match (before, moments.get(behind)) {
            (Some(before), Some(next)) => {
                let passed_ns = i128::from(time_ns - before.0);
                let (recorded_ns, left_ns) = (next.0 - before.0, next.1 - before.1);
                let part = passed_ns * i128::from(left_ns) / i128::from(recorded_ns.max(1));
                before.1 + i64::try_from(part).unwrap_or(0)
            }
            (Some(last), None) => time_ns + (last.1 - last.0),
            (None, Some(first)) => time_ns + (first.1 - first.0),
            (None, None) => time_ns,
        }
    }
}

// The time of every node without the recording cost.

/// Returns the times of all nodes after `factor` times the recording cost is subtracted. Each node
/// happens when its last source and the remaining time of that edge have passed. Nodes without
/// incoming edges keep their times.
///
/// # Errors
///
/// Returns an error only if `progress` asks to stop.
pub(super) fn times_ns(
    graph: &Graph,
    latencies_ns: &[i64],
    costs_ns: &[i64],
    factor: f64,
    progress: Progress<'_>,
) -> Result<Vec<i64>> {
    let mut times_ns = graph.nodes.times_ns().to_vec();
    let edges = graph.edges.as_slice();
    for node in graph.nodes.ids() {
        if node.row() % (1 << 16) == 0 {
            report(progress, node.row() as u64)?;
        }
        let reached_ns = |number: usize| {
            let edge: &Edge = &edges[number];
            times_ns[edge.source.row()].saturating_add(left_ns(
                latencies_ns[number],
                costs_ns[number],
                factor,
            ))
        };
        if let Some(time_ns) = graph.edges.range(node).map(reached_ns).max() {
            times_ns[node.row()] = time_ns;
        }
    }
    Ok(times_ns)
}

/// Returns the remaining part of an edge's time. It stays above zero if the edge took time, so that
/// the order is kept.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)] // of microseconds
fn left_ns(latency_ns: i64, cost_ns: i64, factor: f64) -> i64 {
    if cost_ns == 0 || latency_ns <= 1 {
        return latency_ns;
    }
    (latency_ns - (cost_ns as f64 * factor) as i64).max(1)
}

/// Returns the minimum latencies of the edges of a solution, for the largest and for the smallest
/// recording cost.
///
/// `graph` and `tables` are those of the solution, `recorded` the tables of the trace, and `factor`
/// that of the costs. No latency exceeds the recorded one.
#[must_use]
pub fn latency_bounds_ns(
    graph: &Graph,
    tables: &Tables,
    recorded: &Tables,
    nesting: &Nesting,
    (costs, factor): (&Costs, f64),
) -> [Vec<i64>; 2] {
    let latencies_ns = path::latencies_ns(graph);
    let pieces = Pieces::of(graph, tables, nesting);
    let usual_ns = pieces.costs_ns(costs, At::Usual);
    [At::Most, At::Least].map(|at| {
        let other_ns = pieces.costs_ns(costs, at);
        let bound_ns = |(number, edge): (usize, &Edge)| {
            let latency_ns = latencies_ns[number];
            let more_ns = scaled(usual_ns[number] - other_ns[number], factor);
            if more_ns == 0 || latency_ns < 1 {
                return latency_ns;
            }
            let [start_ns, end_ns] =
                [edge.source, edge.target].map(|node| recorded_ns(graph, recorded, node));
            (latency_ns + more_ns).min(end_ns - start_ns).max(1)
        };
        graph.edges.as_slice().iter().enumerate().map(bound_ns).collect()
    })
}

#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)] // of microseconds
fn scaled(time_ns: i64, factor: f64) -> i64 {
    (time_ns as f64 * factor) as i64
}

/// Returns the recorded time of a node.
fn recorded_ns(graph: &Graph, recorded: &Tables, node: NodeId) -> i64 {
    let event = graph.timeline.event(graph.nodes.event(node));
    let (start_ns, end_ns) = recorded.events.span(event).unwrap_or_default();
    if graph.nodes.is_end(node) { end_ns } else { start_ns }
}
