//! The graph and a window -> the chain that decided when it was over, and what would
//! decide if something were different.

#[cfg(test)]
mod brute_force;
mod busy;
mod clip;
mod longest;
mod remedies;
mod slack;
mod syncs;
mod totals;
mod walk;
mod what_if;
mod windows;

pub use busy::busy_ns;
pub use longest::longest;
pub use remedies::{
    verdict, Busiest, Cause, Doubt, Function, Lengths, Loader, Remedy, RemedyKind, Side, Status,
    Usual, Verdict,
};
pub use slack::slack_ns;
pub use syncs::{sync_dependencies, SyncDependency};
pub use totals::{totals, waits_on_path, Total};
pub use walk::{segment, walk, Path, Schedule, Segment};
pub(crate) use what_if::REMOVED;
pub use what_if::{changed_lags_ns, lags_ns, n_chosen, what_if, Change, Effect, Ratio, WhatIf};
pub use windows::{
    is_of_server, scope, steps, whole, window, Choice, Marked, Moment, Opening, Scope, Step, Steps,
    Unit, Window, WindowEnd,
};
