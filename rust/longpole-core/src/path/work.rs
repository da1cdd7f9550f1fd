//! The work in each step, without waits.

use crate::graph::{Edge, Graph, Kind, Role};
use crate::ids::{EventId, row_in_column};

/// The work of one event in one step, or of the host outside events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Work {
    /// The event; `None` between events.
    pub event: Option<EventId>,
    /// The kind of its time.
    pub kind: Kind,
    /// The row of the step.
    pub step: u32,
    /// Its duration.
    pub work_ns: i64,
}

/// Returns the work of each event in each step, sorted by event, kind and step.
///
/// Work belongs to the step in which the host was when it began or, for a GPU activity, when it was
/// launched. `steps` are the time ranges of the steps, in order. For a call that waits, only its
/// own work counts, not its wait.
pub fn work(graph: &Graph, lags_ns: &[i64], steps: &[(i64, i64)]) -> Vec<Work> {
    let step_at = |time_ns: i64| {
        let row = steps.partition_point(|step| step.0 <= time_ns).checked_sub(1)?;
        (time_ns < steps[row].1).then(|| row_in_column(row))
    };
    let row = |(edge, &work_ns): (&Edge, &i64)| {
        let event = edge.event().map(|order| graph.timeline.event(order));
        let step = step_at(begun_ns(graph, edge))?;
        Some(Work { event, kind: edge.kind, step, work_ns })
    };
    let edges = graph.edges.as_slice().iter().zip(lags_ns);
    let mut rows: Vec<Work> = edges.filter(|(edge, _)| is_work(edge)).filter_map(row).collect();
    rows.sort_unstable();
    rows.dedup_by(|row, kept| {
        let is_same = (row.event, row.kind, row.step) == (kept.event, kept.kind, kept.step);
        if is_same {
            kept.work_ns += row.work_ns;
        }
        is_same
    });
    rows
}

/// Whether an edge is work. What a call does for a copy, such as staging it, takes the time of the
/// copy itself, which would count twice.
fn is_work(edge: &Edge) -> bool {
    let is_of_device = matches!(edge.kind, Kind::Kernel | Kind::Copy | Kind::Communication);
    match edge.role {
        Role::DeviceWork => edge.kind.is_work(),
        Role::ThreadOrder => edge.kind.is_work() && !is_of_device,
        _ => false,
    }
}

/// Returns when the host began the work: at its launch call, if known.
fn begun_ns(graph: &Graph, edge: &Edge) -> i64 {
    let call = edge.event().and_then(|order| graph.timeline.launcher(order));
    call.map_or_else(|| graph.nodes.time_ns(edge.source), |call| graph.timeline.start_ns(call))
}
