//! Calling contexts and their times, for `trace.py`.

use longpole_core::ids::{EventId, InColumn, row_in_column};
use longpole_core::measure::{self, ContextTime, ContextTimes, Frames, Rest};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;

use crate::arrow::{Columns, Table};
use crate::enter::enter;
use crate::trace::Trace;

/// The context tree, the context of each event on a thread, and the remaining time on devices as
/// `(count, duration_ns)`: launched outside all frames, and without a known launch.
type Found = (Table, Table, (i64, i64), (i64, i64));

/// Returns the time of each calling context within a window; see `Trace.contexts`.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // from Python, by value
#[pyo3(signature = (trace, frames, window, *, annotation_names, by_inputs, chosen))]
pub(crate) fn context_times(
    py: Python<'_>,
    trace: &Trace,
    frames: Vec<PyBackedStr>,
    window: (i64, i64),
    annotation_names: Option<&str>,
    by_inputs: bool,
    chosen: Option<&[u8]>,
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
    let counted = chosen.map(|rows| flags(rows, tables.events.len()));
    let found = enter(py, None, None, |progress| {
        let stages = (&*launches, &*nesting, links.as_slice());
        measure::context_times(tables, stages, &frames, window, counted.as_deref(), progress)
    })?;
    let rest = |rest: Rest| (rest.count, rest.duration_ns);
    let tables = (tree(trace, &found)?, events(trace, &found)?);
    Ok((tables.0, tables.1, rest(found.outside), rest(found.unlinked)))
}

/// Returns flags for the events with these rows, given as 32-bit integers in native byte order.
fn flags(rows: &[u8], n_events: usize) -> Vec<bool> {
    let mut flags = vec![false; n_events];
    for row in rows.chunks_exact(4).filter_map(|row| row.try_into().ok()) {
        if let Some(flag) = flags.get_mut(u32::from_ne_bytes(row) as usize) {
            *flag = true;
        }
    }
    flags
}

fn tree(trace: &Trace, found: &ContextTimes) -> PyResult<Table> {
    let strings = &trace.tables().strings;
    let rows = &found.contexts.rows;
    let column = |value: fn(&ContextTime) -> i64| found.times.iter().map(value).collect();
    Columns::default()
        .rows("context", (0..row_in_column(rows.len())).collect())
        .rows("parent", rows.iter().map(|row| row.parent.unwrap_or(u32::MAX)).collect())
        .rows("lane", rows.iter().map(|row| row_in_column(row.lane.row())).collect())
        .rows("first", rows.iter().map(|row| Some(row.first).in_column()).collect())
        .texts("name", rows.iter().map(|row| row.name), strings)
        .booleans("is_outermost", rows.iter().map(|row| row.is_outermost).collect())
        .integers("count", column(|time| time.count))
        .integers("own_ns", column(|time| time.own_ns))
        .integers("self_ns", column(|time| time.self_ns))
        .integers("total_ns", column(|time| time.total_ns))
        .integers("n_self", column(|time| time.n_self))
        .integers("device_self_ns", column(|time| time.device_self_ns))
        .integers("n_activities", column(|time| time.n_activities))
        .integers("device_ns", column(|time| time.device_ns))
        .integers("backward_self_ns", column(|time| time.backward_self_ns))
        .integers("backward_ns", column(|time| time.backward_ns))
        .into_table()
}

fn events(trace: &Trace, found: &ContextTimes) -> PyResult<Table> {
    let ids = trace.tables().events.ids();
    let (events, contexts): (Vec<_>, Vec<_>) = ids
        .filter_map(|event| Some((Some(event).in_column(), found.contexts.of(event)?)))
        .map(|(event, row)| (event, row_in_column(row)))
        .unzip();
    Columns::default().rows("event", events).rows("context", contexts).into_table()
}

/// Returns each operator of a backward pass with its forward operator.
#[pyfunction]
pub(crate) fn backward_links(py: Python<'_>, trace: &Trace) -> PyResult<Table> {
    let links = trace.backward_links(py)?;
    let column = |side: fn(&longpole_core::link::BackwardLink) -> EventId| {
        links.iter().map(|link| Some(side(link)).in_column()).collect()
    };
    Columns::default()
        .rows("backward", column(|link| link.backward))
        .rows("forward", column(|link| link.forward))
        .into_table()
}
