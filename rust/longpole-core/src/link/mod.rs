//! Links related events by the ids that the profiler recorded.

mod autograd;
mod belonging;
mod calls;
mod execution;
mod homes;
mod launches;
mod records;
mod steps;
mod threads;

pub use autograd::{AutogradPair, BackwardLink, autograd_pairs, backward_links};
pub use belonging::{Belonging, Launch, LaunchTimes};
pub use calls::{CallOrder, Captures};
pub use execution::{ExecutionLink, Iteration, Method, Unlinked, execution};
pub use launches::{Launches, LinkedBy, launches};
pub use records::{SyncRecord, WaitsFor, sync_records};
pub use steps::{Step, steps};
pub use threads::{QueuedTask, main_threads, queued_tasks};
