//! Joins events that belong together, by the numbers the profiler gave them.

mod autograd;
mod backward;
mod calls;
mod execution;
mod homes;
mod launches;
mod main_threads;
mod records;
mod reused;
mod steps;
mod stream_waits;
mod task_queue;

pub use autograd::{autograd_pairs, AutogradPair};
pub use backward::{backward_links, BackwardLink};
pub use execution::{execution, ExecutionLink, Iteration, Method, Unlinked};
pub use launches::{launches, Launches, LinkedBy};
pub use main_threads::main_threads;
pub use records::{sync_records, SyncRecord, WaitsFor};
pub use steps::{steps, Step};
pub use task_queue::{queued_tasks, QueuedTask};
