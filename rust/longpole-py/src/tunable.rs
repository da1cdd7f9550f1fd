//! The lines of TunableOp files.

use longpole_core::extract::tunable::{self, Piece};
use longpole_core::ids::StringId;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::arrow::{Columns, Table};
use crate::enter::enter;

/// Returns every piece of a TunableOp file, in order.
#[pyfunction]
pub(crate) fn read_tunable(py: Python<'_>, text: PyBackedBytes) -> PyResult<Table> {
    let file = enter(py, None, None, move |progress| tunable::read(&text, progress))?;
    let pieces = &file.pieces;
    let integers = |columns: Columns, name: &str, column: fn(&Piece) -> i64| {
        columns.integers(name, pieces.iter().map(column).collect())
    };

    let mut columns = places(pieces);
    for (name, spread, column) in TEXTS {
        let codes = pieces.iter().map(column);
        let text = |code| StringId::from_column(code).map(|id| file.strings.get(id));
        columns = match spread {
            Spread::Few => columns.texts(name, codes, &file.strings),
            Spread::Many => columns.strings(name, codes.map(text)),
        };
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

/// How many different texts a column has.
enum Spread {
    /// A dictionary holds each once.
    Few,
    /// About one for each row: polars would keep a dictionary of them for good.
    Many,
}

type Text = (&'static str, Spread, fn(&Piece) -> u32);

const TEXTS: &[Text] = &[
    ("key", Spread::Few, |piece| piece.key),
    ("value", Spread::Few, |piece| piece.value),
    ("operator", Spread::Few, |piece| piece.operator),
    ("parameters", Spread::Many, |piece| piece.parameters),
    ("operation", Spread::Few, |piece| piece.gemm.operation),
    ("dtype_a", Spread::Few, |piece| piece.gemm.dtype_a),
    ("dtype_b", Spread::Few, |piece| piece.gemm.dtype_b),
    ("dtype_c", Spread::Few, |piece| piece.gemm.dtype_c),
    ("layout", Spread::Few, |piece| piece.gemm.layout),
    ("transa", Spread::Few, |piece| piece.gemm.transa),
    ("transb", Spread::Few, |piece| piece.gemm.transb),
    ("wildcards", Spread::Few, |piece| piece.gemm.wildcards),
    ("tail", Spread::Few, |piece| piece.gemm.tail),
    ("bias", Spread::Few, |piece| piece.gemm.bias),
    ("solution", Spread::Few, |piece| piece.solution),
    ("family", Spread::Few, |piece| piece.family),
    ("time", Spread::Many, |piece| piece.time_text),
    ("blas_parameters", Spread::Many, |piece| piece.blas_parameters),
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
