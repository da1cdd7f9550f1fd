//! The lines of TunableOp files.

use std::collections::HashSet;

use longpole_core::columns::{Columns, columns};
use longpole_core::extract::tunable::{self, FAMILIES};
use longpole_core::ids::StringId;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::arrow::Table;
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
    let wanted = columns;
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
    let columns = match wanted {
        Some(wanted) => columns.only(|name| ALWAYS.contains(&name) || wanted.contains(name)),
        None => columns,
    };
    Table::with_texts(columns, &file.strings)
}

/// Columns of [`read_tunable`] that are there whichever are asked for.
const ALWAYS: [&str; 8] =
    ["line", "offset", "n_bytes", "ending", "kind", "reason", "time_ns", "status"];

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
        .with("file", found.file.into_iter())
        .with("line", found.line.into_iter())
        .with("offset", found.offset.into_iter())
        .with("length", found.length.into_iter())
        .with("ending", found.ending.into_iter())
        .with("kind", found.kind.into_iter())
        .with("gemm", found.gemm.into_iter())
        .with("solution", found.solution.into_iter())
        .with_names("family", found.family.into_iter(), FAMILIES.to_vec())
        .with("time_ns", found.time_ns.into_iter())
        .with("flops", found.flops.into_iter())
        .with("has_wildcards", found.has_wildcards.into_iter());
    Table::of(if place { columns.with("place", found.place.into_iter()) } else { columns })
}
