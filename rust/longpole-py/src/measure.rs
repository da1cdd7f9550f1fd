//! Measurements over the time of a trace, one table for each.

use longpole_core::ids::{InColumn, LaneId, row_in_column};
use longpole_core::measure;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrow::{Columns, Table};
use crate::enter::{detached, enter};
use crate::sweeps;
use crate::trace::Trace;

#[pymethods]
impl Trace {
    /// Returns one row for each GPU activity and its launch.
    fn launches(&self, py: Python<'_>) -> PyResult<Table> {
        let (launches, nesting) = (self.linked(py)?, self.nesting(py)?);
        let tables = self.tables();
        let rows = enter(py, None, None, |_| Ok(measure::launches(tables, &launches, &nesting)))?;
        detached(py, || {
            Columns::default()
                .rows("event", rows.iter().map(|row| Some(row.work).in_column()).collect())
                .words("work_class", rows.iter().map(|row| row.class))
                .rows("call", rows.iter().map(|row| row.call.in_column()).collect())
                .rows("operator", rows.iter().map(|row| row.operator.in_column()).collect())
                .known_words("linked_by", rows.iter().map(|row| row.linked_by))
                .integers("delay_ns", rows.iter().map(|row| row.delay_ns.in_column()).collect())
                .into_table()
        })
    }

    /// Returns the role of each runtime API call.
    fn api_roles(&self, py: Python<'_>) -> PyResult<Table> {
        let tables = self.tables();
        let rows = enter(py, None, None, |_| Ok(measure::api_roles(tables)))?;
        detached(py, || {
            Columns::default()
                .rows("event", rows.iter().map(|row| Some(row.0).in_column()).collect())
                .words("role", rows.iter().map(|row| row.1))
                .into_table()
        })
    }

    /// Returns the runtime API calls that waited for a device, and how that is known.
    fn blocking_calls(&self, py: Python<'_>) -> PyResult<Table> {
        let (launches, graph) = (self.linked(py)?, self.graph(py, None)?);
        let rows = enter(py, None, None, |progress| {
            measure::blocking_calls(self.tables(), &launches, &graph, progress)
        })?;
        detached(py, || {
            Columns::default()
                .rows("event", rows.iter().map(|row| Some(row.call).in_column()).collect())
                .words("reason", rows.iter().map(|row| row.reason))
                .into_table()
        })
    }

    /// Returns the self time of each event: the time in which nothing that began later ran on its
    /// thread.
    fn self_times(&self, py: Python<'_>) -> PyResult<Table> {
        let (nesting, tables) = (self.nesting(py)?, self.tables());
        let own = enter(py, None, None, |_| Ok(measure::self_time_ns(tables, &nesting)))?;
        detached(py, || {
            Columns::default()
                .rows("event", (0..row_in_column(tables.events.len())).collect())
                .integers("self_ns", own)
                .into_table()
        })
    }

    /// Returns the events of threads within spans `(lane, start_ns, end_ns)`.
    fn times_within(&self, py: Python<'_>, spans: Vec<(u32, i64, i64)>) -> PyResult<Table> {
        let (nesting, tables) = (self.nesting(py)?, self.tables());
        let spans = spans
            .into_iter()
            .map(|(lane, start, end)| (LaneId::from_row(lane as usize), start, end));
        let rows = enter(py, None, None, |_| Ok(measure::times_within(tables, &nesting, spans)))?;
        detached(py, || {
            Columns::default()
                .rows("event", rows.iter().map(|row| Some(row.event).in_column()).collect())
                .integers("self_ns", rows.iter().map(|row| row.self_ns).collect())
                .integers("total_ns", rows.iter().map(|row| row.total_ns).collect())
                .into_table()
        })
    }

    /// Returns the events that begin inside another event of their thread and end outside it.
    fn crossings(&self, py: Python<'_>) -> PyResult<Table> {
        let nesting = self.nesting(py)?;
        Columns::default()
            .rows("event", nesting.crossings.iter().map(|&event| Some(event).in_column()).collect())
            .into_table()
    }

    /// Returns the busy time of each stream and device within a window, by class of activity.
    fn busy(&self, py: Python<'_>, start_ns: i64, end_ns: i64) -> PyResult<Table> {
        sweeps::busy(py, self, start_ns, end_ns, None)
    }

    /// Counts of problems found by linking and nesting.
    fn warning_counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (launches, nesting) = (self.linked(py)?, self.nesting(py)?);
        let tables = self.tables();
        let counts =
            enter(py, None, None, |_| Ok(measure::warning_counts(tables, &launches, &nesting)))?;
        let found = PyDict::new(py);
        for (name, count) in counts {
            found.set_item(name, count)?;
        }
        Ok(found)
    }
}
