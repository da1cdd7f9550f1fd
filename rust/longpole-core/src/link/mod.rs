//! Links related events by the ids that the profiler recorded.

mod autograd;
mod backward;
mod call_order;
mod calls;
mod captures;
mod execution;
mod homes;
mod launches;
mod records;
mod steps;
mod stream_waits;
mod threads;

pub use autograd::{AutogradPair, autograd_pairs};
pub use backward::{BackwardLink, backward_links};
pub use call_order::CallOrder;
pub use captures::Captures;
pub use execution::{ExecutionLink, Iteration, Method, Unlinked, execution};
pub use launches::{Launches, LinkedBy, launches};
pub use records::{SyncRecord, WaitsFor, sync_records};
pub use steps::{Step, steps};
pub use threads::{QueuedTask, main_threads, queued_tasks};
