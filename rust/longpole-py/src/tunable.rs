//! The lines of TunableOp files.

use std::collections::HashSet;

use longpole_core::extract::tunable::{self, Piece};
use longpole_core::ids::StringId;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::arrow::{Columns, Table};
use crate::enter::enter;

/// Returns the pieces of a TunableOp file, in order, with some columns or all.
#[pyfunction]
#[pyo3(signature = (text, columns=None))]
#[allow(clippy::needless_pass_by_value)] // by value, from Python
pub(crate) fn read_tunable(
    py: Python<'_>,
    text: PyBackedBytes,
    columns: Option<HashSet<String>>,
) -> PyResult<Table> {
    let file = enter(py, None, None, move |progress| tunable::read(&text, progress))?;
    let is_wanted = |name| columns.as_ref().is_none_or(|wanted| wanted.contains(name));
    let pieces = &file.pieces;

    let mut table = places(pieces);
    for (name, spread, column) in TEXTS.iter().filter(|(name, ..)| is_wanted(*name)) {
        let codes = pieces.iter().map(column);
        let text = |code| StringId::from_column(code).map(|id| file.strings.get(id));
        table = match spread {
            Spread::Few => table.texts(name, codes, &file.strings),
            Spread::Many => table.strings(name, codes.map(text)),
        };
    }
    for (name, column) in INTEGERS.iter().filter(|(name, _)| is_wanted(*name)) {
        table = table.integers(name, pieces.iter().map(column).collect());
    }
    table
        .floats("time_ns", pieces.iter().map(|piece| piece.time_ns).collect())
        .known_words("status", pieces.iter().map(|piece| piece.status))
        .into_table()
}

/// Returns the columns that decide between the rows of files, with numbers instead of names. With
/// `place`, the order of the rows is one of them.
#[pyfunction]
#[pyo3(signature = (texts, *, place=false))]
pub(crate) fn outline_tunable(
    py: Python<'_>,
    texts: Vec<PyBackedBytes>,
    place: bool,
) -> PyResult<Table> {
    let found = enter(py, None, None, move |progress| {
        let texts: Vec<&[u8]> = texts.iter().map(|text| &text[..]).collect();
        tunable::outline(&texts, place, progress)
    })?;
    let columns = Columns::default()
        .rows("file", found.file)
        .rows("line", found.line)
        .integers("offset", found.offset)
        .rows("length", found.length)
        .words("ending", found.ending.into_iter())
        .words("kind", found.kind.into_iter())
        .rows("gemm", found.gemm)
        .rows("solution", found.solution)
        .choices("family", found.family.into_iter(), &tunable::FAMILIES)
        .floats("time_ns", found.time_ns)
        .integers("flops", found.flops)
        .booleans("has_wildcards", found.has_wildcards);
    if place { columns.rows("place", found.place) } else { columns }.into_table()
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
