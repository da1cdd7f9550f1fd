//! Core errors as Python exceptions.

use longpole_core::error::{Error, ErrorKind};
use pyo3::exceptions::{PyException, PyKeyboardInterrupt, PyOSError, PyValueError};
use pyo3::prelude::*;

pyo3::create_exception!(
    longpole,
    LongpoleError,
    PyException,
    "Base of everything that longpole raises."
);
pyo3::create_exception!(longpole, TraceError, LongpoleError, "A trace that could not be read.");
pyo3::create_exception!(
    longpole,
    WindowError,
    LongpoleError,
    "A window that the trace does not have."
);
pyo3::create_exception!(
    longpole,
    PairError,
    LongpoleError,
    "An execution trace and a trace that do not belong together."
);
pyo3::create_exception!(
    longpole,
    InternalError,
    LongpoleError,
    "An internal error of longpole; please report it."
);

/// Returns the exception for `error`. `path` is the file, if there is one.
pub(crate) fn exception(py: Python<'_>, error: &Error, path: Option<&str>) -> PyErr {
    match error.kind() {
        ErrorKind::Cancelled => PyKeyboardInterrupt::new_err(()),
        ErrorKind::Io(io) => match (io.number, path) {
            // Python chooses `FileNotFoundError` and similar classes by the number.
            (Some(number), Some(path)) => {
                PyOSError::new_err((number, io.message.clone(), path.to_owned()))
            }
            (Some(number), None) => PyOSError::new_err((number, io.message.clone())),
            (None, _) => PyOSError::new_err(io.message.clone()),
        },
        ErrorKind::NotAPair(_) => PairError::new_err(error.to_string()),
        ErrorKind::NoWindow(_) => WindowError::new_err(error.to_string()),
        ErrorKind::Pattern(_) => PyValueError::new_err(error.to_string()),
        _ => trace_error(py, error, path).unwrap_or_else(|error| error),
    }
}

fn trace_error(py: Python<'_>, error: &Error, path: Option<&str>) -> PyResult<PyErr> {
    let message = match path {
        Some(path) => format!("{path}: {error}"),
        None => error.to_string(),
    };
    let exception = TraceError::new_err(message);
    let value = exception.value(py);
    value.setattr("code", error.code())?;
    value.setattr("offset", error.offset())?;
    value.setattr("hint", error.hint())?;
    value.setattr("path", path)?;
    Ok(exception)
}
