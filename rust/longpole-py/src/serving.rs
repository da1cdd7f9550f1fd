//! The iterations of inference servers.

use longpole_core::ids::InColumn;
use longpole_core::names::Names;
use longpole_core::path;
use longpole_core::tables::EventKind;
use longpole_core::vocabulary::{HostPart, Iteration, host_part};
use pyo3::prelude::*;

use crate::arrow::{Columns, Table};
use crate::enter::enter;
use crate::trace::Trace;

/// Returns the kind of marks of the iterations of a server, and one row for each iteration; `None`
/// without such marks.
#[pyfunction]
pub(crate) fn server_iterations(
    py: Python<'_>,
    trace: &Trace,
) -> PyResult<Option<(&'static str, Table)>> {
    let (launches, tables) = (trace.linked(py)?, trace.tables());
    let found = enter(py, None, None, |_| Ok(path::server_iterations(tables, &launches)))?;
    let Some(found) = found else { return Ok(None) };
    let said = || found.rows.iter().map(|(_, iteration)| iteration);
    let numbers = |of: fn(&Iteration) -> Option<i64>| said().map(move |row| of(row).in_column());
    let table = Columns::default()
        .rows("event", found.rows.iter().map(|row| Some(row.0).in_column()).collect())
        .known_words("server", said().map(|row| row.server))
        .known_words("kind", said().map(|row| row.kind))
        .integers("requests", numbers(|row| row.requests).collect())
        .integers("prefill_tokens", numbers(|row| row.prefill_tokens).collect())
        .integers("decode_tokens", numbers(|row| row.decode_tokens).collect())
        .into_table()?;
    Ok(Some((found.mark.name(), table)))
}

/// Returns the annotations and Python functions that are a known part of the host work in an
/// iteration.
#[pyfunction]
pub(crate) fn host_parts(trace: &Trace) -> PyResult<Table> {
    let (events, strings) = (&trace.tables().events, &trace.tables().strings);
    let of_name: Vec<Option<HostPart>> = strings.iter().map(host_part).collect();
    let is_host = |kind| matches!(kind, EventKind::Annotation | EventKind::Python);
    let part = |event| {
        let name = events.name(event).filter(|_| is_host(events.kind(event)))?;
        Some((event, of_name[name.row()]?))
    };
    let found: Vec<_> = events.ids().filter_map(part).collect();
    Columns::default()
        .rows("event", found.iter().map(|row| Some(row.0).in_column()).collect())
        .words("part", found.iter().map(|row| row.1))
        .into_table()
}
