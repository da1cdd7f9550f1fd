//! Windows of a trace, and answers from the dependency graph about one of them.

use std::sync::OnceLock;

use longpole_core::columns::columns;
use longpole_core::ids::LaneId;
use longpole_core::names::Names;
use longpole_core::path::{self, Choice};
use pyo3::prelude::*;

use crate::arrow::Table;
use crate::critical_path::{ClockShift, CriticalPath, WindowChoice, clock_shifts, violations};
use crate::enter::{detached, enter};
use crate::facts::Facts;
use crate::trace::Trace;
use crate::verdict::VerdictParts;

/// The unit of a window, its number, start and end of it and of its host work, reason and clause.
type FoundScope = (&'static str, Option<i64>, ((i64, i64), (i64, i64)), (String, String));

#[pymethods]
impl Trace {
    /// Returns one row for each step, with the time range of its work; without steps, for each
    /// repetition of GPU activities if these are wanted.
    #[pyo3(signature = (step_name, *, with_repetitions = false))]
    fn steps(
        &self,
        py: Python<'_>,
        step_name: Option<&str>,
        with_repetitions: bool,
    ) -> PyResult<Table> {
        let (launches, tables) = (self.linked(py)?, self.tables());
        let found = enter(py, None, None, |_| path::steps(tables, &launches, step_name))?;
        let is_step = !matches!(found.marked, path::Marked::Repetition(_));
        let rows = if is_step || with_repetitions { found.rows } else { Vec::new() };
        let events = &self.tables().events;
        let columns = columns!(rows.iter(), |row| Columns {
            step: row.number,
            name: events.name(row.event),
            start_ns: row.host_ns.0,
            duration_ns: row.host_ns.1 - row.host_ns.0,
            event: row.event,
            window_start_ns: row.period.start_ns,
            window_end_ns: row.period.end_ns,
            complete: row.is_complete,
        });
        Table::with_texts(columns, &self.tables().strings)
    }

    /// Returns the window of all events on main threads and devices; `None` if there are none.
    fn whole_window(&self, py: Python<'_>) -> PyResult<Option<(i64, i64)>> {
        let window = enter(py, None, None, |_| Ok(path::whole(self.tables()).ok()))?;
        Ok(window.map(|window| (window.start_ns, window.end_ns)))
    }

    /// Returns the window of a choice, its unit and its reason: `(unit, number, (window, host),
    /// (reason, clause))`. `window` and `host` are a start and an end: of the window, and of the
    /// time range in which the host work that belongs to it begins.
    #[pyo3(signature = (window, *, step_name))]
    fn scope(
        &self,
        py: Python<'_>,
        window: WindowChoice,
        step_name: Option<&str>,
    ) -> PyResult<FoundScope> {
        let WindowChoice(choice) = window;
        let scope = self.scope_of(py, choice, step_name)?;
        let (start_ns, end_ns) = (scope.window().start_ns, scope.window().end_ns);
        let path::Reason { text, clause } = scope.reason.clone();
        let times_ns = ((start_ns, end_ns), scope.host_ns[scope.shown]);
        Ok((scope.unit.name(), scope.number(), times_ns, (text, clause)))
    }

    /// Returns the start and end of a window: those of the events that open and end it, or two times
    /// of the recording.
    #[pyo3(signature = (window, *, step_name))]
    fn window_times(
        &self,
        py: Python<'_>,
        window: WindowChoice,
        step_name: Option<&str>,
    ) -> PyResult<(i64, i64)> {
        let WindowChoice(choice) = window;
        if let Choice::Between(start_ns, end_ns) = choice {
            let range_ns = (start_ns, end_ns);
            return Ok(self.recorded.as_ref().map_or(range_ns, |recorded| {
                path::moved_range(range_ns, recorded, self.tables())
            }));
        }
        let window = self.window_of(py, choice, step_name)?;
        Ok((window.start_ns, window.end_ns))
    }

    /// Returns two times of a thread as they were recorded.
    fn recorded_times(&self, lane: usize, range_ns: (i64, i64)) -> (i64, i64) {
        self.recorded.as_ref().map_or(range_ns, |recorded| {
            path::moved_with(LaneId::from_row(lane), range_ns, self.tables(), recorded)
        })
    }

    /// Returns the critical path of a window of the trace.
    #[pyo3(signature = (window, *, longest, data_load, step_name))]
    fn critical_path(
        &self,
        py: Python<'_>,
        window: WindowChoice,
        longest: bool,
        data_load: Option<&str>,
        step_name: Option<&str>,
    ) -> PyResult<CriticalPath> {
        let graph = self.graph(py, data_load)?;
        let WindowChoice(choice) = window;
        let window = self.window_of(py, choice, step_name)?;
        CriticalPath::find(py, self.tables(), graph, window, longest)
    }

    /// Returns the verdict of a window, and the queries for remedies; see `longpole.answer`. If
    /// there are many windows, the queries are about a few representative ones, or about all of them
    /// with `every_window`.
    #[pyo3(signature = (window, *, data_load, step_name, every_window))]
    fn verdict(
        &self,
        py: Python<'_>,
        window: WindowChoice,
        data_load: Option<&str>,
        step_name: Option<&str>,
        every_window: bool,
    ) -> PyResult<(VerdictParts, Facts)> {
        let (launches, graph) = (self.linked(py)?, self.graph(py, data_load)?);
        let nesting = self.nesting(py)?;
        let WindowChoice(choice) = window;
        let scope = self.scope_of(py, choice, step_name)?;
        let tables = self.tables().clone();
        let (parts, inquiry) =
            VerdictParts::find(py, &tables, &launches, &graph, &nesting, &scope)?;
        let inquiry = if every_window {
            inquiry
        } else {
            enter(py, None, None, |_| Ok(inquiry.sampled(&graph, &scope)))?
        };
        let index = path::FactIndex::default();
        let (estimate, other_latencies_ns) = (self.estimate.clone(), OnceLock::new());
        let facts = Facts {
            tables,
            graph,
            nesting,
            launches,
            scope,
            inquiry,
            other_latencies_ns,
            estimate,
            index,
        };
        Ok((parts, facts))
    }

    /// Returns queries about all windows of a verdict without the verdict: no gains can be asked.
    #[pyo3(signature = (window, *, step_name))]
    fn facts(
        &self,
        py: Python<'_>,
        window: WindowChoice,
        step_name: Option<&str>,
    ) -> PyResult<Facts> {
        let WindowChoice(choice) = window;
        Ok(Facts {
            tables: self.tables().clone(),
            scope: self.scope_of(py, choice, step_name)?,
            graph: self.graph(py, None)?,
            nesting: self.nesting(py)?,
            launches: self.linked(py)?,
            inquiry: path::Inquiry::default(),
            other_latencies_ns: OnceLock::new(),
            estimate: None,
            index: path::FactIndex::default(),
        })
    }

    /// Returns what the clocks of a trace contradict: the dependencies that would lead back in time,
    /// and the timestamp shifts of devices, `(device, from_ns, shift_ns)`.
    fn clock_contradictions(&self, py: Python<'_>) -> PyResult<(Table, Vec<ClockShift>)> {
        let graph = self.graph(py, None)?;
        Ok((detached(py, || violations(&graph))?, clock_shifts(&graph)))
    }
}
