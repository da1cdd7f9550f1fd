//! The critical path of a window (the chain that determined its end), and what-if analysis: how the
//! window changes if something takes less time.

#[cfg(test)]
mod brute_force;
mod clip;
mod remedies;
mod schedule;
mod slack;
mod totals;
mod walk;
mod what_if;
mod windows;

pub(crate) use clip::moved;
pub use remedies::{
    Activity, Bounds, Busiest, Cause, DeviceWait, Fact, FactIndex, Facts, Function, Gain, Inquiry,
    Lengths, Limit, Loader, Named, OnThread, Possible, Side, ThreadGap, Uncertainty,
    UnexplainedGap, Usual, Verdict, lengths_ns, verdict,
};
pub use schedule::{Schedule, longest};
pub use slack::slack_ns;
pub use totals::{
    SyncDependency, Total, Work, busy_ns, sync_dependencies, totals, waits_on_path, work,
};
pub use walk::{Path, Segment, segment, walk};
pub(crate) use what_if::REMOVED;
pub use what_if::{
    Change, Effect, Ratio, TimeRange, WhatIf, changed_latencies_ns, latencies_ns, n_chosen, what_if,
};
pub use windows::{
    Choice, Marked, Moment, Opening, Reason, Scope, ServerIterations, ServerMark, Step, Steps,
    Unit, Window, WindowEnd, is_of_server, moved_range, moved_with, scope, server_iterations,
    steps, whole, window,
};
