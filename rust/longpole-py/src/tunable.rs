//! The lines of TunableOp files.

use longpole_core::extract::tunable::{self, Piece};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::arrow::{Columns, Table};
use crate::enter::enter;

/// Returns every piece of a TunableOp file, in order.
#[pyfunction]
pub(crate) fn read_tunable(py: Python<'_>, text: PyBackedBytes) -> PyResult<Table> {
    let file = enter(py, None, None, move |progress| tunable::read(&text, progress))?;
    let pieces = &file.pieces;
    let texts = |columns: Columns, name: &str, column: fn(&Piece) -> u32| {
        columns.texts(name, pieces.iter().map(column), &file.strings)
    };
    let integers = |columns: Columns, name: &str, column: fn(&Piece) -> i64| {
        columns.integers(name, pieces.iter().map(column).collect())
    };

    let mut columns = places(pieces);
    for (name, column) in TEXTS {
        columns = texts(columns, name, *column);
    }
    for (name, column) in INTEGERS {
        columns = integers(columns, name, *column);
    }
    columns
        .floats("time_ns", pieces.iter().map(|piece| piece.time_ns).collect())
        .known_words("status", pieces.iter().map(|piece| piece.status))
        .into_table()
}

type Column<T> = (&'static str, fn(&Piece) -> T);

const TEXTS: &[Column<u32>] = &[
    ("key", |piece| piece.key),
    ("value", |piece| piece.value),
    ("operator", |piece| piece.operator),
    ("parameters", |piece| piece.parameters),
    ("operation", |piece| piece.gemm.operation),
    ("dtype_a", |piece| piece.gemm.dtype_a),
    ("dtype_b", |piece| piece.gemm.dtype_b),
    ("dtype_c", |piece| piece.gemm.dtype_c),
    ("layout", |piece| piece.gemm.layout),
    ("transa", |piece| piece.gemm.transa),
    ("transb", |piece| piece.gemm.transb),
    ("wildcards", |piece| piece.gemm.wildcards),
    ("tail", |piece| piece.gemm.tail),
    ("bias", |piece| piece.gemm.bias),
    ("solution", |piece| piece.solution),
    ("family", |piece| piece.family),
    ("time", |piece| piece.time_text),
    ("blas_parameters", |piece| piece.blas_parameters),
];

const INTEGERS: &[Column<i64>] = &[
    ("m", |piece| piece.gemm.m),
    ("n", |piece| piece.gemm.n),
    ("k", |piece| piece.gemm.k),
    ("batch", |piece| piece.gemm.batch),
    ("lda", |piece| piece.gemm.lda),
    ("ldb", |piece| piece.gemm.ldb),
    ("ldc", |piece| piece.gemm.ldc),
    ("solution_index", |piece| piece.solution_index),
];

/// Returns the position and kind of each piece.
fn places(pieces: &[Piece]) -> Columns {
    Columns::default()
        .integers("line", pieces.iter().map(|piece| piece.line).collect())
        .integers("offset", pieces.iter().map(|piece| piece.offset).collect())
        .integers("n_bytes", pieces.iter().map(|piece| piece.n_bytes).collect())
        .words("ending", pieces.iter().map(|piece| piece.ending))
        .words("kind", pieces.iter().map(|piece| piece.kind))
        .known_words("reason", pieces.iter().map(|piece| piece.reason))
}
