//! How a long call tells its caller that it lives, and learns that it should stop.

use std::ops::ControlFlow;

use crate::error::{Error, ErrorKind, Result};

/// Called now and then by every long call with the units done so far (bytes
/// for the reader, rows for the rest); `Break` makes the call end with
/// [`ErrorKind::Cancelled`].
///
/// The core knows no terminal and no interpreter: a progress bar and Ctrl-C
/// are both made of this by the caller.
pub type Progress<'a> = &'a dyn Fn(u64) -> ControlFlow<()>;

/// A caller that is not interested.
pub fn silent(_done: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Reports `done` and turns a wish to stop into the error that ends the call.
///
/// # Errors
///
/// [`ErrorKind::Cancelled`], where the caller wants to stop.
pub fn report(progress: Progress<'_>, done: u64) -> Result<()> {
    match progress(done) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::new(ErrorKind::Cancelled, done)),
    }
}
