//! The graph and a window -> the chain that decided when it was over, and what would
//! decide if something were different.

mod borders;
#[cfg(test)]
mod brute_force;
mod changes;
mod ideal;
mod lags;
mod longest;
mod retime;
mod slack;
mod syncs;
mod walk;
mod what_if;
mod windows;

pub use changes::{Change, Effect, Ratio};
pub use ideal::{ideal, Ideal};
pub use lags::lags_ns;
pub use longest::longest;
pub use slack::slack_ns;
pub use syncs::{sync_dependencies, SyncDependency};
pub use walk::{walk, Path, Schedule, Segment};
pub use what_if::{what_if, WhatIf};
pub use windows::{steps, whole, window, Choice, End, Opening, StepWindow, Window};
