//! The source of a trace in Python: a path, bytes, or an object with `read`.

use std::io;
use std::io::Read;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use crate::enter::enter;
use longpole_core::error::Result;
use longpole_core::progress::Progress;
use longpole_core::read::source;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

/// The source of the bytes of a trace.
pub(crate) enum Source {
    Path(PathBuf),
    Bytes(PyBackedBytes),
    Reader(PyReader),
}

impl Source {
    /// Reads without the GIL. An exception raised by the source itself takes precedence over the
    /// resulting error of the core.
    pub(crate) fn enter<T: Send>(
        self,
        py: Python<'_>,
        callback: Option<&Py<PyAny>>,
        read: impl FnOnce(Self, Progress<'_>) -> Result<T> + Send,
    ) -> PyResult<T> {
        let (name, raised) = (self.name(), self.raised());
        let outcome = enter(py, name.as_deref(), callback, |progress| read(self, progress));
        let raised = raised.lock().ok().and_then(|mut raised| raised.take());
        raised.map_or(outcome, Err)
    }

    /// Returns the slot for an exception raised by the source.
    fn raised(&self) -> Raised {
        match self {
            Self::Reader(reader) => reader.raised(),
            Self::Path(_) | Self::Bytes(_) => Raised::default(),
        }
    }

    /// Returns its name in errors.
    fn name(&self) -> Option<String> {
        match self {
            Self::Path(path) => Some(path.display().to_string()),
            Self::Bytes(_) | Self::Reader(_) => None,
        }
    }
}

impl<'py> FromPyObject<'_, 'py> for Source {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(bytes) = object.extract() {
            return Ok(Self::Bytes(bytes));
        }
        if object.hasattr("read")? {
            return Ok(Self::Reader(PyReader::new(object.getattr("read")?.unbind())));
        }
        match object.extract() {
            Ok(path) => Ok(Self::Path(path)),
            Err(_) => Err(PyTypeError::new_err(format!(
                "a trace is read from a path, bytes or a binary file object, not from {}",
                object.get_type().name()?
            ))),
        }
    }
}

/// The `read` method of a binary file object.
pub(crate) struct PyReader {
    read: Py<PyAny>,
    raised: Raised,
}

/// An exception raised by `read`, which the core sees as an I/O error only.
type Raised = Arc<Mutex<Option<PyErr>>>;

impl PyReader {
    fn new(read: Py<PyAny>) -> Self {
        Self { read, raised: Raised::default() }
    }

    /// Returns the slot for the exception.
    fn raised(&self) -> Raised {
        Arc::clone(&self.raised)
    }
}

impl Read for PyReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Python::attach(|py| {
            py.check_signals()?; // otherwise an earlier Ctrl-C would wait for the next bytes
            let bytes: PyBackedBytes = self.read.call1(py, (buffer.len(),))?.extract(py)?;
            let length = bytes.len().min(buffer.len());
            buffer[..length].copy_from_slice(&bytes[..length]);
            Ok(length)
        })
        .map_err(|error: PyErr| {
            let message = error.to_string();
            if let Ok(mut raised) = self.raised.lock() {
                *raised = Some(error);
            }
            io::Error::other(message)
        })
    }
}

// Opens the files that Python itself reads, with the rules of the core.

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
