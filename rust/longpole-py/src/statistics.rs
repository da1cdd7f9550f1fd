//! Statistics of groups of values, sequence numbers, and the alignment of two sequences.

use longpole_core::alignment;
use longpole_core::columns::{Columns, columns};
use longpole_core::measure::{self, Spread};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::arrow::Table;
use crate::enter::detached;

/// Returns the statistics of groups of 64-bit integers, which are stored one after another;
/// `lengths` is the size of each group.
#[pyfunction]
pub(crate) fn spreads(
    py: Python<'_>,
    lengths: PyBackedBytes,
    values: PyBackedBytes,
) -> PyResult<Table> {
    detached(py, || {
        let mut rest = integers_of(&values);
        let rows: Vec<_> = rows_of(&lengths)
            .map(|length| {
                let mut group: Vec<_> = rest.by_ref().take(length as usize).collect();
                measure::spread(&mut group)
            })
            .collect();
        Table::of(figures(rows.iter().copied()))
    })
}

/// Returns the sequence number of each group.
#[pyfunction]
pub(crate) fn sequences(
    py: Python<'_>,
    groups: PyBackedBytes,
    values: PyBackedBytes,
    n_groups: usize,
) -> PyResult<Table> {
    detached(py, || {
        let numbers = measure::sequences(rows_of(&groups).zip(rows_of(&values)), n_groups);
        Table::of(columns!(numbers.iter(), |&sequence| Columns { sequence }))
    })
}

/// Returns the columns of [`Spread`]; null for groups without values.
pub(crate) fn figures<'a>(rows: impl Iterator<Item = Option<Spread>> + Clone) -> Columns<'a> {
    columns!(rows, |row| Columns {
        mean: row.map(|it| it.mean),
        std: row.map(|it| it.std),
        min: row.map(|it| it.min),
        p25: row.map(|it| it.quartiles[0]),
        median: row.map(|it| it.quartiles[1]),
        p75: row.map(|it| it.quartiles[2]),
        max: row.map(|it| it.max),
    })
}

/// Reads 64-bit integers in native byte order.
pub(crate) fn integers_of(bytes: &[u8]) -> impl Iterator<Item = i64> + Clone + '_ {
    bytes.as_chunks().0.iter().map(|&value| i64::from_ne_bytes(value))
}

/// Reads 32-bit row numbers in native byte order.
pub(crate) fn rows_of(bytes: &[u8]) -> impl Iterator<Item = u32> + Clone + '_ {
    bytes.as_chunks().0.iter().map(|&value| u32::from_ne_bytes(value))
}

/// Aligns two sequences by the keys of each round. Returns (index in `base`, index in `new`, round)
/// for each pair.
#[pyfunction]
pub(crate) fn align(
    py: Python<'_>,
    base: Vec<Vec<u64>>,
    new: Vec<Vec<u64>>,
) -> Vec<(usize, usize, usize)> {
    let pairs = py.detach(|| alignment::align(&base, &new));
    pairs.into_iter().map(|pair| (pair.base, pair.new, pair.round)).collect()
}
