//! Runs the jobs of one device, one after the other, and leaves nothing behind.
//!
//! A benchmark that hangs, forks, ignores signals or prints without end must
//! not take its runner down, and must be gone from the device before the next
//! one begins. A thread of the runner cannot see to that: processes that left
//! their group are out of its reach, and when the runner itself is killed
//! nobody is left to clean up. So between the runner and the jobs of each
//! device stands a small process, the guard:
//!
//! ```text
//! runner --control--> guard --fork, exec--> job (its own process group) --> ...
//!        <--events---
//! ```
//!
//! * The guard is the *child subreaper*: whatever a job starts, and however it
//!   detaches, stays a descendant of the guard. One job at a time makes every
//!   such process attributable.
//! * End of file on the control pipe, or the end of the runner, means that
//!   nobody waits any more: the job is ended, then the guard.
//! * Time limits are kept here, so that they hold while the runner is busy:
//!   SIGTERM to the whole tree, a grace, SIGKILL until nothing is left.
//! * Output is passed on as bytes through a bounded buffer. A runner that does
//!   not read slows the job's printing, never the guard's clock.
//!
//! [`serve`] is the whole of it; [`wire`] says what travels over the pipes.
//!
//! Beyond Linux there is no subreaper and no `/proc`: there a job is its
//! process group, and what leaves the group is neither found nor named.
//! A process stuck in the kernel survives SIGKILL; the guard says its number
//! after a minute and goes on, and it is for the runner to leave the device.

#![cfg(unix)]
#![forbid(unsafe_code)]

mod job;
mod outbox;
mod serve;
mod tree;
pub mod wire;

pub use serve::serve;
