//! The lines of TunableOp files.

use longpole_core::columns::columns;
use longpole_core::extract::tunable;
use longpole_core::ids::StringId;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::arrow::Table;
use crate::enter::enter;

/// Returns every piece of a TunableOp file, in order.
#[pyfunction]
pub(crate) fn read_tunable(py: Python<'_>, text: PyBackedBytes) -> PyResult<Table> {
    let file = enter(py, None, None, move |progress| tunable::read(&text, progress))?;
    // Texts that differ in most rows are strings: polars would keep a dictionary of them for good.
    let string = |code| StringId::from_column(code).map(|id| file.strings.get(id));
    let columns = columns!(file.pieces.iter(), |piece| Columns {
        line: piece.line,
        offset: piece.offset,
        n_bytes: piece.n_bytes,
        ending: piece.ending,
        kind: piece.kind,
        reason: piece.reason,
        key: StringId::from_column(piece.key),
        value: StringId::from_column(piece.value),
        operator: StringId::from_column(piece.operator),
        parameters: string(piece.parameters),
        operation: StringId::from_column(piece.gemm.operation),
        dtype_a: StringId::from_column(piece.gemm.dtype_a),
        dtype_b: StringId::from_column(piece.gemm.dtype_b),
        dtype_c: StringId::from_column(piece.gemm.dtype_c),
        layout: StringId::from_column(piece.gemm.layout),
        transa: StringId::from_column(piece.gemm.transa),
        transb: StringId::from_column(piece.gemm.transb),
        wildcards: StringId::from_column(piece.gemm.wildcards),
        tail: StringId::from_column(piece.gemm.tail),
        bias: StringId::from_column(piece.gemm.bias),
        solution: StringId::from_column(piece.solution),
        family: StringId::from_column(piece.family),
        time: string(piece.time_text),
        blas_parameters: string(piece.blas_parameters),
        m: piece.gemm.m,
        n: piece.gemm.n,
        k: piece.gemm.k,
        batch: piece.gemm.batch,
        lda: piece.gemm.lda,
        ldb: piece.gemm.ldb,
        ldc: piece.gemm.ldc,
        solution_index: piece.solution_index,
        time_ns: piece.time_ns,
        status: piece.status,
    });
    Table::with_texts(columns, &file.strings)
}
