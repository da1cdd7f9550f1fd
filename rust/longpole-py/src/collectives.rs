//! The collectives of one trace.

use longpole_core::ids::InColumn;
use longpole_core::measure::{self, CollectiveRow, Collectives};
use pyo3::prelude::*;

use crate::arrow::{Columns, Table};
use crate::enter::{detached, enter};
use crate::trace::Trace;

/// Returns a row for each collective of a trace; see `longpole.Trace.collectives`.
#[pyfunction]
pub(crate) fn collectives(py: Python<'_>, trace: &Trace) -> PyResult<Table> {
    let (launches, nesting) = (trace.linked(py)?, trace.nesting(py)?);
    let tables = trace.tables();
    let found = enter(py, None, None, |_| Ok(measure::collectives(tables, &launches, &nesting)))?;
    detached(py, || collective_table(&found))
}

/// Returns waiting and data movement of each collective, if the profile contains its tasks; see
/// `longpole.Trace.collective_waits`.
#[pyfunction]
pub(crate) fn collective_waits(py: Python<'_>, trace: &Trace) -> PyResult<Table> {
    let tables = trace.tables();
    let rows = enter(py, None, None, |_| Ok(measure::collective_waits(tables)))?;
    Columns::default()
        .rows("event", rows.iter().map(|row| Some(row.event).in_column()).collect())
        .integers("waiting_ns", rows.iter().map(|row| row.waiting_ns).collect())
        .integers("moving_ns", rows.iter().map(|row| row.moving_ns).collect())
        .integers("awaited_peer", rows.iter().map(|row| row.peer.in_column()).collect())
        .integers("awaited_ns", rows.iter().map(|row| row.peer_ns).collect())
        .integers("group_size", rows.iter().map(|row| row.n_ranks).collect())
        .into_table()
}

fn collective_table(found: &Collectives) -> PyResult<Table> {
    let rows = &found.rows;
    let group = |row: &CollectiveRow| row.group.map(|place| &found.groups[place]);
    let ranks = |row: &CollectiveRow| {
        let ranks = group(row)?.ranks.as_ref()?.iter().map(ToString::to_string);
        Some(ranks.collect::<Vec<_>>().join(" "))
    };
    let ranks: Vec<_> = rows.iter().map(ranks).collect();
    let integers = |value: fn(&CollectiveRow) -> Option<i64>| -> Vec<i64> {
        rows.iter().map(|row| value(row).in_column()).collect()
    };
    let sizes = rows.iter().map(|row| group(row).and_then(|it| it.size).in_column());
    Columns::default()
        .rows("event", rows.iter().map(|row| Some(row.event).in_column()).collect())
        .rows("call", rows.iter().map(|row| row.call.in_column()).collect())
        .known_words("operation", rows.iter().map(|row| row.operation))
        .known_words("named_by", rows.iter().map(|row| row.named_by))
        .strings("group", rows.iter().map(|row| group(row).map(|it| it.name.as_str())))
        .integers("group_size", sizes.collect())
        .strings("group_ranks", ranks.iter().map(Option::as_deref))
        .integers("sequence", integers(|row| row.sequence))
        .strings("call_id", rows.iter().map(|row| row.id.as_deref()))
        .integers("peer", integers(|row| row.peer))
        .integers("in_elements", integers(|row| row.in_elements))
        .integers("out_elements", integers(|row| row.out_elements))
        .strings("data_type", rows.iter().map(|row| row.data_type))
        .integers("bytes", integers(|row| row.bytes))
        .booleans("coalesced", rows.iter().map(|row| row.is_coalesced).collect())
        .into_table()
}
