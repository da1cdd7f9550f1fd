//! Joins events that belong together, by the numbers the profiler gave them.

mod launches;
mod steps;

pub use launches::{launches, Launches, LinkedBy};
pub use steps::{steps, Step};
