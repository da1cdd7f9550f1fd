//! The process guard of the bench runner, which runs in a process of its own.

use pyo3::prelude::*;

/// Serves requests from standard input until it ends; events are written to standard output.
#[pyfunction]
#[cfg(unix)]
pub(crate) fn guard_main(py: Python<'_>) -> PyResult<()> {
    use std::os::fd::AsFd;

    // A Python thread reads the state of the device meanwhile.
    py.detach(|| longpole_guard::serve(std::io::stdin().as_fd(), std::io::stdout().as_fd()))?;
    Ok(())
}

/// The guard is not available on platforms without process groups.
#[pyfunction]
#[cfg(not(unix))]
pub(crate) fn guard_main() -> PyResult<()> {
    Err(pyo3::exceptions::PyOSError::new_err("jobs are not run on this system"))
}
