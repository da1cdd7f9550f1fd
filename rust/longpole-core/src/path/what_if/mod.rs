//! What would the window take if something were different: the whole trace is timed
//! anew, and the window read off again.
//!
//! A change multiplies the time of chosen edges or removes waits. All else keeps the
//! least time it needs, which [`lags_ns`] learns from the trace. Nothing is known about
//! what a changed program would do instead: the order of the work stays. Where a window begins
//! at a time, all stays as it was until then.

mod changes;
mod lags;
mod retime;

use super::schedule::Schedule;
use super::walk::{Path, walk};
use super::windows::Window;
use crate::error::Result;
use crate::graph::Graph;
use crate::progress::Progress;
use crate::tables::Tables;
pub(super) use changes::Chosen;
pub(crate) use changes::REMOVED;
pub use changes::{Change, Effect, Ratio, changed_lags_ns, n_chosen};
pub use lags::lags_ns;
use retime::retime;

/// How long a window would take, and what it would then wait for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WhatIf {
    /// From the start of the window to the last of all that may end it.
    pub makespan_ns: i64,
    /// The path in the new times.
    pub path: Path,
    /// The new times.
    pub schedule: Schedule,
    /// The new lags, for questions about the changed program.
    pub lags_ns: Vec<i64>,
}

/// Re-times the whole trace after some changes and reads the window off again.
///
/// `lags_ns` are those of [`lags_ns`]; without changes every time comes
/// out as it was.
///
/// # Errors
///
/// When a pattern is no regular expression, and when `progress` asks to stop.
pub fn what_if(
    graph: &Graph,
    tables: &Tables,
    window: &Window,
    lags_ns: &[i64],
    changes: &[Change],
    progress: Progress<'_>,
) -> Result<WhatIf> {
    let from_ns = window.fixed_start_ns();
    let lags_ns = changed_lags_ns(graph, tables, lags_ns, changes, from_ns)?;
    let schedule = retime(graph, &lags_ns, from_ns, progress)?;
    let path = walk(graph, window, &schedule);
    Ok(WhatIf { makespan_ns: path.end_ns - path.start_ns, path, schedule, lags_ns })
}
