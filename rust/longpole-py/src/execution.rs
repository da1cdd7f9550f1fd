//! Execution traces, and their nodes and diagnostics.

use std::sync::Arc;

use longpole_core::columns::columns;
use longpole_core::read::execution_trace::{self, Options};
use longpole_core::tables::ExecutionTrace as Nodes;
use pyo3::prelude::*;

use crate::arrow::Table;
use crate::source::Source;
use crate::tables::diagnostics_table;

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
