//! Copies a trace without some of its events, part by part.

use std::sync::{Mutex, PoisonError};

use longpole_core::write;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::enter::enter;

/// Copies a trace, fed part by part, with selected events only.
#[pyclass(frozen, module = "longpole._core")]
pub(crate) struct Cut(Mutex<write::Cut>);

#[pymethods]
impl Cut {
    /// Creates a copier. `kept` has a byte for each position in the list of events: 0 if the event
    /// is left out.
    #[new]
    #[allow(clippy::needless_pass_by_value)] // by value, from Python
    fn new(kept: PyBackedBytes) -> Self {
        Self(Mutex::new(write::Cut::new(kept.iter().map(|&byte| byte != 0).collect())))
    }

    /// Returns the kept text of the next part.
    #[allow(clippy::needless_pass_by_value)] // by value, from Python
    fn feed<'py>(&self, py: Python<'py>, text: PyBackedBytes) -> PyResult<Bound<'py, PyBytes>> {
        let kept = enter(py, None, None, |_| {
            Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).feed(&text))
        })?;
        Ok(PyBytes::new(py, &kept))
    }

    /// Returns the number of events written.
    #[getter]
    fn n_written(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).n_written()
    }
}
