//! A trace without some of its events, copied part by part.

use std::sync::{Mutex, PoisonError};

use longpole_core::write;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::enter::enter;

/// Copies a trace, fed part by part, with the events at some places only.
#[pyclass(frozen, module = "longpole._core")]
pub(crate) struct Cut(Mutex<write::Cut>);

#[pymethods]
impl Cut {
    /// `kept` has a byte for each place in the list of events: 0 where the event is left out.
    #[new]
    #[allow(clippy::needless_pass_by_value)] // by value, from Python
    fn new(kept: PyBackedBytes) -> Self {
        Self(Mutex::new(write::Cut::new(kept.iter().map(|&byte| byte != 0).collect())))
    }

    /// What is kept of the next part.
    #[allow(clippy::needless_pass_by_value)] // by value, from Python
    fn feed<'py>(&self, py: Python<'py>, text: PyBackedBytes) -> PyResult<Bound<'py, PyBytes>> {
        let kept = enter(py, None, None, |_| {
            Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).feed(&text))
        })?;
        Ok(PyBytes::new(py, &kept))
    }

    /// How many events were written.
    #[getter]
    fn n_written(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).n_written()
    }
}
