//! Execution traces and Chakra files: nodes, diagnostics, checks and replay.

use std::sync::Arc;

use crate::arrow::Table;
use crate::enter::detached;
use crate::linked::{ReplayParts, replay_parts};
use crate::source::Source;
use crate::tables::diagnostics_table;
use longpole_core::columns::columns;
use longpole_core::read::execution_trace::Options;
use longpole_core::read::{chakra, execution_trace};
use longpole_core::tables::ExecutionTrace as Nodes;
use longpole_core::tables::chakra::{ChakraNode, ChakraTrace as ChakraNodes, NODE_TYPES};
use longpole_core::workload::check;
use pyo3::prelude::*;

/// A PyTorch execution trace read from a file.
#[pyclass(frozen, module = "longpole._core")]
pub(crate) struct ExecutionTrace {
    pub(crate) trace: Arc<Nodes>,
}

/// Reads an execution trace; see `longpole.read_execution_trace`.
#[pyfunction]
#[pyo3(signature = (source, *, strict=false, max_bytes=None, progress=None))]
pub(crate) fn read_execution_trace(
    py: Python<'_>,
    source: Source,
    strict: bool,
    max_bytes: Option<u64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<ExecutionTrace> {
    let options = Options { strict, max_bytes };
    let outcome = source.enter(py, progress.as_ref(), |source, progress| match source {
        Source::Path(path) => execution_trace::read_path(&path, options, progress),
        Source::Bytes(bytes) => execution_trace::read(&bytes[..], options, progress),
        Source::Reader(reader) => execution_trace::read(reader, options, progress),
    });
    Ok(ExecutionTrace { trace: Arc::new(outcome?) })
}

#[pymethods]
impl ExecutionTrace {
    /// Returns one row for each node, by id.
    fn nodes(&self) -> PyResult<Table> {
        let (nodes, strings) = (&self.trace.nodes, &self.trace.strings);
        let columns = columns!(nodes.iter(), |node| Columns {
            node: node.id,
            name: node.name,
            parent: node.parent,
            rf_id: node.rf_id,
            fw_parent: node.fw_parent,
            seq_id: node.seq_id,
            scope: node.scope,
            tid: node.tid,
            fw_tid: node.fw_tid,
            op_schema: node.op_schema,
            input_values: node.inputs.values,
            input_shapes: node.inputs.shapes,
            input_types: node.inputs.types,
            input_strides: node.inputs.strides,
            output_values: node.outputs.values,
            output_shapes: node.outputs.shapes,
            output_types: node.outputs.types,
            output_strides: node.outputs.strides,
        });
        Table::with_texts(columns, strings)
    }

    /// Returns the problems found, one row for each kind.
    fn diagnostics(&self) -> PyResult<Table> {
        diagnostics_table(self.trace.diagnostics.iter())
    }

    /// Whether anything in the file was lost or altered.
    #[getter]
    fn is_recovered(&self) -> bool {
        self.trace.diagnostics.is_recovered()
    }

    /// Returns the version of the format.
    #[getter]
    fn schema(&self) -> &str {
        &self.trace.header.schema
    }

    /// Returns the process that wrote it.
    #[getter]
    fn pid(&self) -> Option<i64> {
        self.trace.header.pid
    }

    /// Returns the number of nodes.
    fn __len__(&self) -> usize {
        self.trace.nodes.len()
    }
}

// Chakra files: nodes, checks and replay.

/// A Chakra graph read from a file.
#[pyclass(frozen, module = "longpole._core")]
pub(crate) struct ChakraTrace {
    trace: ChakraNodes,
}

/// Reads a Chakra graph; see `longpole.chakra.read_chakra`.
#[pyfunction]
#[pyo3(signature = (source, *, progress=None))]
pub(crate) fn read_chakra(
    py: Python<'_>,
    source: Source,
    progress: Option<Py<PyAny>>,
) -> PyResult<ChakraTrace> {
    let outcome = source.enter(py, progress.as_ref(), |source, progress| match source {
        Source::Path(path) => chakra::read_path(&path, progress),
        Source::Bytes(bytes) => chakra::read(&bytes[..], progress),
        Source::Reader(reader) => chakra::read(reader, progress),
    });
    Ok(ChakraTrace { trace: outcome? })
}

#[pymethods]
impl ChakraTrace {
    /// Returns one row for each node, in file order.
    fn nodes(&self, py: Python<'_>) -> PyResult<Table> {
        detached(py, || self.node_table())
    }

    /// Returns one row for each dependency, in file order.
    fn dependencies(&self, py: Python<'_>) -> PyResult<Table> {
        detached(py, || self.dependency_table())
    }

    /// Returns all problems of the graph, one row for each kind.
    fn check(&self, py: Python<'_>) -> PyResult<Table> {
        detached(py, || self.fault_table())
    }

    /// Returns the attributes of the file, as text.
    #[getter]
    fn attributes(&self) -> Vec<(String, String)> {
        self.trace
            .attributes
            .iter()
            .map(|(name, value)| (name.clone(), value.to_string()))
            .collect()
    }

    /// Returns the attributes of the node in a row, as text.
    fn attributes_of(&self, row: usize) -> Vec<(String, String)> {
        let found = self.trace.nodes.get(row).map_or(&[][..], |node| &node.attributes);
        found.iter().map(|(name, value)| (name.clone(), value.to_string())).collect()
    }

    /// Replays the graph; see `LinkedTrace.replay`.
    fn replay(&self, py: Python<'_>, gaps: bool) -> PyResult<ReplayParts> {
        detached(py, || Ok(replay_parts(&check::replay_chakra(&self.trace, gaps))))
    }

    /// Returns the number of nodes.
    fn __len__(&self) -> usize {
        self.trace.nodes.len()
    }
}

impl ChakraTrace {
    fn node_table(&self) -> PyResult<Table> {
        let nodes = &self.trace.nodes;
        let node_type = |node: &ChakraNode| {
            NODE_TYPES.get(usize::try_from(node.node_type).unwrap_or(usize::MAX)).copied()
        };
        Table::of(columns!(nodes.iter(), |node| Columns {
            node: node.id,
            name: node.name.as_str(),
            r#type: node_type(node),
            start_us: node.start_us,
            duration_us: node.duration_us,
            duration_ns: node.integer("duration_ns"),
            is_cpu_op: node.flag("is_cpu_op").map(i64::from),
            tid: node.integer("tid"),
            stream: node.integer("stream"),
            comm_type: node.integer("comm_type"),
            comm_size: node.integer("comm_size"),
            pg_name: node.text("pg_name"),
        }))
    }

    fn dependency_table(&self) -> PyResult<Table> {
        let mut rows = Vec::new();
        for target in &self.trace.nodes {
            for (kind, ids) in [(0, &target.control), (1, &target.data)] {
                rows.extend(ids.iter().map(|&id| (target.id, id, kind)));
            }
        }
        let columns = columns!(rows.iter(), |&(node, depends_on, _)| Columns { node, depends_on });
        let kinds = rows.iter().map(|row| row.2);
        Table::of(columns.with_names("kind", kinds, vec!["control", "data"]))
    }

    fn fault_table(&self) -> PyResult<Table> {
        let rows = check::check(&self.trace);
        Table::of(columns!(rows.iter(), |row| Columns {
            code: row.fault.name(),
            refused: row.fault.is_refused(),
            count: row.count,
            first_node: row.first_node,
            sentence: row.fault.sentence(),
            effect: row.fault.effect(),
        }))
    }
}
