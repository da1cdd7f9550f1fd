//! The process guard of the bench runner, for a process that is nothing else.

use pyo3::prelude::*;

/// Serves requests from standard input until it ends; events go to standard output.
#[pyfunction]
#[cfg(unix)]
pub(crate) fn guard_main(py: Python<'_>) -> PyResult<()> {
    use std::os::fd::AsFd;

    // A thread of Python reads the conditions of the device meanwhile.
    py.detach(|| longpole_guard::serve(std::io::stdin().as_fd(), std::io::stdout().as_fd()))?;
    Ok(())
}

/// There is no guard where there are no process groups.
#[pyfunction]
#[cfg(not(unix))]
pub(crate) fn guard_main() -> PyResult<()> {
    Err(pyo3::exceptions::PyOSError::new_err("jobs are not run on this system"))
}
