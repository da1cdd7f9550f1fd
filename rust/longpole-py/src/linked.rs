//! An execution trace linked to a trace: its nodes, dependencies and files.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;

use longpole_core::columns::columns;
use longpole_core::ids::{EventId, row_in_column};
use longpole_core::link::{self, ExecutionLink, Method, Unlinked};
use longpole_core::names::Names;
use longpole_core::tables::{ExecutionTrace as Nodes, Tables};
use longpole_core::vocabulary::Collective;
use longpole_core::workload::{
    self, Communication, DeviceReason, Linked, Sources, Workload, WorkloadNode,
};
use longpole_core::write;
use pyo3::prelude::*;

use crate::arrow::Table;
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
        let place = |node: &WorkloadNode| node.lane.map(|lane| self.tables.lanes.place(lane));
        let timed = |node: &WorkloadNode, time_ns: i64| node.span.map(|_| time_ns);
        let columns = columns!(nodes.iter(), |node| Columns {
            node: node.id,
            kind: node.kind,
            name: linked.name(node),
            operator: self.trace.nodes[node.row].id,
            event: node.event,
            process: place(node).map(|place| place.process),
            thread: place(node).map(|place| place.thread),
            device: place(node).and_then(|place| place.device),
            stream: place(node).and_then(|place| place.stream),
            start_ns: node.span.map(|span| span.0),
            duration_ns: node.span.map(|span| span.1 - span.0),
            self_ns: timed(node, node.self_ns),
            work_ns: timed(node, node.work_ns),
            blocked_ns: timed(node, node.blocked_ns),
        });
        Table::with_texts(columns, &self.tables.strings)
    }

    /// Returns one row for each dependency, by target.
    fn dependencies(&self) -> PyResult<Table> {
        let (found, nodes) = (&self.workload.dependencies, &self.workload.nodes);
        Table::of(columns!(found.iter(), |one| Columns {
            node: nodes[one.target].id,
            depends_on: nodes[one.source].id,
            kind: one.kind,
            after: one.after,
            evidence: one.evidence,
            event: one.target_event,
            source_event: one.source_event,
        }))
    }

    /// Returns nodes without an event, and GPU activities without a node, each with the reason.
    fn unlinked(&self) -> PyResult<Table> {
        let of_node = |row: usize| {
            let reason = self.link.reason(row)?;
            Some((Some(self.trace.nodes[row].id), None, reason.place()))
        };
        let n_reasons = row_in_column(Unlinked::NAMES.len());
        let of_event = |&(event, reason): &(EventId, DeviceReason)| {
            (None, Some(event), n_reasons + reason.place())
        };
        let nodes = (0..self.trace.nodes.len()).filter_map(of_node);
        let rows: Vec<_> = nodes.chain(self.workload.unlinked.iter().map(of_event)).collect();
        let columns = columns!(rows.iter(), |&(node, event, _)| Columns { node, event });
        let reasons = [Unlinked::NAMES, DeviceReason::NAMES].concat();
        Table::of(columns.with_names("reason", rows.iter().map(|row| row.2), reasons))
    }

    /// Returns the matching iterations of the trace, if the order of names decided.
    fn iterations(&self) -> PyResult<Table> {
        let found = &self.link.iterations;
        let chosen = |number: usize| self.link.chosen == Some(number);
        Table::of(columns!(found.iter().enumerate(), |(number, one)| Columns {
            start_ns: one.start_ns,
            duration_ns: one.end_ns - one.start_ns,
            n_nodes: one.n_nodes(),
            chosen: chosen(number),
        }))
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
        let columns =
            columns!(found.iter(), |one| Columns { node: node(one).id, event: node(one).event });
        let collectives = [Collective::NAMES, &["unknown"]].concat();
        let columns = columns.with_names("collective", found.iter().map(collective), collectives);
        Table::of(columns.and(columns!(found.iter(), |one| Columns {
            group: one.group.as_deref(),
            group_size: one.group_size,
            sequence: one.sequence,
            bytes: one.bytes,
            peer: one.peer,
            start_ns: node(one).span.map(|span| span.0),
            duration_ns: node(one).span.map(|span| span.1 - span.0),
        })))
    }

    /// Writes the nodes as a Chakra graph to a new file.
    fn write_chakra(&self, py: Python<'_>, path: PathBuf, gaps: bool) -> PyResult<()> {
        py.detach(|| {
            let mut out = BufWriter::new(File::create(&path)?);
            write::chakra(self.linked(), gaps, &mut out)?;
            out.flush()
        })
        .map_err(PyErr::from)
    }

    /// Writes the nodes as an ET+ file to a new file.
    fn write_et_plus(&self, py: Python<'_>, path: PathBuf, gaps: bool) -> PyResult<()> {
        py.detach(|| {
            let mut out = BufWriter::new(File::create(&path)?);
            write::et_plus(self.linked(), gaps, &mut out)?;
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
}

/// A replay as values for Python. The last one describes its largest deviation: row, start, end,
/// and time that the replay lacks.
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
