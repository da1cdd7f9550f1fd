//! Which nodes may complete a step or the trace, without those that another one outlasts.
//!
//! A step is complete when the last of a thread and of all its device work is. Where work
//! of a stream always ends before other work of the same step, it need not be asked.

use std::collections::{HashMap, HashSet};

use crate::error::Result;
use crate::graph::{Graph, Role};
use crate::ids::NodeId;
use crate::link::Launches;
use crate::path::{self, Marked, Moment, Steps, Window};
use crate::tables::Tables;

/// What completes a step, or with none the whole trace.
pub(super) struct Completion {
    pub(super) step: Option<i64>,
    /// The nodes that may come last, in order.
    pub(super) candidates: Vec<NodeId>,
}

/// The steps of a rank, its window, and what completes them.
pub(super) struct Completions {
    pub(super) steps: Option<Steps>,
    pub(super) whole: Option<Window>,
    pub(super) rows: Vec<Completion>,
}

impl Completions {
    /// # Errors
    ///
    /// When `step_name` is no regular expression.
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

/// When a step was on the host, and its number.
pub(super) type StepSpan = (i64, i64, i64);

impl Completions {
    /// Which completions a node may decide.
    pub(super) fn by_candidate(&self) -> HashMap<NodeId, Vec<usize>> {
        let mut found: HashMap<NodeId, Vec<usize>> = HashMap::new();
        for (place, completion) in self.rows.iter().enumerate() {
            for &node in &completion.candidates {
                found.entry(node).or_default().push(place);
            }
        }
        found
    }

    /// The steps in order of time.
    pub(super) fn step_spans(&self) -> Vec<StepSpan> {
        let rows = self.steps.iter().flat_map(|steps| &steps.rows);
        let mut spans: Vec<_> =
            rows.map(|row| (row.host_ns.0, row.host_ns.1, row.number)).collect();
        spans.sort_unstable();
        spans
    }
}

/// The number of the step at a time of the host.
pub(super) fn step_at(spans: &[StepSpan], time_ns: i64) -> Option<i64> {
    let behind = spans.partition_point(|span| span.0 <= time_ns);
    let span = spans.get(behind.checked_sub(1)?)?;
    (time_ns < span.1).then_some(span.2)
}

/// So far back from the last candidate others are looked for that it outlasts. What lies before
/// stays a candidate, which never changes an answer; a walk to the beginning for every step
/// would be quadratic.
const FARTHEST: usize = 10_000;

/// The nodes of some moments that no other one of them is sure to outlast.
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

/// Whether an edge stays whatever is changed, and never leads back in time.
fn keeps_order(role: Role) -> bool {
    matches!(role, Role::ThreadOrder | Role::StreamOrder | Role::DeviceWork)
}
