//! Opens the files that Python itself reads, with the rules of the core.

use std::path::PathBuf;

use longpole_core::read::source;
use pyo3::prelude::*;

use crate::enter::enter;

/// Confines this process: it can then only open files in these folders (given by their real paths)
/// and below.
#[pyfunction]
pub(crate) fn confine(py: Python<'_>, folders: Vec<PathBuf>) -> PyResult<()> {
    enter(py, None, None, |_| source::confine(folders))
}

/// Whether the process is confined to folders.
#[pyfunction]
pub(crate) fn is_confined() -> bool {
    source::is_confined()
}

/// Opens a file for reading and returns its descriptor. A pipe or a terminal is opened only if the
/// user specified it.
#[cfg(unix)]
#[pyfunction]
#[pyo3(signature = (path, *, is_named))]
pub(crate) fn open_file(py: Python<'_>, path: PathBuf, is_named: bool) -> PyResult<i32> {
    let name = path.display().to_string();
    let open = if is_named { source::open_named } else { source::open_regular };
    let file = enter(py, Some(&name), None, |_| open(&path))?;
    Ok(std::os::fd::IntoRawFd::into_raw_fd(file))
}

/// Opens a folder for listing and returns its descriptor.
#[cfg(unix)]
#[pyfunction]
pub(crate) fn open_folder(py: Python<'_>, path: PathBuf) -> PyResult<i32> {
    let name = path.display().to_string();
    let file = enter(py, Some(&name), None, |_| source::open_folder(&path))?;
    Ok(std::os::fd::IntoRawFd::into_raw_fd(file))
}
