//! An execution trace linked to a trace: its nodes, dependencies and files.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;

use longpole_core::ids::{InColumn, NO_ROW, row_in_column};
use longpole_core::link::{self, ExecutionLink, Method, Unlinked};
use longpole_core::names::Names;
use longpole_core::tables::{ExecutionTrace as Nodes, NO_INTEGER, Tables};
use longpole_core::vocabulary::Collective;
use longpole_core::workload::{self, Communication, DeviceReason, Linked, Sources, Workload};
use longpole_core::write::{self, Extent};
use pyo3::prelude::*;

use crate::arrow::{Columns, Table};
use crate::enter::{detached, enter};
use crate::execution::ExecutionTrace;
use crate::trace::Trace;

/// An execution trace with the times of a trace.
#[pyclass(frozen, module = "longpole._core")]
pub(crate) struct LinkedTrace {
    trace: Arc<Nodes>,
    tables: Tables,
    link: ExecutionLink,
    workload: Workload,
}

/// Links an execution trace to a trace; see `longpole.link_execution_trace`.
#[pyfunction]
#[pyo3(signature = (execution, trace, *, iteration=None, progress=None))]
#[allow(clippy::needless_pass_by_value)] // arguments come by value from Python
pub(crate) fn link_execution_trace(
    py: Python<'_>,
    execution: &ExecutionTrace,
    trace: &Trace,
    iteration: Option<usize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<LinkedTrace> {
    let nodes = Arc::clone(&execution.trace);
    let (launches, nesting) = (trace.linked(py)?, trace.nesting(py)?);
    let tables = trace.tables().clone();
    let link = enter(py, None, None, |_| link::execution(&nodes, &tables, iteration))?;
    let graph = trace.graph(py, None)?;
    let sources = Sources {
        trace: &nodes,
        tables: &tables,
        link: &link,
        launches: &launches,
        nesting: &nesting,
        graph: &graph,
    };
    let workload =
        enter(py, None, progress.as_ref(), |progress| workload::workload(sources, progress))?;
    Ok(LinkedTrace { trace: nodes, tables, link, workload })
}

#[pymethods]
impl LinkedTrace {
    /// Returns one row for each node, by id.
    fn nodes(&self) -> PyResult<Table> {
        let linked = self.linked();
        let nodes = &self.workload.nodes;
        let strings = &self.tables.strings;
        let start_ns = nodes.iter().map(|node| node.span.map_or(NO_INTEGER, |span| span.0));
        let duration_ns =
            nodes.iter().map(|node| node.span.map_or(NO_INTEGER, |span| span.1 - span.0));
        let places =
            || nodes.iter().map(|node| node.lane.map(|lane| self.tables.lanes.place(lane)));
        Columns::default()
            .integers("node", nodes.iter().map(|node| node.id).collect())
            .words("kind", nodes.iter().map(|node| node.kind))
            .strings("name", nodes.iter().map(|node| Some(linked.name(node))))
            .integers("operator", nodes.iter().map(|node| self.trace.nodes[node.row].id).collect())
            .rows("event", nodes.iter().map(|node| node.event.in_column()).collect())
            .texts("process", places().map(|place| place.map(|it| it.process).in_column()), strings)
            .texts("thread", places().map(|place| place.map(|it| it.thread).in_column()), strings)
            .integers(
                "device",
                places().map(|place| place?.device).map(InColumn::in_column).collect(),
            )
            .integers(
                "stream",
                places().map(|place| place?.stream).map(InColumn::in_column).collect(),
            )
            .integers("start_ns", start_ns.collect())
            .integers("duration_ns", duration_ns.collect())
            .integers("self_ns", self.timed(|node| node.self_ns))
            .integers("work_ns", self.timed(|node| node.work_ns))
            .integers("blocked_ns", self.timed(|node| node.blocked_ns))
            .into_table()
    }

    /// Returns one row for each dependency, by target.
    fn dependencies(&self) -> PyResult<Table> {
        let (found, nodes) = (&self.workload.dependencies, &self.workload.nodes);
        Columns::default()
            .integers("node", found.iter().map(|one| nodes[one.target].id).collect())
            .integers("depends_on", found.iter().map(|one| nodes[one.source].id).collect())
            .words("kind", found.iter().map(|one| one.kind))
            .words("after", found.iter().map(|one| one.after))
            .words("evidence", found.iter().map(|one| one.evidence))
            .rows("event", found.iter().map(|one| one.target_event.in_column()).collect())
            .rows("source_event", found.iter().map(|one| one.source_event.in_column()).collect())
            .into_table()
    }

    /// Returns nodes without an event, and GPU activities without a node, each with the reason.
    fn unlinked(&self) -> PyResult<Table> {
        let rows =
            (0..self.trace.nodes.len()).filter_map(|row| Some((row, self.link.reason(row)?)));
        let rows: Vec<_> = rows.collect();
        let events = &self.workload.unlinked;
        let ids = rows.iter().map(|&(row, _)| self.trace.nodes[row].id);
        let n_reasons = Unlinked::NAMES.len();
        let reasons = [Unlinked::NAMES, DeviceReason::NAMES].concat();
        let device_reason = |reason: DeviceReason| row_in_column(n_reasons + reason as usize);
        Columns::default()
            .integers("node", ids.chain(events.iter().map(|_| NO_INTEGER)).collect())
            .rows(
                "event",
                rows.iter()
                    .map(|_| NO_ROW)
                    .chain(events.iter().map(|&(event, _)| Some(event).in_column()))
                    .collect(),
            )
            .choices(
                "reason",
                rows.iter()
                    .map(|&(_, reason)| reason as u32)
                    .chain(events.iter().map(|&(_, reason)| device_reason(reason))),
                &reasons,
            )
            .into_table()
    }

    /// Returns the matching iterations of the trace, if the order of names decided.
    fn iterations(&self) -> PyResult<Table> {
        let found = &self.link.iterations;
        let chosen = |number: usize| self.link.chosen == Some(number);
        Columns::default()
            .integers("start_ns", found.iter().map(|one| one.start_ns).collect())
            .integers("duration_ns", found.iter().map(|one| one.end_ns - one.start_ns).collect())
            .integers(
                "n_nodes",
                found.iter().map(|one| i64::from(row_in_column(one.n_nodes()))).collect(),
            )
            .booleans("chosen", (0..found.len()).map(chosen).collect())
            .into_table()
    }

    /// Returns how nodes were linked: by which id, or by order.
    #[getter]
    fn method(&self) -> &'static str {
        Method::NAMES[self.link.method as usize]
    }

    /// Returns the number of nodes linked to the trace.
    #[getter]
    fn n_linked(&self) -> usize {
        self.link.n_linked()
    }

    /// Whether the two files contain different process ids.
    #[getter]
    fn pids_differ(&self) -> bool {
        self.link.pids_differ
    }

    /// Returns the number of dependencies left out, by reason.
    #[getter]
    fn dropped(&self) -> [(&'static str, u64); 3] {
        let dropped = self.workload.dropped;
        [
            ("against_time", dropped.against_time),
            ("source_outside", dropped.source_outside),
            ("target_outside", dropped.target_outside),
        ]
    }

    /// Returns one row for each communication.
    fn collectives(&self) -> PyResult<Table> {
        let found = workload::communications(self.linked());
        let node = |one: &Communication| &self.workload.nodes[one.row];
        let unknown = row_in_column(Collective::NAMES.len());
        let collective = |one: &Communication| one.collective.map_or(unknown, Names::place);
        let start_ns = |one: &Communication| node(one).span.map(|span| span.0).in_column();
        let duration_ns =
            |one: &Communication| node(one).span.map(|span| span.1 - span.0).in_column();
        Columns::default()
            .integers("node", found.iter().map(|one| node(one).id).collect())
            .rows("event", found.iter().map(|one| node(one).event.in_column()).collect())
            .choices(
                "collective",
                found.iter().map(collective),
                &[Collective::NAMES, &["unknown"]].concat(),
            )
            .strings("group", found.iter().map(|one| one.group.as_deref()))
            .integers("group_size", found.iter().map(|one| one.group_size.in_column()).collect())
            .integers("sequence", found.iter().map(|one| one.sequence.in_column()).collect())
            .integers("bytes", found.iter().map(|one| one.bytes.in_column()).collect())
            .integers("peer", found.iter().map(|one| one.peer.in_column()).collect())
            .integers("start_ns", found.iter().map(start_ns).collect())
            .integers("duration_ns", found.iter().map(duration_ns).collect())
            .into_table()
    }

    /// Writes the nodes as a Chakra graph to a new file.
    #[allow(clippy::needless_pass_by_value)] // arguments come by value from Python
    fn write_chakra(&self, py: Python<'_>, path: PathBuf, gaps: bool) -> PyResult<()> {
        py.detach(|| {
            let mut out = BufWriter::new(File::create(&path)?);
            write::chakra(self.linked(), gaps, &mut out)?;
            out.flush()
        })
        .map_err(PyErr::from)
    }

    /// Writes the nodes as an ET+ file to a new file.
    #[allow(clippy::needless_pass_by_value)] // arguments come by value from Python
    fn write_et_plus(&self, py: Python<'_>, path: PathBuf, as_chakra: bool) -> PyResult<()> {
        let extent = if as_chakra { Extent::Chakra } else { Extent::Full };
        py.detach(|| {
            let mut out = BufWriter::new(File::create(&path)?);
            write::et_plus(self.linked(), extent, &mut out)?;
            out.flush()
        })
        .map_err(PyErr::from)
    }

    /// Replays the graph. Returns the length of the replay, the length of the run, the number of
    /// nodes that never run, for each thread and stream its label, nodes, busy time, end and
    /// measured end, and the largest deviation from the run.
    fn replay(&self, py: Python<'_>, gaps: bool) -> PyResult<ReplayParts> {
        detached(py, || Ok(replay_parts(&workload::replay_workload(&self.workload, gaps))))
    }
}

impl LinkedTrace {
    fn linked(&self) -> Linked<'_> {
        Linked { trace: &self.trace, tables: &self.tables, workload: &self.workload }
    }

    /// Times are null if the node has none.
    fn timed(&self, column: fn(&workload::WorkloadNode) -> i64) -> Vec<i64> {
        let nodes = self.workload.nodes.iter();
        nodes.map(|node| node.span.map_or(NO_INTEGER, |_| column(node))).collect()
    }
}

/// A replay for Python. The last part is row, start, end and missing time of its largest deviation.
pub(crate) type ReplayParts = (
    i64,
    Option<i64>,
    usize,
    Vec<(&'static str, i64, usize, i64, i64, Option<i64>)>,
    Option<(usize, i64, i64, i64)>,
);

pub(crate) fn replay_parts(replay: &workload::Replay) -> ReplayParts {
    let resources = replay.resources.iter().map(|(resource, one)| {
        let (kind, number) = match resource {
            workload::Resource::Thread(number) => ("thread", *number),
            workload::Resource::Stream(number) => ("stream", *number),
        };
        (kind, number, one.n_nodes, one.busy_ns, one.end_ns, one.measured_end_ns)
    });
    let deviation = replay.deviation.map(|one| (one.row, one.start_ns, one.end_ns, one.missing_ns));
    (replay.makespan_ns, replay.measured_ns, replay.stuck, resources.collect(), deviation)
}
