//! The stages of one trace, each computed on first use and kept.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use longpole_core::diagnostics::Diagnostics;
use longpole_core::graph::{self, Graph};
use longpole_core::ids::{row_in_column, InColumn, LaneId, NO_ROW};
use longpole_core::link::{self, Launches};
use longpole_core::measure::{self, Reason};
use longpole_core::path;
use longpole_core::read::{self, Arguments, Options};
use longpole_core::stack::{self, Nesting};
use longpole_core::tables::{EventKind, EventTable, FlowTable, Tables, WorkClass};
use longpole_core::vocabulary::{ApiRole, Names};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::PyDict;

use crate::arrow::{Columns, Table};
use crate::critical_path::{CriticalPath, WindowChoice};
use crate::enter::{detached, enter};
use crate::source::Source;
use crate::verdict::VerdictParts;
use crate::vocabulary::{with_additions, Addition};

/// One trace that was read.
#[pyclass(frozen, module = "longpole._core")]
pub(crate) struct Trace {
    tables: Tables,
    launches: OnceLock<Arc<Launches>>,
    nesting: OnceLock<Arc<Nesting>>,
    /// The graph that was asked for last, with its pattern of what loads data.
    graph: Mutex<Option<(String, Arc<Graph>)>>,
}

/// Reads a trace; see `longpole.read_trace`.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, clippy::too_many_arguments)] // keywords, by value, from Python
#[pyo3(signature = (source, *, args=None, vocabulary=None, strict=false, max_bytes=None, max_events=None, progress=None))]
pub(crate) fn read_trace(
    py: Python<'_>,
    source: Source,
    args: Option<ArgumentChoice>,
    vocabulary: Option<Vec<Addition>>,
    strict: bool,
    max_bytes: Option<u64>,
    max_events: Option<u64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Trace> {
    let arguments = args.map_or(Ok(Arguments::Default), ArgumentChoice::into_arguments)?;
    let options = Options {
        arguments,
        vocabulary: Arc::new(with_additions(&vocabulary.unwrap_or_default())?),
        strict,
        max_bytes,
        max_events,
        scan_all: false,
    };
    let name = source.name();
    let raised = source.raised();
    let outcome = enter(py, name.as_deref(), progress.as_ref(), |progress| match source {
        Source::Path(path) => read::read_path(&path, &options, progress),
        Source::Bytes(bytes) => read::read(&bytes[..], &options, progress),
        Source::Reader(reader) => read::read(reader, &options, progress),
    });
    if let Some(raised) = raised.lock().ok().and_then(|mut raised| raised.take()) {
        return Err(raised);
    }
    let tables = outcome?;
    Ok(Trace {
        tables,
        launches: OnceLock::new(),
        nesting: OnceLock::new(),
        graph: Mutex::new(None),
    })
}

/// Which arguments are kept: `"ids"`, `"default"`, or a list of names.
#[derive(FromPyObject)]
pub(crate) enum ArgumentChoice {
    Named(String),
    Listed(Vec<String>),
}

impl ArgumentChoice {
    fn into_arguments(self) -> PyResult<Arguments> {
        match self {
            Self::Listed(names) => Ok(Arguments::Named(names)),
            Self::Named(name) => match name.as_str() {
                "ids" => Ok(Arguments::Ids),
                "default" => Ok(Arguments::Default),
                _ => Err(PyValueError::new_err(format!(
                    "args is \"ids\", \"default\" or a list of names, not {name:?}"
                ))),
            },
        }
    }
}

#[pymethods]
impl Trace {
    /// Some columns of the events, one row for each. They are asked for a few at a
    /// time, so that not all of what is made for the hand-over exists at once.
    fn events(&self, py: Python<'_>, columns: Vec<PyBackedStr>) -> PyResult<Table> {
        let mut table = Columns::default();
        for name in columns {
            let is_nesting = matches!(&*name, "parent" | "depth");
            let nesting = is_nesting.then(|| self.nesting(py)).transpose()?;
            table = detached(py, || self.event_column(nesting.as_ref(), table, &name))?;
        }
        table.into_table()
    }

    /// One row for each piece of work on a device, and what launched it.
    fn launches(&self, py: Python<'_>) -> PyResult<Table> {
        let (launches, nesting) = (self.linked(py)?, self.nesting(py)?);
        let tables = &self.tables;
        let rows = enter(py, None, None, |_| Ok(measure::launches(tables, &launches, &nesting)))?;
        let by = |row: &measure::Launch| row.linked_by.map_or(NO_ROW, |by| by as u32);
        detached(py, || {
            Columns::default()
                .rows("event", rows.iter().map(|row| Some(row.work).in_column()).collect())
                .choices("work_class", rows.iter().map(|row| row.class as u32), WorkClass::NAMES)
                .rows("call", rows.iter().map(|row| row.call.in_column()).collect())
                .rows("operator", rows.iter().map(|row| row.operator.in_column()).collect())
                .choices("linked_by", rows.iter().map(by), &["correlation", "external_id"])
                .integers("delay_ns", rows.iter().map(|row| row.delay_ns.in_column()).collect())
                .into_table()
        })
    }

    /// The role of each runtime API call.
    fn api_roles(&self, py: Python<'_>) -> PyResult<Table> {
        let tables = &self.tables;
        let rows = enter(py, None, None, |_| Ok(measure::api_roles(tables)))?;
        detached(py, || {
            Columns::default()
                .rows("event", rows.iter().map(|row| Some(row.0).in_column()).collect())
                .choices("role", rows.iter().map(|row| row.1 as u32), ApiRole::NAMES)
                .into_table()
        })
    }

    /// The runtime API calls that waited for a device, and how that is known.
    fn blocking_calls(&self, py: Python<'_>) -> PyResult<Table> {
        let (launches, graph) = (self.linked(py)?, self.graph(py, None)?);
        let rows = enter(py, None, None, |progress| {
            measure::blocking_calls(&self.tables, &launches, &graph, progress)
        })?;
        detached(py, || {
            Columns::default()
                .rows("event", rows.iter().map(|row| Some(row.call).in_column()).collect())
                .choices("reason", rows.iter().map(|row| row.reason as u32), Reason::NAMES)
                .into_table()
        })
    }

    /// The time of each event in which nothing that began after it ran on its thread.
    fn self_times(&self, py: Python<'_>) -> PyResult<Table> {
        let tables = &self.tables;
        let own = enter(py, None, None, |progress| measure::self_time_ns(tables, progress))?;
        detached(py, || {
            Columns::default()
                .rows("event", (0..row_in_column(tables.events.len())).collect())
                .integers("self_ns", own)
                .into_table()
        })
    }

    /// What threads did in spans `(lane, start_ns, end_ns)` of time.
    fn times_within(&self, py: Python<'_>, spans: Vec<(u32, i64, i64)>) -> PyResult<Table> {
        let (nesting, tables) = (self.nesting(py)?, &self.tables);
        let spans = spans
            .into_iter()
            .map(|(lane, start, end)| (LaneId::from_row(lane as usize), start, end));
        let rows = enter(py, None, None, |progress| {
            measure::times_within(tables, &nesting, spans, progress)
        })?;
        detached(py, || {
            Columns::default()
                .rows("event", rows.iter().map(|row| Some(row.event).in_column()).collect())
                .integers("self_ns", rows.iter().map(|row| row.self_ns).collect())
                .integers("total_ns", rows.iter().map(|row| row.total_ns).collect())
                .into_table()
        })
    }

    /// The events that begin inside another one of their thread and end outside it.
    fn crossings(&self, py: Python<'_>) -> PyResult<Table> {
        let nesting = self.nesting(py)?;
        Columns::default()
            .rows("event", nesting.crossings.iter().map(|&event| Some(event).in_column()).collect())
            .into_table()
    }

    /// One row for each step, with the span in which its work was done.
    #[pyo3(signature = (step_name))]
    fn steps(&self, py: Python<'_>, step_name: Option<&str>) -> PyResult<Table> {
        let (launches, tables) = (self.linked(py)?, &self.tables);
        let found = enter(py, None, None, |_| path::steps(tables, &launches, step_name))?;
        let is_step = found.marked != path::Marked::Repetition;
        let rows = if is_step { found.rows } else { Vec::new() };
        let events = &self.tables.events;
        let names = rows.iter().map(|row| events.name(row.event).in_column());
        Columns::default()
            .integers("step", rows.iter().map(|row| row.number).collect())
            .texts("name", names, &self.tables.strings)
            .integers("start_ns", rows.iter().map(|row| row.host_ns.0).collect())
            .integers("duration_ns", rows.iter().map(|row| row.host_ns.1 - row.host_ns.0).collect())
            .rows("event", rows.iter().map(|row| Some(row.event).in_column()).collect())
            .integers("window_start_ns", rows.iter().map(|row| row.period.start_ns).collect())
            .integers("window_end_ns", rows.iter().map(|row| row.period.end_ns).collect())
            .booleans("complete", rows.iter().map(|row| row.is_complete).collect())
            .into_table()
    }

    /// The window of all work on main threads and devices; none without any.
    fn whole_window(&self, py: Python<'_>) -> PyResult<Option<(i64, i64)>> {
        let window = enter(py, None, None, |_| Ok(path::whole(&self.tables).ok()))?;
        Ok(window.map(|window| (window.start_ns, window.end_ns)))
    }

    /// How long each stream and each device was busy within a window, by class of work.
    fn busy(&self, py: Python<'_>, start_ns: i64, end_ns: i64) -> PyResult<Table> {
        let tables = &self.tables;
        let rows = enter(py, None, None, |_| Ok(measure::busy(tables, (start_ns, end_ns))))?;
        let column = |value: fn(&measure::Busy) -> i64| rows.iter().map(value).collect();
        Columns::default()
            .integers("device", rows.iter().map(|row| row.device.in_column()).collect())
            .integers("stream", rows.iter().map(|row| row.stream.in_column()).collect())
            .integers("count", column(|row| row.n_events))
            .integers("busy_ns", column(|row| row.busy_ns))
            .integers("compute_ns", column(|row| row.compute_ns))
            .integers("communication_ns", column(|row| row.communication_ns))
            .integers("copy_ns", column(|row| row.copy_ns))
            .integers("idle_ns", column(|row| row.idle_ns))
            .integers("communication_total_ns", column(|row| row.communication_total_ns))
            .integers("copy_total_ns", column(|row| row.copy_total_ns))
            .into_table()
    }

    /// The spans in which nothing ran on a device, and what ended each.
    fn gaps(&self, py: Python<'_>, start_ns: i64, end_ns: i64) -> PyResult<Table> {
        let (launches, tables) = (self.linked(py)?, &self.tables);
        let rows =
            enter(py, None, None, |_| Ok(measure::gaps(tables, &launches, (start_ns, end_ns))))?;
        Columns::default()
            .integers("device", rows.iter().map(|row| row.device.in_column()).collect())
            .integers("start_ns", rows.iter().map(|row| row.start_ns).collect())
            .integers("duration_ns", rows.iter().map(|row| row.end_ns - row.start_ns).collect())
            .rows("next", rows.iter().map(|row| row.next.in_column()).collect())
            .rows("call", rows.iter().map(|row| row.call.in_column()).collect())
            .integers("host_ns", rows.iter().map(|row| row.host_ns.in_column()).collect())
            .into_table()
    }

    /// The critical path of a window of the trace.
    #[pyo3(signature = (window, *, longest, data_load, step_name))]
    fn critical_path(
        &self,
        py: Python<'_>,
        window: WindowChoice,
        longest: bool,
        data_load: Option<&str>,
        step_name: Option<&str>,
    ) -> PyResult<CriticalPath> {
        let (launches, graph) = (self.linked(py)?, self.graph(py, data_load)?);
        CriticalPath::find(py, &self.tables, &launches, graph, window, step_name, longest)
    }

    /// What holds the program up; see `longpole.verdict`.
    #[pyo3(signature = (window, *, data_load, step_name))]
    fn verdict(
        &self,
        py: Python<'_>,
        window: WindowChoice,
        data_load: Option<&str>,
        step_name: Option<&str>,
    ) -> PyResult<VerdictParts> {
        let (launches, graph) = (self.linked(py)?, self.graph(py, data_load)?);
        let nesting = self.nesting(py)?;
        let WindowChoice(choice) = window;
        VerdictParts::find(py, &self.tables, &launches, &graph, &nesting, &choice, step_name)
    }

    /// The window of a choice, what it is one of, and why: `(unit, number, start_ns, end_ns,
    /// reason)`.
    #[pyo3(signature = (window, *, step_name))]
    fn scope(
        &self,
        py: Python<'_>,
        window: WindowChoice,
        step_name: Option<&str>,
    ) -> PyResult<(&'static str, Option<i64>, i64, i64, String)> {
        let (launches, tables) = (self.linked(py)?, &self.tables);
        let WindowChoice(choice) = window;
        let find = || path::scope(tables, &launches, &choice, step_name);
        let scope = enter(py, None, None, |_| find())?;
        let (start_ns, end_ns) = (scope.window().start_ns, scope.window().end_ns);
        Ok((scope.unit.name(), scope.number(), start_ns, end_ns, scope.reason))
    }

    /// The places where something happens.
    fn lanes(&self, py: Python<'_>) -> PyResult<Table> {
        detached(py, || {
            let (lanes, strings) = (&self.tables.lanes, &self.tables.strings);
            Columns::default()
                .rows("lane", (0..row_in_column(lanes.len())).collect())
                .texts("process", lanes.processes().into_iter(), strings)
                .texts("thread", lanes.threads().into_iter(), strings)
                .integers("device", lanes.devices())
                .integers("stream", lanes.streams())
                .into_table()
        })
    }

    /// The ends of arrows.
    fn flows(&self, py: Python<'_>) -> PyResult<Table> {
        detached(py, || self.flow_table("flow", &self.tables.flows))
    }

    /// The parts of asynchronous events.
    fn asynchronous(&self, py: Python<'_>) -> PyResult<Table> {
        detached(py, || self.flow_table("id", &self.tables.asyncs))
    }

    /// Samples of counters.
    fn counters(&self, py: Python<'_>) -> PyResult<Table> {
        detached(py, || {
            let (counters, strings) = (&self.tables.counters, &self.tables.strings);
            Columns::default()
                .texts("name", counters.name.iter().copied(), strings)
                .texts("series", counters.series.iter().copied(), strings)
                .texts("process", counters.process.iter().copied(), strings)
                .integers("time_ns", counters.time_ns.clone())
                .floats("value", counters.value.clone())
                .rows("position", counters.position.clone())
                .into_table()
        })
    }

    /// What the trace says of its processes and threads.
    fn metadata_events(&self, py: Python<'_>) -> PyResult<Table> {
        detached(py, || {
            let (metadata, strings) = (&self.tables.metadata, &self.tables.strings);
            let counts =
                metadata.count.iter().map(|&count| i64::try_from(count).unwrap_or(i64::MAX));
            Columns::default()
                .texts("name", metadata.name.iter().copied(), strings)
                .texts("process", metadata.process.iter().copied(), strings)
                .texts("thread", metadata.thread.iter().copied(), strings)
                .texts("text", metadata.value.iter().copied(), strings)
                .integers("count", counts.collect())
                .rows("last_position", metadata.last_position.clone())
                .into_table()
        })
    }

    /// The categories that have arguments, in order of first use.
    fn categories(&self) -> Vec<Option<String>> {
        let strings = &self.tables.strings;
        self.tables
            .args
            .iter()
            .map(|(category, _)| Some(strings.get(category?).to_owned()))
            .collect()
    }

    /// The arguments of the events of one category.
    fn args(&self, py: Python<'_>, category: Option<&str>) -> PyResult<Option<Table>> {
        let strings = &self.tables.strings;
        let known = match category {
            Some(category) => match strings.lookup(category) {
                Some(id) => Some(id),
                None => return Ok(None),
            },
            None => None,
        };
        let Some(table) = self.tables.args.of(known) else { return Ok(None) };
        detached(py, || {
            let mut columns = Columns::default().rows("event", table.event.clone());
            for column in &table.columns {
                columns = columns.values(&column.key, &column.values, strings);
            }
            columns.into_table().map(Some)
        })
    }

    /// What was found wrong, a row a kind.
    fn diagnostics(&self, py: Python<'_>) -> PyResult<Table> {
        detached(py, || diagnostics_table(&self.tables.diagnostics))
    }

    /// Whether something of the file was lost or altered.
    #[getter]
    fn is_recovered(&self) -> bool {
        self.tables.diagnostics.is_recovered()
    }

    /// How many events of any phase the file holds.
    #[getter]
    fn n_events(&self) -> u64 {
        self.tables.n_events()
    }

    /// How many bytes the uncompressed file has.
    #[getter]
    fn n_bytes(&self) -> u64 {
        self.tables.bytes
    }

    /// How many events there are of each phase.
    #[getter]
    fn phases<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let phases = PyDict::new(py);
        for &(letter, count) in &self.tables.phases {
            let name = if letter == 0 { String::new() } else { char::from(letter).to_string() };
            phases.set_item(name, count)?;
        }
        Ok(phases)
    }

    /// What the document says about itself: each field with its JSON text.
    #[getter]
    fn header(&self) -> Vec<(String, String)> {
        self.tables.header.fields.clone()
    }

    /// The rank of the process among those of its job.
    #[getter]
    fn rank(&self) -> Option<i64> {
        self.tables.header.rank
    }

    /// How many processes the job has.
    #[getter]
    fn world_size(&self) -> Option<i64> {
        self.tables.header.world_size
    }

    /// What times are relative to, in ns since 1970.
    #[getter]
    fn base_time_ns(&self) -> Option<i64> {
        self.tables.header.base_time_ns
    }

    /// The format of the file.
    #[getter]
    fn format(&self) -> &'static str {
        self.tables.header.format
    }

    /// How the file was compressed.
    #[getter]
    fn compression(&self) -> Option<&'static str> {
        self.tables.header.compression
    }

    /// Counts of what linking and nesting could not settle.
    fn doubts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (launches, nesting) = (self.linked(py)?, self.nesting(py)?);
        let tables = &self.tables;
        let doubts = enter(py, None, None, |_| Ok(measure::doubts(tables, &launches, &nesting)))?;
        let found = PyDict::new(py);
        for (name, count) in doubts {
            found.set_item(name, count)?;
        }
        Ok(found)
    }
}

impl Trace {
    fn event_column(
        &self,
        nesting: Option<&Arc<Nesting>>,
        table: Columns,
        name: &str,
    ) -> PyResult<Columns> {
        let (events, lanes, strings) =
            (&self.tables.events, &self.tables.lanes, &self.tables.strings);
        let texts_of_lane = |table: Columns, column: Vec<u32>| {
            table.texts(name, events.lanes().iter().map(|&lane| column[lane as usize]), strings)
        };
        let of_lane =
            |column: Vec<i64>| events.lanes().iter().map(move |&lane| column[lane as usize]);
        Ok(match (name, nesting) {
            ("parent", Some(nesting)) => table.shared_rows(name, nesting, Nesting::parents),
            ("depth", Some(nesting)) => table.shared_depths(name, nesting, Nesting::depths),
            ("event", _) => table.rows(name, (0..row_in_column(events.len())).collect()),
            ("kind", _) => {
                let kinds = EventKind::NAMES;
                table.choices(name, events.kinds().iter().map(|&kind| u32::from(kind)), kinds)
            }
            ("category", _) => table.texts(name, events.categories().iter().copied(), strings),
            ("name", _) => table.texts(name, events.names().iter().copied(), strings),
            ("process", _) => texts_of_lane(table, lanes.processes()),
            ("thread", _) => texts_of_lane(table, lanes.threads()),
            ("device", _) => table.small_integers(name, of_lane(lanes.devices())),
            ("stream", _) => table.integers(name, of_lane(lanes.streams()).collect()),
            ("start_ns", _) => table.shared_integers(name, events, EventTable::starts_ns),
            ("duration_ns", _) => table.shared_integers(name, events, EventTable::durations_ns),
            ("correlation", _) => table.shared_integers(name, events, EventTable::correlations),
            ("external_id", _) => table.shared_integers(name, events, EventTable::external_ids),
            ("lane", _) => table.shared_rows(name, events, EventTable::lanes),
            ("position", _) => table.shared_rows(name, events, EventTable::positions),
            _ => return Err(PyValueError::new_err(format!("events have no column {name:?}"))),
        })
    }

    pub(crate) fn tables(&self) -> &Tables {
        &self.tables
    }

    pub(crate) fn linked(&self, py: Python<'_>) -> PyResult<Arc<Launches>> {
        if let Some(known) = self.launches.get() {
            return Ok(Arc::clone(known));
        }
        let found = enter(py, None, None, |progress| link::launches(&self.tables, progress))?;
        Ok(Arc::clone(self.launches.get_or_init(|| Arc::new(found))))
    }

    pub(crate) fn nesting(&self, py: Python<'_>) -> PyResult<Arc<Nesting>> {
        if let Some(known) = self.nesting.get() {
            return Ok(Arc::clone(known));
        }
        let found = enter(py, None, None, |progress| stack::nesting(&self.tables, progress))?;
        Ok(Arc::clone(self.nesting.get_or_init(|| Arc::new(found))))
    }

    /// The graph, made anew when another pattern says what loads data.
    pub(crate) fn graph(&self, py: Python<'_>, data_load: Option<&str>) -> PyResult<Arc<Graph>> {
        let pattern =
            data_load.map_or_else(|| self.tables.vocabulary.data_loading(), str::to_owned);
        let known = || self.graph.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, graph)) = known().as_ref().filter(|(of, _)| *of == pattern) {
            return Ok(Arc::clone(graph));
        }
        let launches = self.linked(py)?;
        let built = enter(py, None, None, |progress| {
            graph::build(&self.tables, &launches, &pattern, progress)
        })?;
        let built = Arc::new(built);
        *known() = Some((pattern, Arc::clone(&built)));
        Ok(built)
    }

    fn flow_table(&self, id: &str, flows: &FlowTable) -> PyResult<Table> {
        let strings = &self.tables.strings;
        let letters: Vec<_> = (0..=u8::MAX).map(|letter| char::from(letter).to_string()).collect();
        let letters: Vec<_> = letters.iter().map(String::as_str).collect();
        Columns::default()
            .choices("phase", flows.phase.iter().map(|&phase| u32::from(phase)), &letters)
            .values(id, &flows.id, strings)
            .texts("category", flows.column(|source| source.category), strings)
            .texts("name", flows.column(|source| source.name), strings)
            .texts("process", flows.column(|source| Some(source.process)), strings)
            .texts("thread", flows.column(|source| Some(source.thread)), strings)
            .integers("time_ns", flows.time_ns.clone())
            .rows("position", flows.position.clone())
            .into_table()
    }
}

/// What was found wrong, a row a kind.
pub(crate) fn diagnostics_table(diagnostics: &Diagnostics) -> PyResult<Table> {
    let rows: Vec<_> = diagnostics.iter().copied().collect();
    let count = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    Columns::default()
        .strings("code", rows.iter().map(|row| Some(row.code.name())))
        .strings("severity", rows.iter().map(|row| Some(row.code.severity().name())))
        .integers("count", rows.iter().map(|row| count(row.count)).collect())
        .integers("first_offset", rows.iter().map(|row| count(row.first_offset)).collect())
        .integers("skipped_bytes", rows.iter().map(|row| count(row.skipped_bytes)).collect())
        .strings("sentence", rows.iter().map(|row| Some(row.code.sentence())))
        .strings("effect", rows.iter().map(|row| Some(row.code.effect())))
        .into_table()
}
