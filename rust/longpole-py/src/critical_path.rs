//! The critical path of one window.
//!
//! One file, because these are the methods of one Python class.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use longpole_core::columns::{Columns, columns};
use longpole_core::graph::{Certainty, Edge, Graph, Kind};
use longpole_core::ids::{EventId, StringId, row_in_column};
use longpole_core::names::Names;
use longpole_core::path::{
    self, Change, Choice, Effect, Path, Ratio, Schedule, TimeRange, Window, WindowEnd,
};
use longpole_core::tables::{EventKind, Tables};
use longpole_core::write;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arrow::Table;
use crate::enter::{detached, enter};

/// The critical path of one window, as observed or after changes.
#[pyclass(frozen, module = "longpole._core")]
pub(crate) struct CriticalPath {
    tables: Tables,
    graph: Arc<Graph>,
    window: Window,
    schedule: Schedule,
    path: Path,
    latencies_ns: OnceLock<Vec<i64>>,
    /// Everything before this time is as recorded, if the path is that of a change.
    from_ns: Option<i64>,
}

/// A window, as `("whole",)`, `("usual",)`, `("step", number, end)`, `("annotation", name,
/// instance, end)` or `("between", start_ns, end_ns)`; with `"now"`, two times are those of events
/// without the profiler.
pub(crate) struct WindowChoice(pub(crate) Choice);

impl<'py> FromPyObject<'_, 'py> for WindowChoice {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let word: String = object.get_item(0)?.extract()?;
        let choice = match word.as_str() {
            "step" => Choice::Step(object.get_item(1)?.extract()?, end(&object.get_item(2)?)?),
            "annotation" => Choice::Annotation(
                object.get_item(1)?.extract()?,
                object.get_item(2)?.extract()?,
                end(&object.get_item(3)?)?,
            ),
            "between" => {
                Choice::Between(object.get_item(1)?.extract()?, object.get_item(2)?.extract()?)
            }
            "now" => Choice::Now(object.get_item(1)?.extract()?, object.get_item(2)?.extract()?),
            "usual" => Choice::Usual,
            "whole" => Choice::Whole,
            other => {
                return Err(PyValueError::new_err(format!(
                    "a window is \"usual\", \"whole\", \"step\", \"annotation\" or \"between\", not {other:?}"
                )));
            }
        };
        Ok(Self(choice))
    }
}

fn end(word: &Bound<'_, PyAny>) -> PyResult<WindowEnd> {
    match word.extract::<String>()?.as_str() {
        "period" => Ok(WindowEnd::Period),
        "last" => Ok(WindowEnd::Last),
        "cpu" => Ok(WindowEnd::Cpu),
        "gpu" => Ok(WindowEnd::Gpu),
        other => Err(PyValueError::new_err(format!(
            "end is \"period\", \"last\", \"cpu\" or \"gpu\", not {other:?}"
        ))),
    }
}

/// Number of bytes copied for Python at a time.
const PIECE_BYTES: usize = 1 << 20;

/// A sum of segments, as `(kind, name, duration_ns, count, longest_event)`.
type TotalRow = (&'static str, Option<String>, i64, u64, Option<usize>);

/// A time range of a thread, as `(lane, start_ns, end_ns)`.
pub(crate) type TimeRangeParts = (usize, i64, i64);

/// A change, as `(effect, kind, matching, numerator, denominator, events, time_ranges)`. For
/// effects with a time, the numerator is that time in ns.
pub(crate) type ChangeParts = (
    String,
    Option<String>,
    Option<String>,
    u64,
    u64,
    Option<Vec<u32>>,
    Option<Vec<TimeRangeParts>>,
);

impl CriticalPath {
    pub(crate) fn find(
        py: Python<'_>,
        tables: &Tables,
        graph: Arc<Graph>,
        window: Window,
        longest: bool,
    ) -> PyResult<Self> {
        let (schedule, path) = enter(py, None, None, |_| {
            let schedule =
                if longest { path::longest(&graph, &window) } else { Schedule::observed() };
            let path = path::walk(&graph, &window, &schedule);
            Ok((schedule, path))
        })?;
        let tables = tables.clone();
        let latencies_ns = OnceLock::new();
        Ok(Self { tables, graph, window, schedule, path, latencies_ns, from_ns: None })
    }

    fn latencies_ns(&self) -> &[i64] {
        self.latencies_ns.get_or_init(|| path::latencies_ns(&self.graph))
    }

    fn changes(&self, parts: Vec<ChangeParts>) -> PyResult<Vec<Change>> {
        let n_events = self.tables.events.len();
        parts.into_iter().map(|parts| change(parts, n_events)).collect()
    }

    fn slack_ns(&self) -> Vec<i64> {
        let n_events = self.tables.events.len();
        path::slack_ns(&self.graph, &self.window, &self.schedule, self.latencies_ns(), n_events)
    }

    fn name(&self, event: Option<EventId>) -> Option<StringId> {
        event.and_then(|event| self.tables.events.name(event))
    }

    /// Returns the columns shared by all tables of edges.
    fn edge_columns<'a>(&self, edges: &[Edge]) -> Columns<'a> {
        edge_columns(&self.graph, edges)
    }
}

fn edge_columns<'a>(graph: &Graph, edges: &[Edge]) -> Columns<'a> {
    columns!(edges.iter(), |edge| Columns {
        source: edge.source,
        target: edge.target,
        kind: edge.kind,
        role: edge.role,
        event: edge.event().map(|order| graph.timeline.event(order)),
        evidence: edge.evidence,
    })
}

/// Returns the edges of a graph that would lead back in time.
pub(crate) fn violations(graph: &Graph) -> PyResult<Table> {
    let (edges, nodes) = (&graph.violations, &graph.nodes);
    let back_ns = columns!(edges.iter(), |edge| Columns { back_ns: -edge.gap_ns(nodes) });
    Table::of(edge_columns(graph, edges).and(back_ns))
}

/// A device, the recorded time from which its timestamps are shifted, and by how much.
pub(crate) type ClockShift = (Option<i64>, Option<i64>, i64);

/// Returns the timestamp shifts of devices in a graph: `(device, from_ns, shift_ns)`.
pub(crate) fn clock_shifts(graph: &Graph) -> Vec<ClockShift> {
    let shifts = graph.clock_shifts.iter();
    shifts.map(|shift| (shift.device, shift.from_ns, shift.shift_ns)).collect()
}

#[pymethods]
impl CriticalPath {
    /// Returns the start and end of the window.
    #[getter]
    fn window(&self) -> (i64, i64) {
        (self.path.start_ns, self.path.end_ns)
    }

    /// Returns the time that is inferred.
    #[getter]
    fn inferred_ns(&self) -> i64 {
        self.path.inferred_ns()
    }

    /// Returns the unexplained time.
    #[getter]
    fn unexplained_ns(&self) -> i64 {
        self.path.kinds_ns(Kind::UNKNOWN)
    }

    /// Returns the doubtful time: inferred with an alternative, or before an unexplained gap.
    #[getter]
    fn doubtful_ns(&self) -> i64 {
        self.path.certainty_ns(Certainty::Doubtful)
    }

    /// Returns the timestamp shifts of devices in the graph: `(device, from_ns, shift_ns)`.
    #[getter]
    fn clock_shifts(&self) -> Vec<ClockShift> {
        clock_shifts(&self.graph)
    }

    /// Returns the time before the first unexplained gap, seen from the end.
    #[getter]
    fn behind_unexplained_ns(&self) -> i64 {
        self.path.behind_unknown_ns()
    }

    /// Returns the time before an undecided choice between two nodes of a graph.
    #[getter]
    fn undecided_ns(&self) -> i64 {
        self.path.undecided_ns
    }

    /// Whether so much time is unexplained that the path is inconclusive.
    #[getter]
    fn is_inconclusive(&self) -> bool {
        self.path.is_inconclusive()
    }

    /// Returns one row for each segment of the path.
    fn segments(&self, py: Python<'_>) -> PyResult<Table> {
        detached(py, || {
            let busy_ns = path::busy_ns(&self.graph, &self.path, &self.schedule);
            let events = &self.tables.events;
            let rows = self.path.segments.iter().zip(&busy_ns);
            let columns = columns!(rows, |(row, busy_ns)| Columns {
                kind: row.kind,
                event: row.event,
                name: self.name(row.event),
                lane: row.event.map(|event| events.lane(event)),
                start_ns: row.start_ns,
                duration_ns: row.duration_ns(),
                evidence: row.evidence,
                certainty: row.certainty,
                rival: row.rival,
                busy_ns: *busy_ns,
            });
            Table::with_texts(columns, &self.tables.strings)
        })
    }

    /// Returns the kernels of the path, one row for each segment: `event` and `duration_ns`.
    fn kernel_segments(&self, py: Python<'_>) -> PyResult<Table> {
        detached(py, || {
            let is_kernel =
                |row: &&path::Segment| matches!(row.kind, Kind::Kernel | Kind::Communication);
            let rows = self.path.segments.iter().filter(is_kernel);
            Table::of(columns!(rows, |row| Columns {
                event: row.event,
                duration_ns: row.duration_ns(),
            }))
        })
    }

    /// Returns the time of each kind, largest first: `(kind, name, duration_ns, count,
    /// longest_event)`. With `by_name`, of each kind and name; otherwise without names.
    #[pyo3(signature = (*, by_name))]
    fn totals(&self, by_name: bool) -> Vec<TotalRow> {
        let text = |id| self.tables.strings.get(id).to_owned();
        path::totals(&self.tables, &self.path, by_name)
            .iter()
            .map(|row| {
                let longest = row.longest.map(EventId::row);
                (row.kind.name(), row.name.map(text), row.duration_ns, row.count, longest)
            })
            .collect()
    }

    /// Returns the number of inferred waits on the path for GPU activities, and the number of all
    /// such waits.
    fn waits_on_path(&self) -> (u64, u64) {
        path::waits_on_path(&self.graph, &self.path)
    }

    /// Returns the path as a Perfetto trace, in pieces, so that other threads can run between them.
    fn perfetto<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let bytes = enter(py, None, None, |_| {
            Ok(write::perfetto(&self.tables, &self.path, &self.slack_ns()))
        })?;
        let piece = |part: &[u8]| {
            py.detach(std::thread::yield_now);
            PyBytes::new(py, part)
        };
        Ok(bytes.chunks(PIECE_BYTES).map(piece).collect())
    }

    /// Returns the slack of each event: how much later it may end before the end of the window
    /// moves.
    fn slack(&self, py: Python<'_>) -> PyResult<Table> {
        let slack_ns = enter(py, None, None, |_| Ok(self.slack_ns()))?;
        let rows = slack_ns.iter().enumerate();
        Table::of(columns!(rows, |(event, &slack_ns)| Columns {
            event: EventId::from_row(event),
            slack_ns,
        }))
    }

    /// Returns one row for each start and end of an event.
    fn nodes(&self, py: Python<'_>) -> PyResult<Table> {
        detached(py, || {
            let nodes = &self.graph.nodes;
            let times_ns = self.schedule.times_ns(&self.graph);
            let sides = nodes.ids().map(|node| u32::from(nodes.is_end(node)));
            let columns = columns!(nodes.ids(), |node| Columns {
                node,
                time_ns: times_ns[node.row()],
                event: self.graph.timeline.event(nodes.event(node)),
            });
            let reached_by = columns!(nodes.ids(), |node| Columns {
                reached_by: self.schedule.reached_by(node, &self.graph).map(row_in_column),
            });
            Table::of(columns.with_names("side", sides, vec!["start", "end"]).and(reached_by))
        })
    }

    /// Returns one row for each edge of the graph.
    fn edges(&self, py: Python<'_>) -> PyResult<Table> {
        detached(py, || {
            let edges = self.graph.edges.as_slice();
            let mut on_path = vec![false; edges.len()];
            for &edge in &self.path.edges {
                on_path[edge as usize] = true;
            }
            let rows = self.latencies_ns().iter().zip(&on_path);
            Table::of(self.edge_columns(edges).and(columns!(rows, |(least_ns, on_path)| Columns {
                minimum_latency_ns: *least_ns,
                on_path: *on_path,
            })))
        })
    }

    /// Returns the work of each event in each step; `steps` are the time ranges of the steps on the
    /// host, in order.
    fn work(&self, py: Python<'_>, steps: Vec<(i64, i64)>) -> PyResult<Table> {
        detached(py, || {
            let rows = path::work(&self.graph, self.latencies_ns(), &steps);
            Table::of(columns!(rows.iter(), |row| Columns {
                event: row.event,
                kind: row.kind,
                row: row.step,
                work_ns: row.work_ns,
            }))
        })
    }

    /// Returns the edges that would lead back in time.
    fn violations(&self, py: Python<'_>) -> PyResult<Table> {
        detached(py, || violations(&self.graph))
    }

    /// Counts of dependencies that are unresolved or uncertain.
    fn counts(&self) -> HashMap<&'static str, u64> {
        self.graph.counts.named().into_iter().collect()
    }

    /// Returns the waits that end in a time range, by default inside the window.
    #[pyo3(signature = (within=None))]
    fn sync_dependencies(&self, py: Python<'_>, within: Option<(i64, i64)>) -> PyResult<Table> {
        let within = within.unwrap_or((self.path.start_ns, self.path.end_ns));
        detached(py, || {
            let rows = path::sync_dependencies(&self.graph, &self.path, &self.schedule, within);
            let events = &self.tables.events;
            let columns = columns!(rows.iter(), |row| Columns {
                source: row.source,
                source_name: events.name(row.source),
                source_external_id: events.external_id(row.source),
                target: row.target,
                target_name: events.name(row.target),
                target_external_id: events.external_id(row.target),
                kind: row.kind,
                evidence: row.evidence,
                waited: row.waited,
                on_path: row.on_path,
            });
            Table::with_texts(columns, &self.tables.strings)
        })
    }

    /// Returns the path after some changes.
    fn what_if(&self, py: Python<'_>, changes: Vec<ChangeParts>) -> PyResult<Self> {
        let changes = self.changes(changes)?;
        let (tables, graph, window) = (&self.tables, &self.graph, &self.window);
        let found = enter(py, None, None, |progress| {
            let before = (self.latencies_ns(), self.path.end_ns - self.path.start_ns);
            path::what_if(graph, tables, window, before, &changes, progress)
        })?;
        Ok(Self {
            tables: tables.clone(),
            graph: Arc::clone(graph),
            window: window.clone(),
            schedule: found.schedule,
            path: found.path,
            latencies_ns: OnceLock::from(found.latencies_ns),
            from_ns: found.from_ns,
        })
    }

    /// Returns the length of the window after each set of changes.
    fn lengths_ns(&self, py: Python<'_>, sets: Vec<Vec<ChangeParts>>) -> PyResult<Vec<i64>> {
        let sets = sets.into_iter().map(|set| self.changes(set)).collect::<PyResult<Vec<_>>>()?;
        let (tables, graph, window) = (&self.tables, &self.graph, &self.window);
        enter(py, None, None, |progress| {
            let before = (self.latencies_ns(), self.path.end_ns - self.path.start_ns);
            path::lengths_ns(graph, tables, window, before, &sets, progress)
        })
    }

    /// Returns the length of another path's window at the times of this one.
    ///
    /// Both must belong to one graph, and the other window may begin neither at a fixed time nor
    /// before the time before which everything stays as recorded.
    fn length_in(&self, py: Python<'_>, other: &Self) -> PyResult<i64> {
        let windows = [&self.window, &other.window];
        let begins_at_time = windows.iter().any(|window| window.fixed_start_ns().is_some());
        let begins_before = other.window.start_ns < self.window.start_ns && self.from_ns.is_some();
        if begins_at_time || begins_before || !Arc::ptr_eq(&self.graph, &other.graph) {
            return Err(PyValueError::new_err("the two windows have no times in common"));
        }
        enter(py, None, None, |_| {
            let path = path::walk(&self.graph, &other.window, &self.schedule);
            Ok(path.end_ns - path.start_ns)
        })
    }

    /// Returns the number of edges of the graph that each change selects.
    fn n_chosen(&self, py: Python<'_>, changes: Vec<ChangeParts>) -> PyResult<Vec<usize>> {
        let changes = self.changes(changes)?;
        enter(py, None, None, |_| path::n_chosen(&self.graph, &self.tables, &changes))
    }
}

pub(crate) fn change(
    (effect, kind, matching, numerator, denominator, events, time_ranges): ChangeParts,
    n_events: usize,
) -> PyResult<Change> {
    let known_event = |row: u32| {
        let row = row as usize;
        (row < n_events).then(|| EventId::from_row(row)).ok_or_else(|| {
            PyValueError::new_err(format!("no event {row}; the trace has {n_events} events"))
        })
    };
    let events = events.map(|rows| rows.into_iter().map(known_event).collect::<PyResult<_>>());
    let ratio = Ratio::new(numerator, denominator)
        .ok_or_else(|| PyValueError::new_err("the denominator of a factor must not be 0"))?;
    let time_ns = || {
        let too_long = |_| PyValueError::new_err("a time must be below 2^63 ns");
        i64::try_from(numerator).map_err(too_long)
    };
    let effect = match effect.as_str() {
        "remove_wait" => Effect::RemoveWait,
        "scale" => Effect::Scale(ratio),
        "replace" => Effect::Replace(time_ns()?),
        "insert" => Effect::Insert(time_ns()?),
        other => {
            let message = format!(
                "a change is \"scale\", \"replace\", \"insert\" or \"remove_wait\", not {other:?}"
            );
            return Err(PyValueError::new_err(message));
        }
    };
    let (kind, event_kind) = kind.map_or(Ok((None, None)), |name| kinds_of(&name))?;
    let time_range = |(lane, start_ns, end_ns)| TimeRange { lane, start_ns, end_ns };
    let time_ranges = time_ranges.map(|of| of.into_iter().map(time_range).collect());
    Ok(Change { effect, kind, event_kind, matching, events: events.transpose()?, time_ranges })
}

/// Returns a kind of time on the path, or a kind of events if the path has no such kind.
fn kinds_of(name: &str) -> PyResult<(Option<Kind>, Option<EventKind>)> {
    if let Some(kind) = Kind::named(name) {
        return Ok((Some(kind), None));
    }
    let kinds = EventKind::NAMES.iter().zip(EventKind::ALL);
    if let Some((_, &kind)) = kinds.clone().find(|(known, _)| **known == name) {
        return Ok((None, Some(kind)));
    }
    let of_path = Kind::NAMES;
    let more = kinds.map(|(known, _)| *known).filter(|known| !of_path.contains(known));
    let known = of_path.iter().copied().chain(more).collect::<Vec<_>>().join(", ");
    Err(PyValueError::new_err(format!("no kind {name:?}; the kinds are {known}")))
}
