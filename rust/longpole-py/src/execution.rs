//! Execution traces, and their nodes and diagnostics.

use std::sync::Arc;

use longpole_core::ids::InColumn;
use longpole_core::read::execution_trace::{self, Options};
use longpole_core::tables::ExecutionTrace as Nodes;
use pyo3::prelude::*;

use crate::arrow::{Columns, Table};
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
#[allow(clippy::needless_pass_by_value)] // arguments come by value from Python
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
