//! Calling contexts and their times, for `trace.py`.

use longpole_core::columns::{Record, columns};
use longpole_core::ids::{StringId, row_in_column};
use longpole_core::measure::{self, ContextTime, ContextTimes, Frames, Rest};
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};

use crate::arrow::Table;
use crate::enter::enter;
use crate::trace::Trace;

/// The context tree, the context of each event on a thread, and the remaining time on devices as
/// `(count, duration_ns)`: launched outside all frames, and without a known launch.
type Found = (Table, Table, (i64, i64), (i64, i64));

/// Returns the time of each calling context within a window; see `Trace.contexts`.
#[pyfunction]
#[pyo3(signature = (trace, frames, window, *, annotation_names, by_inputs, chosen))]
pub(crate) fn context_times(
    py: Python<'_>,
    trace: &Trace,
    frames: Vec<PyBackedStr>,
    window: (i64, i64),
    annotation_names: Option<&str>,
    by_inputs: bool,
    chosen: Option<PyBackedBytes>,
) -> PyResult<Found> {
    let has = |kind: &str| frames.iter().any(|frame| &**frame == kind);
    let frames = Frames {
        annotations: has("annotation"),
        annotation_names,
        operators: has("operator"),
        functions: has("python"),
        modules: has("module"),
        calls: has("call"),
        others: has("other"),
        by_inputs,
    };
    let (launches, nesting, tables) = (trace.linked(py)?, trace.nesting(py)?, trace.tables());
    let links = trace.backward_links(py)?;
    let chosen = trace.chosen(chosen);
    let found = enter(py, None, None, |progress| {
        let stages = (&*launches, &*nesting, links.as_slice());
        measure::context_times(tables, stages, &frames, window, &chosen, progress)
    })?;
    let rest = |rest: Rest| (rest.count, rest.duration_ns);
    let tables = (tree(trace, &found)?, events(trace, &found)?);
    Ok((tables.0, tables.1, rest(found.outside), rest(found.unlinked)))
}

fn tree(trace: &Trace, found: &ContextTimes) -> PyResult<Table> {
    let rows = found.contexts.rows.iter().enumerate();
    let contexts = columns!(rows, |(context, row)| Columns {
        context: row_in_column(context),
        parent: row.parent,
        lane: row.lane,
        first: row.first,
        name: StringId::from_column(row.name),
        is_outermost: row.is_outermost,
    });
    Table::with_texts(contexts.and(ContextTime::columns(&found.times)), &trace.tables().strings)
}

fn events(trace: &Trace, found: &ContextTimes) -> PyResult<Table> {
    let ids = trace.tables().events.ids();
    let rows: Vec<_> = ids.filter_map(|event| Some((event, found.contexts.of(event)?))).collect();
    Table::of(columns!(rows.iter(), |&(event, row)| Columns { event, context: row_in_column(row) }))
}
