//! Time series as counter tracks for Perfetto.

use longpole_core::write::{self, Counter};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::enter::enter;

/// A name, and times and values as the bytes of 64-bit integers and floats.
type Series = (String, PyBackedBytes, PyBackedBytes);

/// Returns counter tracks as packets of a Perfetto trace.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // by value, from Python
pub(crate) fn counter_tracks(py: Python<'_>, series: Vec<Series>) -> PyResult<Vec<u8>> {
    enter(py, None, None, |_| {
        let counters: Vec<_> = series
            .iter()
            .map(|(name, times, values)| Counter {
                name: name.clone(),
                samples: times
                    .as_chunks::<8>()
                    .0
                    .iter()
                    .zip(values.as_chunks::<8>().0)
                    .map(|(time, value)| (i64::from_ne_bytes(*time), f64::from_ne_bytes(*value)))
                    .collect(),
            })
            .collect();
        Ok(write::counter_tracks(&counters))
    })
}
