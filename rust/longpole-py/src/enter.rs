//! Calls into the core: releases the GIL, handles Ctrl-C, and maps errors to exceptions.

use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use longpole_core::error::{Error, ErrorKind, Result};
use longpole_core::progress::Progress;
use pyo3::exceptions::{PyException, PyKeyboardInterrupt, PyOSError, PyValueError};
use pyo3::prelude::*;

/// Interval at which a long call checks for Ctrl-C and updates a progress bar.
const HEARTBEAT: Duration = Duration::from_millis(25);

thread_local! {
    static LAST_PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Disables the default panic hook. A panic is a bug in longpole and becomes an exception; the hook
/// would also print it on the user's terminal.
pub(crate) fn keep_panics_quiet() {
    std::panic::set_hook(Box::new(|panic| {
        LAST_PANIC.with(|last| *last.borrow_mut() = Some(panic.to_string()));
    }));
}

/// Runs `call` without the GIL and passes it a progress callback.
///
/// `callback`, if given, is called with the units done so far. An exception raised by it or by a
/// signal handler ends the call.
pub(crate) fn enter<T: Send>(
    py: Python<'_>,
    path: Option<&str>,
    callback: Option<&Py<PyAny>>,
    call: impl FnOnce(Progress<'_>) -> Result<T> + Send,
) -> PyResult<T> {
    let (outcome, raised) = py.detach(|| {
        let raised = RefCell::new(None);
        let last = Cell::new(Instant::now());
        let progress = |done: u64| {
            if last.get().elapsed() < HEARTBEAT {
                return ControlFlow::Continue(());
            }
            last.set(Instant::now());
            match heartbeat(callback, done) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    *raised.borrow_mut() = Some(error);
                    ControlFlow::Break(())
                }
            }
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| call(&progress)));
        (outcome.map_err(|_| ()), raised.into_inner())
    });
    match (outcome, raised) {
        (_, Some(raised)) => Err(raised),
        (Ok(Ok(value)), None) => Ok(value),
        (Ok(Err(error)), None) => Err(exception(py, &error, path)),
        (Err(()), None) => Err(internal_error()),
    }
}

/// Creates a value without the GIL, because holding it would stop all other threads of the program.
pub(crate) fn detached<T: Send>(
    py: Python<'_>,
    make: impl FnOnce() -> PyResult<T> + Send,
) -> PyResult<T> {
    enter(py, None, None, |_| Ok(make()))?
}

fn heartbeat(callback: Option<&Py<PyAny>>, done: u64) -> PyResult<()> {
    Python::attach(|py| {
        py.check_signals()?;
        if let Some(callback) = callback {
            callback.call1(py, (done,))?;
        }
        Ok(())
    })
}

fn internal_error() -> PyErr {
    let panic = LAST_PANIC.with(|last| last.borrow_mut().take()).unwrap_or_default();
    InternalError::new_err(format!(
        "internal error of longpole {} (please report it): {panic}",
        env!("CARGO_PKG_VERSION")
    ))
}

// Core errors as Python exceptions.

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
