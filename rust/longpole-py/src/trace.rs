//! The stages of one trace, each computed on first use and cached.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::enter::enter;
use crate::source::Source;
use crate::vocabulary::{Addition, with_additions};
use longpole_core::graph::Graph;
use longpole_core::link::{BackwardLink, Launches};
use longpole_core::measure::Blocking;
use longpole_core::names::Names;
use longpole_core::path::{Choice, Scope, Window};
use longpole_core::read::{Arguments, Options};
use longpole_core::stack::Nesting;
use longpole_core::tables::Tables;
use longpole_core::{graph, link, measure, overhead, path, read, stack};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A trace read from a file.
#[pyclass(frozen, module = "longpole._core")]
pub(crate) struct Trace {
    tables: Tables,
    launches: OnceLock<Arc<Launches>>,
    nesting: OnceLock<Arc<Nesting>>,
    backward_links: OnceLock<Arc<Vec<BackwardLink>>>,
    blocking: OnceLock<Arc<Vec<Blocking>>>,
    /// The last requested scope.
    scope: Mutex<Option<(Asked, Arc<Scope>)>>,
    /// The last requested graph, with its pattern for data loading.
    graph: Mutex<Option<(String, Arc<Graph>)>>,
    /// The tables as recorded, if the current ones are without the recording cost.
    pub(crate) recorded: Option<Tables>,
    /// The estimate of the recording cost on which the times are based, if the trace shows it.
    pub(crate) estimate: Option<Arc<Estimate>>,
}

/// The recording cost that was taken off the times of a trace: costs of its classes, times a factor.
pub(crate) struct Estimate {
    pub(crate) recorded: Tables,
    pub(crate) costs: overhead::Costs,
    pub(crate) factor: f64,
}

/// A choice, and the pattern of step markers.
type Asked = (Choice, Option<String>);

#[pymethods]
impl Trace {
    /// Whether anything in the file was lost or altered.
    #[getter]
    fn is_recovered(&self) -> bool {
        self.tables.diagnostics.is_recovered()
    }

    /// Returns the number of events of any phase in the file.
    #[getter]
    fn n_events(&self) -> u64 {
        self.tables.n_events()
    }

    /// Returns the size of the uncompressed file in bytes.
    #[getter]
    fn n_bytes(&self) -> u64 {
        self.tables.bytes
    }

    /// Returns the number of events of each phase.
    #[getter]
    fn phases<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let phases = PyDict::new(py);
        for &(letter, count) in &self.tables.phases {
            let name = if letter == 0 { String::new() } else { char::from(letter).to_string() };
            phases.set_item(name, count)?;
        }
        Ok(phases)
    }

    /// Returns the header fields of the document, each as JSON text.
    #[getter]
    fn header(&self) -> Vec<(String, String)> {
        self.tables.header.fields.clone()
    }

    /// Returns the profiler that wrote it.
    #[getter]
    fn profiler(&self) -> &'static str {
        measure::profiler(&self.tables).name()
    }

    /// Whether an inference server wrote it.
    #[getter]
    fn is_of_server(&self) -> bool {
        path::is_of_server(&self.tables)
    }

    /// Returns the rank of the process in its job.
    #[getter]
    fn rank(&self) -> Option<i64> {
        self.tables.header.rank
    }

    /// Returns the number of processes of the job.
    #[getter]
    fn world_size(&self) -> Option<i64> {
        self.tables.header.world_size
    }

    /// Returns the base of its times in ns since 1970.
    #[getter]
    fn base_time_ns(&self) -> Option<i64> {
        self.tables.header.base_time_ns
    }

    /// Returns the format of the file.
    #[getter]
    fn format(&self) -> &'static str {
        self.tables.header.format
    }

    /// Returns the compression of the file.
    #[getter]
    fn compression(&self) -> Option<&'static str> {
        self.tables.header.compression
    }
}

impl Trace {
    pub(crate) fn new(tables: Tables) -> Self {
        Self {
            tables,
            launches: OnceLock::new(),
            nesting: OnceLock::new(),
            backward_links: OnceLock::new(),
            blocking: OnceLock::new(),
            scope: Mutex::new(None),
            graph: Mutex::new(None),
            recorded: None,
            estimate: None,
        }
    }

    /// Returns the same trace at the times of a solution. Data that does not depend on times is
    /// shared.
    pub(crate) fn retimed(
        &self,
        py: Python<'_>,
        solution: overhead::Solution,
        (costs, factor): (overhead::Costs, f64),
        pattern: String,
    ) -> PyResult<Self> {
        let (launches, nesting) = (self.linked(py)?, self.nesting(py)?);
        Ok(Self {
            launches: OnceLock::from(launches),
            nesting: OnceLock::from(nesting),
            graph: Mutex::new(Some((pattern, Arc::new(solution.graph)))),
            recorded: Some(self.tables.clone()),
            estimate: Some(Arc::new(Estimate { recorded: self.tables.clone(), costs, factor })),
            ..Self::new(solution.tables)
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

    pub(crate) fn backward_links(&self, py: Python<'_>) -> PyResult<Arc<Vec<BackwardLink>>> {
        if let Some(known) = self.backward_links.get() {
            return Ok(Arc::clone(known));
        }
        let found = enter(py, None, None, |_| Ok(link::backward_links(&self.tables)))?;
        Ok(Arc::clone(self.backward_links.get_or_init(|| Arc::new(found))))
    }

    /// Returns the calls that blocked.
    pub(crate) fn blocking(&self, py: Python<'_>) -> PyResult<Arc<Vec<Blocking>>> {
        if let Some(known) = self.blocking.get() {
            return Ok(Arc::clone(known));
        }
        let graph = self.graph(py, None)?;
        self.blocking_in(py, &graph)
    }

    /// Returns the calls that blocked, with a graph of the trace. They are cached, so that no graph
    /// has to be built for them again.
    pub(crate) fn blocking_in(
        &self,
        py: Python<'_>,
        graph: &Graph,
    ) -> PyResult<Arc<Vec<Blocking>>> {
        let launches = self.linked(py)?;
        let found = enter(py, None, None, |progress| {
            measure::blocking_calls(&self.tables, &launches, graph, progress)
        })?;
        Ok(Arc::clone(self.blocking.get_or_init(|| Arc::new(found))))
    }

    /// Returns the scope of a choice; the last one is cached. Times that are chosen are those of the
    /// recording.
    pub(crate) fn scope_of(
        &self,
        py: Python<'_>,
        choice: Choice,
        step_name: Option<&str>,
    ) -> PyResult<Arc<Scope>> {
        let known = || self.scope.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = (choice, step_name.map(str::to_owned));
        if let Some((_, scope)) = known().as_ref().filter(|(of, _)| *of == asked) {
            return Ok(Arc::clone(scope));
        }
        let launches = self.linked(py)?;
        let find = || match self.recorded_for(&asked.0) {
            Some(recorded) => path::scope(recorded, &launches, &asked.0, step_name)
                .map(|scope| scope.retimed(recorded, &self.tables)),
            None => path::scope(&self.tables, &launches, &asked.0, step_name),
        };
        let found = Arc::new(enter(py, None, None, |_| find())?);
        *known() = Some((asked, Arc::clone(&found)));
        Ok(found)
    }

    /// Returns the tables in which a choice is looked up, if these are not those of this trace.
    fn recorded_for(&self, choice: &Choice) -> Option<&Tables> {
        self.recorded.as_ref().filter(|_| !matches!(choice, Choice::Now(..)))
    }

    /// Returns the window of a choice.
    pub(crate) fn window_of(
        &self,
        py: Python<'_>,
        choice: Choice,
        step_name: Option<&str>,
    ) -> PyResult<Window> {
        if matches!(choice, Choice::Usual | Choice::Step(..)) {
            return Ok(self.scope_of(py, choice, step_name)?.window().clone());
        }
        let launches = self.linked(py)?;
        enter(py, None, None, |_| match self.recorded_for(&choice) {
            Some(recorded) => path::window(recorded, &launches, &choice, step_name)
                .map(|window| window.retimed(recorded, &self.tables)),
            None => path::window(&self.tables, &launches, &choice, step_name),
        })
    }

    /// Returns the pattern for data-loading functions.
    pub(crate) fn data_load(&self, asked: Option<&str>) -> String {
        asked.map_or_else(|| self.tables.vocabulary.data_loading(), str::to_owned)
    }

    /// Returns the graph; it is rebuilt for another data-loading pattern.
    pub(crate) fn graph(&self, py: Python<'_>, data_load: Option<&str>) -> PyResult<Arc<Graph>> {
        let graph = self.graph_for_now(py, data_load)?;
        let mut known = self.graph.lock().unwrap_or_else(PoisonError::into_inner);
        *known = Some((self.data_load(data_load), Arc::clone(&graph)));
        Ok(graph)
    }

    /// Returns the graph. If it has to be built, it is not cached, because it takes as much memory
    /// as the tables.
    pub(crate) fn graph_for_now(
        &self,
        py: Python<'_>,
        data_load: Option<&str>,
    ) -> PyResult<Arc<Graph>> {
        let pattern = self.data_load(data_load);
        let known = || self.graph.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, graph)) = known().as_ref().filter(|(of, _)| *of == pattern) {
            return Ok(Arc::clone(graph));
        }
        let launches = self.linked(py)?;
        let built = enter(py, None, None, |progress| match &self.recorded {
            Some(recorded) => graph::build(recorded, &launches, &pattern, progress)
                .map(|graph| graph.retimed(&self.tables)),
            None => graph::build(&self.tables, &launches, &pattern, progress),
        })?;
        Ok(Arc::new(built))
    }
}

// Reads a trace: converts the arguments from Python to options of the core.

/// Reads a trace; see `longpole.read_trace`.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, clippy::too_many_arguments)] // keywords, by value, from Python
#[pyo3(signature = (source, *, args=None, vocabulary=None, strict=false, max_bytes=None, max_events=None, threads=None, progress=None))]
pub(crate) fn read_trace(
    py: Python<'_>,
    source: Source,
    args: Option<ArgumentChoice>,
    vocabulary: Option<Vec<Addition>>,
    strict: bool,
    max_bytes: Option<u64>,
    max_events: Option<u64>,
    threads: Option<usize>,
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
        threads: threads.unwrap_or_else(all_cores),
        part_bytes: None,
    };
    let outcome = source.enter(py, progress.as_ref(), |source, progress| match source {
        Source::Path(path) => read::read_path(&path, &options, progress),
        Source::Bytes(bytes) => read::read(&bytes[..], &options, progress),
        Source::Reader(reader) => read::read(reader, &options, progress),
    });
    Ok(Trace::new(outcome?))
}

/// Returns the number of threads that can run at once.
fn all_cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Which arguments to keep: `"ids"`, `"default"`, or a list of names.
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
