//! Which nodes may complete a step or the trace, without those that another one outlasts.
//!
//! A step is complete when the last of a thread and of all its device work is. Where work
//! of a stream always ends before other work of the same step, it need not be asked.

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
        let steps = Some(found).filter(|steps| steps.marked != Marked::Repetition);
        let whole = path::whole(tables).ok();
        let mut rows = Vec::new();
        for step in steps.iter().flat_map(|steps| &steps.rows) {
            let candidates = outlasting(graph, &step.period.candidates);
            let is_new = rows.iter().all(|row: &Completion| row.step != Some(step.number));
            if is_new && !candidates.is_empty() {
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
    let (first, last) = (first.row(), last.row());
    let mut is_candidate = vec![false; last - first + 1];
    for node in &nodes {
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
    nodes.retain(|node| !is_outlasted[node.row() - first]);
    nodes
}

/// Whether an edge stays whatever is changed, and never leads back in time.
fn keeps_order(role: Role) -> bool {
    matches!(role, Role::ThreadOrder | Role::StreamOrder | Role::DeviceWork)
}
