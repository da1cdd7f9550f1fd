//! Aligns two sequences.

use longpole_core::alignment;
use pyo3::prelude::*;

/// Aligns two sequences by the keys of each round. Returns (index in `base`, index in `new`, round)
/// for each pair.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // lists come from Python as they are
pub(crate) fn align(
    py: Python<'_>,
    base: Vec<Vec<u64>>,
    new: Vec<Vec<u64>>,
) -> Vec<(usize, usize, usize)> {
    let pairs = py.detach(|| alignment::align(&base, &new));
    pairs.into_iter().map(|pair| (pair.base, pair.new, pair.round)).collect()
}
