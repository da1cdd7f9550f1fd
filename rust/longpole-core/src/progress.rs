//! Progress reports and cancellation of long calls.

use std::ops::ControlFlow;

use crate::error::{Error, ErrorKind, Result};

/// Called regularly by every long call with the units done so far (bytes for the reader, rows for
/// the rest). `Break` makes the call end with [`ErrorKind::Cancelled`].
///
/// The core does not use a terminal or an interpreter: the caller implements progress bars and
/// Ctrl-C with this.
pub type Progress<'a> = &'a dyn Fn(u64) -> ControlFlow<()>;

/// Ignores progress and never stops.
pub fn silent(_done: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Reports `done` and converts a request to stop into an error.
///
/// # Errors
///
/// Returns [`ErrorKind::Cancelled`] if the caller asks to stop.
pub fn report(progress: Progress<'_>, done: u64) -> Result<()> {
    match progress(done) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::new(ErrorKind::Cancelled, done)),
    }
}
