//! Statistics of groups of values, and sequence numbers, for `statistics.py`.

use longpole_core::measure::{self, Spread};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::arrow::{Columns, Table};
use crate::enter::detached;

/// Returns the statistics of groups of 64-bit integers, which are stored one after another;
/// `lengths` is the size of each group.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // from Python, by value
pub(crate) fn spreads(
    py: Python<'_>,
    lengths: PyBackedBytes,
    values: PyBackedBytes,
) -> PyResult<Table> {
    detached(py, || {
        let mut rest = integers(&values).into_iter();
        let rows: Vec<_> = numbers(&lengths)
            .map(|length| {
                let mut group: Vec<_> = rest.by_ref().take(length as usize).collect();
                measure::spread(&mut group)
            })
            .collect();
        Columns::default().figures(&rows).into_table()
    })
}

/// Returns the sequence number of each group.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // from Python, by value
pub(crate) fn sequences(
    py: Python<'_>,
    groups: PyBackedBytes,
    values: PyBackedBytes,
    n_groups: usize,
) -> PyResult<Table> {
    detached(py, || {
        let rows = numbers(&groups).zip(numbers(&values));
        Columns::default().rows("sequence", measure::sequences(rows, n_groups)).into_table()
    })
}

impl Columns {
    /// Adds the columns of [`Spread`]; null for groups without values.
    pub(crate) fn figures(self, rows: &[Option<Spread>]) -> Self {
        let float = |value: fn(&Spread) -> f64| {
            rows.iter().map(|row| row.as_ref().map_or(f64::NAN, value)).collect()
        };
        let integer = |value: fn(&Spread) -> i64| {
            rows.iter()
                .map(|row| row.as_ref().map_or(longpole_core::tables::NO_INTEGER, value))
                .collect()
        };
        self.floats("mean", float(|row| row.mean))
            .floats("std", float(|row| row.std))
            .integers("min", integer(|row| row.min))
            .floats("p25", float(|row| row.quartiles[0]))
            .floats("median", float(|row| row.quartiles[1]))
            .floats("p75", float(|row| row.quartiles[2]))
            .integers("max", integer(|row| row.max))
    }
}

fn integers(bytes: &[u8]) -> Vec<i64> {
    let (values, _) = bytes.as_chunks::<8>();
    values.iter().map(|&value| i64::from_ne_bytes(value)).collect()
}

fn numbers(bytes: &[u8]) -> impl Iterator<Item = u32> + '_ {
    let (values, _) = bytes.as_chunks::<4>();
    values.iter().map(|&value| u32::from_ne_bytes(value))
}
