//! Execution traces, and what linking them to a trace gives.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;

use longpole_core::graph::Evidence;
use longpole_core::ids::{row_in_column, InColumn, NO_ROW};
use longpole_core::link::{self, ExecutionLink, Method, Unlinked};
use longpole_core::read::chakra;
use longpole_core::read::execution_trace::{self, Options};
use longpole_core::tables::chakra::{ChakraNode, ChakraTrace as ChakraNodes, NODE_TYPES};
use longpole_core::tables::{ExecutionTrace as Nodes, Tables, NO_INTEGER};
use longpole_core::workload::{
    self, check, Communication, DependencyKind, DeviceReason, Linked, Moment, NodeKind, Operation,
    Sources, Workload,
};
use longpole_core::write::{self, Extent};
use pyo3::prelude::*;

use crate::arrow::{Columns, Table};
use crate::enter::enter;
use crate::source::Source;
use crate::trace::{diagnostics_table, Trace};

/// A PyTorch execution trace that was read.
#[pyclass(frozen, module = "longpole._core")]
pub(crate) struct ExecutionTrace {
    trace: Arc<Nodes>,
}

/// Reads an execution trace; see `longpole.read_execution_trace`.
#[pyfunction]
#[pyo3(signature = (source, *, strict=false, max_bytes=None, progress=None))]
#[allow(clippy::needless_pass_by_value)] // arguments come by value from Python
pub(crate) fn read_execution_trace(
    py: Python<'_>,
    source: Source,
    strict: bool,
    max_bytes: Option<u64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<ExecutionTrace> {
    let options = Options { strict, max_bytes };
    let (name, raised) = (source.name(), source.raised());
    let outcome = enter(py, name.as_deref(), progress.as_ref(), |progress| match source {
        Source::Path(path) => execution_trace::read_path(&path, options, progress),
        Source::Bytes(bytes) => execution_trace::read(&bytes[..], options, progress),
        Source::Reader(reader) => execution_trace::read(reader, options, progress),
    });
    if let Some(raised) = raised.lock().ok().and_then(|mut raised| raised.take()) {
        return Err(raised);
    }
    Ok(ExecutionTrace { trace: Arc::new(outcome?) })
}

#[pymethods]
impl ExecutionTrace {
    /// One row for each node, by id.
    fn nodes(&self) -> PyResult<Table> {
        let (nodes, strings) = (&self.trace.nodes, &self.trace.strings);
        let number = |column: fn(&longpole_core::tables::ExecutionNode) -> i64| {
            nodes.iter().map(column).collect::<Vec<_>>()
        };
        let mut table = Columns::default()
            .integers("node", number(|node| node.id))
            .texts("name", nodes.iter().map(|node| Some(node.name).in_column()), strings)
            .integers("parent", number(|node| node.parent))
            .integers("rf_id", number(|node| node.rf_id))
            .integers("fw_parent", number(|node| node.fw_parent))
            .integers("seq_id", number(|node| node.seq_id))
            .integers("scope", number(|node| node.scope))
            .integers("tid", number(|node| node.tid))
            .integers("fw_tid", number(|node| node.fw_tid));
        let texts = [
            ("op_schema", nodes.iter().map(|node| node.op_schema).collect::<Vec<_>>()),
            ("input_values", nodes.iter().map(|node| node.inputs.values).collect()),
            ("input_shapes", nodes.iter().map(|node| node.inputs.shapes).collect()),
            ("input_types", nodes.iter().map(|node| node.inputs.types).collect()),
            ("input_strides", nodes.iter().map(|node| node.inputs.strides).collect()),
            ("output_values", nodes.iter().map(|node| node.outputs.values).collect()),
            ("output_shapes", nodes.iter().map(|node| node.outputs.shapes).collect()),
            ("output_types", nodes.iter().map(|node| node.outputs.types).collect()),
            ("output_strides", nodes.iter().map(|node| node.outputs.strides).collect()),
        ];
        for (name, ids) in texts {
            table = table.texts(name, ids.into_iter().map(|id| Some(id).in_column()), strings);
        }
        table.into_table()
    }

    /// What was found wrong, a row a kind.
    fn diagnostics(&self) -> PyResult<Table> {
        diagnostics_table(&self.trace.diagnostics)
    }

    /// Whether something of the file was lost or altered.
    #[getter]
    fn is_recovered(&self) -> bool {
        self.trace.diagnostics.is_recovered()
    }

    /// The version of the format.
    #[getter]
    fn schema(&self) -> &str {
        &self.trace.header.schema
    }

    /// The process that wrote it.
    #[getter]
    fn pid(&self) -> Option<i64> {
        self.trace.header.pid
    }

    /// How many bytes the uncompressed file has.
    #[getter]
    fn n_bytes(&self) -> u64 {
        self.trace.bytes
    }

    /// How many nodes there are.
    fn __len__(&self) -> usize {
        self.trace.nodes.len()
    }
}

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
    /// One row for each node, by id.
    fn nodes(&self) -> PyResult<Table> {
        let linked = self.linked();
        let nodes = &self.workload.nodes;
        let strings = &self.tables.strings;
        let start_ns = nodes.iter().map(|node| node.span.map_or(NO_INTEGER, |span| span.0));
        let duration_ns =
            nodes.iter().map(|node| node.span.map_or(NO_INTEGER, |span| span.1 - span.0));
        let lanes = &self.tables.lanes;
        let place = |node: &workload::WorkloadNode| node.lane.map(|lane| lanes.place(lane));
        Columns::default()
            .integers("node", nodes.iter().map(|node| node.id).collect())
            .choices("kind", nodes.iter().map(|node| node.kind as u32), NodeKind::NAMES)
            .strings("name", nodes.iter().map(|node| Some(linked.name(node))))
            .integers("operator", nodes.iter().map(|node| self.trace.nodes[node.row].id).collect())
            .rows("event", nodes.iter().map(|node| node.event.in_column()).collect())
            .texts(
                "process",
                nodes.iter().map(|node| place(node).map(|place| place.process).in_column()),
                strings,
            )
            .texts(
                "thread",
                nodes.iter().map(|node| place(node).map(|place| place.thread).in_column()),
                strings,
            )
            .integers(
                "device",
                nodes
                    .iter()
                    .map(|node| place(node).and_then(|place| place.device).in_column())
                    .collect(),
            )
            .integers(
                "stream",
                nodes
                    .iter()
                    .map(|node| place(node).and_then(|place| place.stream).in_column())
                    .collect(),
            )
            .integers("start_ns", start_ns.collect())
            .integers("duration_ns", duration_ns.collect())
            .integers("self_ns", self.timed(|node| node.self_ns))
            .integers("work_ns", self.timed(|node| node.work_ns))
            .integers("blocked_ns", self.timed(|node| node.blocked_ns))
            .into_table()
    }

    /// One row for each dependency, by target.
    fn dependencies(&self) -> PyResult<Table> {
        let (found, nodes) = (&self.workload.dependencies, &self.workload.nodes);
        let evidence: Vec<_> = Evidence::ALL.iter().map(|evidence| evidence.name()).collect();
        Columns::default()
            .integers("node", found.iter().map(|one| nodes[one.target].id).collect())
            .integers("depends_on", found.iter().map(|one| nodes[one.source].id).collect())
            .choices("kind", found.iter().map(|one| one.kind as u32), DependencyKind::NAMES)
            .choices("after", found.iter().map(|one| one.after as u32), Moment::NAMES)
            .choices("evidence", found.iter().map(|one| one.evidence as u32), &evidence)
            .rows("event", found.iter().map(|one| one.target_event.in_column()).collect())
            .rows("source_event", found.iter().map(|one| one.source_event.in_column()).collect())
            .into_table()
    }

    /// Nodes without an event, and device work without a node, each with its reason.
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

    /// The iterations of the trace that fit, where the order of names decided.
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

    /// How nodes were found: by what number or order.
    #[getter]
    fn method(&self) -> &'static str {
        Method::NAMES[self.link.method as usize]
    }

    /// How many nodes were found in the trace.
    #[getter]
    fn n_linked(&self) -> usize {
        self.link.n_linked()
    }

    /// Whether the two files name different processes.
    #[getter]
    fn pids_differ(&self) -> bool {
        self.link.pids_differ
    }

    /// From the first start to the last end of all nodes with times.
    #[getter]
    fn measured_span(&self) -> Option<(i64, i64)> {
        self.workload.measured_span()
    }

    /// Dependencies that were left out, by reason.
    #[getter]
    fn dropped(&self) -> [(&'static str, u64); 3] {
        let dropped = self.workload.dropped;
        [
            ("against_time", dropped.against_time),
            ("source_outside", dropped.source_outside),
            ("target_outside", dropped.target_outside),
        ]
    }

    /// One row for each communication.
    fn collectives(&self) -> PyResult<Table> {
        let found = workload::communications(self.linked());
        let node = |one: &Communication| &self.workload.nodes[one.row];
        let start_ns = |one: &Communication| node(one).span.map(|span| span.0).in_column();
        let duration_ns =
            |one: &Communication| node(one).span.map(|span| span.1 - span.0).in_column();
        Columns::default()
            .integers("node", found.iter().map(|one| node(one).id).collect())
            .rows("event", found.iter().map(|one| node(one).event.in_column()).collect())
            .choices("collective", found.iter().map(|one| one.collective as u32), Operation::NAMES)
            .strings("group", found.iter().map(|one| one.group.as_deref()))
            .integers("group_size", found.iter().map(|one| one.group_size.in_column()).collect())
            .integers("sequence", found.iter().map(|one| one.sequence.in_column()).collect())
            .integers("bytes", found.iter().map(|one| one.bytes.in_column()).collect())
            .integers("peer", found.iter().map(|one| one.peer.in_column()).collect())
            .integers("start_ns", found.iter().map(start_ns).collect())
            .integers("duration_ns", found.iter().map(duration_ns).collect())
            .into_table()
    }

    /// Writes the nodes as a Chakra graph to a file that is made anew.
    #[allow(clippy::needless_pass_by_value)] // arguments come by value from Python
    fn write_chakra(&self, py: Python<'_>, path: PathBuf, gaps: bool) -> PyResult<()> {
        py.detach(|| {
            let mut out = BufWriter::new(File::create(&path)?);
            write::chakra(self.linked(), gaps, &mut out)?;
            out.flush()
        })
        .map_err(PyErr::from)
    }

    /// Writes the nodes as an ET+ file that is made anew.
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

    /// A replay: how long it takes, how long the run took, nodes that never run, and for
    /// each thread and stream its label, nodes, busy time, end and measured end.
    fn replay(&self, gaps: bool) -> ReplayParts {
        replay_parts(&workload::replay_workload(&self.workload, gaps))
    }
}

impl LinkedTrace {
    fn linked(&self) -> Linked<'_> {
        Linked { trace: &self.trace, tables: &self.tables, workload: &self.workload }
    }

    /// Times are null where the node has none.
    fn timed(&self, column: fn(&workload::WorkloadNode) -> i64) -> Vec<i64> {
        let nodes = self.workload.nodes.iter();
        nodes.map(|node| node.span.map_or(NO_INTEGER, |_| column(node))).collect()
    }
}

/// A replay as Python takes it.
type ReplayParts =
    (i64, Option<i64>, usize, Vec<(&'static str, i64, usize, i64, i64, Option<i64>)>);

fn replay_parts(replay: &workload::Replay) -> ReplayParts {
    let resources = replay.resources.iter().map(|(resource, one)| {
        let (kind, number) = match resource {
            workload::Resource::Thread(number) => ("thread", *number),
            workload::Resource::Stream(number) => ("stream", *number),
        };
        (kind, number, one.n_nodes, one.busy_ns, one.end_ns, one.measured_end_ns)
    });
    (replay.makespan_ns, replay.measured_ns, replay.stuck, resources.collect())
}

/// A Chakra graph that was read.
#[pyclass(frozen, module = "longpole._core")]
pub(crate) struct ChakraTrace {
    trace: ChakraNodes,
}

/// Reads a Chakra graph; see `longpole.chakra.read_chakra`.
#[pyfunction]
#[pyo3(signature = (source, *, progress=None))]
#[allow(clippy::needless_pass_by_value)] // arguments come by value from Python
pub(crate) fn read_chakra(
    py: Python<'_>,
    source: Source,
    progress: Option<Py<PyAny>>,
) -> PyResult<ChakraTrace> {
    let (name, raised) = (source.name(), source.raised());
    let outcome = enter(py, name.as_deref(), progress.as_ref(), |progress| match source {
        Source::Path(path) => chakra::read_path(&path, progress),
        Source::Bytes(bytes) => chakra::read(&bytes[..], progress),
        Source::Reader(reader) => chakra::read(reader, progress),
    });
    if let Some(raised) = raised.lock().ok().and_then(|mut raised| raised.take()) {
        return Err(raised);
    }
    Ok(ChakraTrace { trace: outcome? })
}

#[pymethods]
impl ChakraTrace {
    /// One row for each node, in the order of the file.
    fn nodes(&self) -> PyResult<Table> {
        let nodes = &self.trace.nodes;
        let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        let attribute = |name: &'static str| {
            nodes.iter().map(|node| node.integer(name).in_column()).collect::<Vec<_>>()
        };
        let node_type = |node: &ChakraNode| {
            NODE_TYPES.get(usize::try_from(node.node_type).unwrap_or(usize::MAX)).copied()
        };
        let cpu = |node: &ChakraNode| node.flag("is_cpu_op").map(i64::from).in_column();
        Columns::default()
            .integers("node", nodes.iter().map(|node| number(node.id)).collect())
            .strings("name", nodes.iter().map(|node| Some(node.name.as_str())))
            .strings("type", nodes.iter().map(node_type))
            .integers("start_us", nodes.iter().map(|node| number(node.start_us)).collect())
            .integers("duration_us", nodes.iter().map(|node| number(node.duration_us)).collect())
            .integers("duration_ns", attribute("duration_ns"))
            .integers("is_cpu_op", nodes.iter().map(cpu).collect())
            .integers("tid", attribute("tid"))
            .integers("stream", attribute("stream"))
            .integers("comm_type", attribute("comm_type"))
            .integers("comm_size", attribute("comm_size"))
            .strings("pg_name", nodes.iter().map(|node| node.text("pg_name")))
            .into_table()
    }

    /// One row for each dependency, in the order of the file.
    fn dependencies(&self) -> PyResult<Table> {
        let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        let (mut node, mut depends_on, mut kind) = (Vec::new(), Vec::new(), Vec::new());
        for target in &self.trace.nodes {
            for (code, ids) in [(0, &target.control), (1, &target.data)] {
                node.extend(ids.iter().map(|_| number(target.id)));
                depends_on.extend(ids.iter().map(|&id| number(id)));
                kind.extend(ids.iter().map(|_| code));
            }
        }
        Columns::default()
            .integers("node", node)
            .integers("depends_on", depends_on)
            .choices("kind", kind.into_iter(), &["control", "data"])
            .into_table()
    }

    /// Everything that is wrong with it, a row a kind.
    fn check(&self) -> PyResult<Table> {
        let rows = check::check(&self.trace);
        let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        Columns::default()
            .strings("code", rows.iter().map(|row| Some(row.fault.name())))
            .booleans("refused", rows.iter().map(|row| row.fault.is_refused()).collect())
            .integers("count", rows.iter().map(|row| number(row.count)).collect())
            .integers("first_node", rows.iter().map(|row| number(row.first_node)).collect())
            .strings("sentence", rows.iter().map(|row| Some(row.fault.sentence())))
            .strings("effect", rows.iter().map(|row| Some(row.fault.effect())))
            .into_table()
    }

    /// The attributes of the file, as text.
    #[getter]
    fn attributes(&self) -> Vec<(String, String)> {
        self.trace
            .attributes
            .iter()
            .map(|(name, value)| (name.clone(), value.to_string()))
            .collect()
    }

    /// The attributes of the node in a row, as text.
    fn attributes_of(&self, row: usize) -> Vec<(String, String)> {
        let found = self.trace.nodes.get(row).map_or(&[][..], |node| &node.attributes);
        found.iter().map(|(name, value)| (name.clone(), value.to_string())).collect()
    }

    /// As the replay of a linked trace.
    fn replay(&self, gaps: bool) -> ReplayParts {
        replay_parts(&check::replay_chakra(&self.trace, gaps))
    }

    /// How many nodes there are.
    fn __len__(&self) -> usize {
        self.trace.nodes.len()
    }
}
