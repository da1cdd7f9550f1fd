//! The one way into the core: release the GIL, answer Ctrl-C, map what fails.

use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use longpole_core::error::Result;
use longpole_core::progress::Progress;
use pyo3::prelude::*;

use crate::errors::{InternalError, exception};

/// How often a long call looks for Ctrl-C and moves a progress bar.
const HEARTBEAT: Duration = Duration::from_millis(25);

thread_local! {
    static LAST_PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// A panic is our mistake and becomes an exception; the default hook would
/// print it on the user's terminal as well.
pub(crate) fn keep_panics_quiet() {
    std::panic::set_hook(Box::new(|panic| {
        LAST_PANIC.with(|last| *last.borrow_mut() = Some(panic.to_string()));
    }));
}

/// Runs `call` without the GIL. It hands the progress it is given to the core.
///
/// `callback`, if any, is called with the units done so far; what it raises, or
/// what a signal handler raises, ends the call.
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

/// Makes a value without the GIL: what holds it stops every other thread of the program.
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
        "longpole {} made a mistake; please report it: {panic}",
        env!("CARGO_PKG_VERSION")
    ))
}
