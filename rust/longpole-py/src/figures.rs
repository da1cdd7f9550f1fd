//! Summaries of a trace in a few plain rows, for answers that need no data frame.

use longpole_core::columns::columns;
use longpole_core::ids::EventId;
use longpole_core::link::Belonging;
use longpole_core::measure::{self, Chosen, NameTime, Places, Reason};
use longpole_core::names::Names;
use longpole_core::tables::Tables;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;

use crate::arrow::Table;
use crate::enter::enter;
use crate::trace::Trace;

/// `(name, count, duration_ns, longest_ns, longest_event)`.
type NameRow = (Option<String>, u64, i64, i64, usize);
/// `(device, cause, duration_ns, host_ns)`.
type IdleRow = (Option<i64>, &'static str, i64, Option<i64>);
/// `(code, category, count, first_event, its name, longest_ns)`.
type EventWarningRow = (&'static str, Option<String>, u64, usize, Option<String>, i64);

/// The row of an operator, its name, and the sizes of its inputs as recorded in the trace.
type OperatorParts = (usize, Option<String>, Option<String>);

#[pymethods]
impl Trace {
    /// Returns the `top` kernel names of a window, largest total first, and the number of all
    /// names. `host` is the time in which the host work begins that belongs to the window.
    fn kernels_by_name(
        &self,
        py: Python<'_>,
        window: (i64, i64),
        host: (i64, i64),
        top: usize,
    ) -> PyResult<(Vec<NameRow>, usize)> {
        let (tables, launches) = (self.tables(), self.linked(py)?);
        let rows = enter(py, None, None, |_| {
            let belonging = Belonging::of(tables, &launches, window, host);
            Ok(measure::kernels_by_name(tables, &belonging))
        })?;
        Ok(first(tables, &rows, top))
    }

    /// Returns the GPU activities that belong to a window, each with its time that counts.
    fn belonging(&self, py: Python<'_>, window: (i64, i64), host: (i64, i64)) -> PyResult<Table> {
        let (tables, launches) = (self.tables(), self.linked(py)?);
        let rows = enter(py, None, None, |_| {
            let belonging = Belonging::of(tables, &launches, window, host);
            let works =
                tables.events.ids().filter(|&event| tables.events.kind(event).is_device_work());
            let time = |event| Some((event, belonging.time_ns(event)?));
            Ok(works.filter_map(time).collect::<Vec<_>>())
        })?;
        Table::of(columns!(rows.iter(), |&(event, inside_ns)| Columns { event, inside_ns }))
    }

    /// Returns the `top` operator names of a window with their self times, and the number of all
    /// names.
    fn operators_by_name(
        &self,
        py: Python<'_>,
        start_ns: i64,
        end_ns: i64,
        top: usize,
    ) -> PyResult<(Vec<NameRow>, usize)> {
        let (tables, nesting) = (self.tables(), self.nesting(py)?);
        let window = (start_ns, end_ns);
        let rows =
            enter(py, None, None, |_| Ok(measure::operators_by_name(tables, &nesting, window)))?;
        Ok(first(tables, &rows, top))
    }

    /// Returns the blocking calls of a window by name, and why the longest of each blocks.
    fn blocking_by_name(
        &self,
        py: Python<'_>,
        start_ns: i64,
        end_ns: i64,
    ) -> PyResult<Vec<(NameRow, &'static str)>> {
        let (tables, calls) = (self.tables(), self.blocking(py)?);
        let rows = enter(py, None, None, |_| {
            Ok(measure::blocking_by_name(tables, &calls, (start_ns, end_ns)))
        })?;
        let word = |reason: Reason| Reason::NAMES[reason as usize];
        Ok(rows.iter().map(|(row, reason)| (name_row(tables, row), word(*reason))).collect())
    }

    /// Returns the number of GPU activities in a window, and of those without a known launch call.
    fn unlinked(&self, py: Python<'_>, start_ns: i64, end_ns: i64) -> PyResult<(u64, u64)> {
        let launches = self.linked(py)?;
        enter(py, None, None, |_| {
            Ok(measure::unlinked(self.tables(), &launches, (start_ns, end_ns)))
        })
    }

    /// Returns the number of GPU activities in a window that were launched before recording began,
    /// and the time during which any of them runs.
    fn earlier_work(&self, py: Python<'_>, start_ns: i64, end_ns: i64) -> PyResult<(u64, i64)> {
        let launches = self.linked(py)?;
        enter(py, None, None, |_| {
            Ok(measure::earlier_work(self.tables(), &launches, (start_ns, end_ns)))
        })
    }

    /// Returns the idle time of each device in a window, one row for each cause. `short_ns` is the
    /// maximum length of a pause.
    fn idle(
        &self,
        py: Python<'_>,
        start_ns: i64,
        end_ns: i64,
        short_ns: i64,
    ) -> PyResult<Vec<IdleRow>> {
        let (tables, launches) = (self.tables(), self.linked(py)?);
        let (window, places) = ((start_ns, end_ns), [Places::Devices]);
        let rows = enter(py, None, None, |_| {
            Ok(measure::idle_causes(tables, &launches, window, short_ns, &places, &Chosen::All))
        })?;
        Ok(rows
            .iter()
            .map(|row| (row.device, row.cause.name(), row.duration_ns, row.host_ns))
            .collect())
    }

    /// Returns the warnings about events, one row for each code and category.
    fn event_warnings(&self, py: Python<'_>) -> PyResult<Vec<EventWarningRow>> {
        let (tables, launches, nesting) = (self.tables(), self.linked(py)?, self.nesting(py)?);
        let rows =
            enter(py, None, None, |_| Ok(measure::event_warnings(tables, &launches, &nesting)))?;
        let text = |id| tables.strings.get(id).to_owned();
        Ok(rows
            .iter()
            .map(|row| {
                let category = row.category.map(text);
                (
                    row.code,
                    category,
                    row.count,
                    row.first.row(),
                    name(tables, row.first),
                    row.longest_ns,
                )
            })
            .collect())
    }

    /// Returns the names of some events, without a data frame of all events.
    fn event_names(&self, events: Vec<usize>) -> PyResult<Vec<Option<String>>> {
        let tables = self.tables();
        let text = |name| tables.strings.get(name).to_owned();
        let name = |row: usize| Ok(tables.events.name(event(tables, row)?).map(text));
        events.into_iter().map(name).collect()
    }

    /// Returns the innermost operator that launched each of some GPU activities: its row, its name,
    /// and the sizes of its inputs as recorded in the trace.
    fn operators_of(
        &self,
        py: Python<'_>,
        events: Vec<usize>,
    ) -> PyResult<Vec<Option<OperatorParts>>> {
        let (tables, launches, nesting) = (self.tables(), self.linked(py)?, self.nesting(py)?);
        let operator = |row: usize| {
            let found =
                measure::launching_operator(event(tables, row)?, tables, &launches, &nesting);
            Ok(found.map(|(operator, sizes)| {
                (operator.row(), name(tables, operator), sizes.map(str::to_owned))
            }))
        };
        events.into_iter().map(operator).collect()
    }

    /// Returns the durations of some events; `None` for instants and events without an end.
    fn event_durations_ns(&self, events: Vec<usize>) -> PyResult<Vec<Option<i64>>> {
        let tables = self.tables();
        let duration_ns = |row: usize| Ok(tables.events.duration_ns(event(tables, row)?));
        events.into_iter().map(duration_ns).collect()
    }

    /// Returns the launches whose activity is missing from the trace.
    fn launches_without_work(&self, py: Python<'_>) -> PyResult<Vec<usize>> {
        let (tables, launches, nesting) = (self.tables(), self.linked(py)?, self.nesting(py)?);
        let lost = enter(py, None, None, |_| {
            Ok(measure::launches_without_work(tables, &launches, &nesting))
        })?;
        Ok(lost.into_iter().map(EventId::row).collect())
    }
}

/// Returns the event of a row number from Python.
fn event(tables: &Tables, row: usize) -> PyResult<EventId> {
    if row >= tables.events.len() {
        return Err(PyIndexError::new_err("the trace has no such event"));
    }
    Ok(EventId::from_row(row))
}

fn first(tables: &Tables, rows: &[NameTime], top: usize) -> (Vec<NameRow>, usize) {
    (rows.iter().take(top).map(|row| name_row(tables, row)).collect(), rows.len())
}

fn name_row(tables: &Tables, row: &NameTime) -> NameRow {
    let name = row.name.map(|name| tables.strings.get(name).to_owned());
    (name, row.count, row.duration_ns, row.longest_ns, row.longest.row())
}

fn name(tables: &Tables, event: EventId) -> Option<String> {
    tables.events.name(event).map(|name| tables.strings.get(name).to_owned())
}
