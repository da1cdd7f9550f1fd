//! Runs the jobs of one device one after another, and leaves no processes running.
//!
//! A benchmark that hangs, forks, ignores signals or prints without end must not stop its runner,
//! and must have left the device before the next one begins. A thread of the runner cannot ensure
//! this: it cannot reach processes that left their group, and if the runner itself is killed, the
//! jobs keep running. A small process, the guard, therefore sits between the runner and the jobs of
//! each device:
//!
//! ```text
//! runner --control--> guard --fork, exec--> job (its own process group) --> ...
//!        <--events---
//! ```
//!
//! * The guard is the *child subreaper*: every process that a job starts stays a descendant of the
//!   guard, even if it detaches. Because there is one job at a time, every such process belongs to
//!   it.
//! * End of file on the control pipe, or the end of the runner, ends the job, then the guard.
//! * The guard enforces time limits, so that they hold while the runner is busy: SIGTERM to the
//!   whole tree, a grace period, then SIGKILL until nothing is left.
//! * Output is passed on as bytes through a bounded buffer. A runner that does not read slows down
//!   the job's output, never the guard's clock.
//!
//! [`serve`] is the main function; [`wire`] defines the messages on the pipes.
//!
//! Systems other than Linux have no subreaper and no `/proc`: there, a job is its process group,
//! and processes that leave the group are neither found nor reported. A process stuck in the kernel
//! survives SIGKILL. The guard reports its process id after a minute and continues; the runner must
//! then stop using the device.

#![cfg(unix)]
#![forbid(unsafe_code)]

mod job;
mod outbox;
mod serve;
mod tree;
pub mod wire;

pub use serve::serve;
