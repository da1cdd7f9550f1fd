//! The nodes that may complete a step or the trace, without those that end before another one.
//!
//! A step is complete when the last event of a thread and all of its GPU activities have ended.
//! Activities of a stream that always end before others of the same step can be ignored.

use std::collections::{HashMap, HashSet};

use crate::error::Result;
use crate::graph::{Graph, Role};
use crate::ids::NodeId;
use crate::link::Launches;
use crate::path::{self, Marked, Moment, Steps, Window};
use crate::tables::Tables;

/// A completion of a step, or of the whole trace (`None`).
pub(super) struct Completion {
    pub(super) step: Option<i64>,
    /// The nodes that may come last, in order.
    pub(super) candidates: Vec<NodeId>,
}

/// The steps of a rank, its window, and their completions.
pub(super) struct Completions {
    pub(super) steps: Option<Steps>,
    pub(super) whole: Option<Window>,
    pub(super) rows: Vec<Completion>,
}

impl Completions {
    /// # Errors
    ///
    /// Returns an error if `step_name` is not a valid regular expression.
    pub(super) fn of(
        tables: &Tables,
        launches: &Launches,
        graph: &Graph,
        step_name: Option<&str>,
    ) -> Result<Self> {
        let found = path::steps(tables, launches, step_name)?;
        let steps = Some(found).filter(|steps| !matches!(steps.marked, Marked::Repetition(_)));
        let whole = path::whole(tables).ok();
        let mut rows = Vec::new();
        let mut known = HashSet::new();
        for step in steps.iter().flat_map(|steps| &steps.rows) {
            let candidates = outlasting(graph, &step.period.candidates);
            if !candidates.is_empty() && known.insert(step.number) {
                rows.push(Completion { step: Some(step.number), candidates });
            }
        }
        if let Some(window) = &whole {
            let candidates = outlasting(graph, &window.candidates);
            rows.push(Completion { step: None, candidates });
        }
        Ok(Self { steps, whole, rows })
    }
}

/// Start, end and number of a step on the host.
pub(super) type StepSpan = (i64, i64, i64);

impl Completions {
    /// For each candidate node, returns the completions that it may determine.
    pub(super) fn by_candidate(&self) -> HashMap<NodeId, Vec<usize>> {
        let mut found: HashMap<NodeId, Vec<usize>> = HashMap::new();
        for (place, completion) in self.rows.iter().enumerate() {
            for &node in &completion.candidates {
                found.entry(node).or_default().push(place);
            }
        }
        found
    }

    /// Returns the steps, in order of time.
    pub(super) fn step_spans(&self) -> Vec<StepSpan> {
        let rows = self.steps.iter().flat_map(|steps| &steps.rows);
        let mut spans: Vec<_> =
            rows.map(|row| (row.host_ns.0, row.host_ns.1, row.number)).collect();
        spans.sort_unstable();
        spans
    }
}

/// Returns the number of the step at a host time.
pub(super) fn step_at(spans: &[StepSpan], time_ns: i64) -> Option<i64> {
    let behind = spans.partition_point(|span| span.0 <= time_ns);
    let span = spans.get(behind.checked_sub(1)?)?;
    (time_ns < span.1).then_some(span.2)
}

/// Maximum number of nodes before the last candidate that are searched for nodes that end before
/// it. Earlier nodes stay candidates, which never changes the result. A search to the beginning for
/// every step would be quadratic.
const FARTHEST: usize = 10_000;

/// Returns the nodes of the given moments that do not certainly come before another of them.
fn outlasting(graph: &Graph, moments: &[Moment]) -> Vec<NodeId> {
    let node = |moment: &Moment| match *moment {
        Moment::Start(event) => graph.start_of(event),
        Moment::End(event) => graph.end_of(event),
    };
    let mut nodes: Vec<_> = moments.iter().filter_map(node).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let (Some(first), Some(last)) = (nodes.first(), nodes.last()) else { return nodes };
    let (first, last) = (first.row().max(last.row().saturating_sub(FARTHEST)), last.row());
    let mut is_candidate = vec![false; last - first + 1];
    for node in nodes.iter().filter(|node| node.row() >= first) {
        is_candidate[node.row() - first] = true;
    }
    let mut is_outlasted = vec![false; last - first + 1];
    for row in (first..=last).rev() {
        if !(is_candidate[row - first] || is_outlasted[row - first]) {
            continue;
        }
        for edge in &graph.edges.as_slice()[graph.edges.range(NodeId::from_row(row))] {
            if edge.source.row() >= first && keeps_order(edge.role) {
                is_outlasted[edge.source.row() - first] = true;
            }
        }
    }
    nodes.retain(|node| node.row() < first || !is_outlasted[node.row() - first]);
    nodes
}

/// Whether an edge remains under any change and never leads back in time.
fn keeps_order(role: Role) -> bool {
    matches!(role, Role::ThreadOrder | Role::StreamOrder | Role::DeviceWork)
}
