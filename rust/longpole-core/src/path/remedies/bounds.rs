//! How far a gain may be from what the trace shows, and which fact bounds it.

use crate::names::named;

named! {
    /// What bounds a gain from below or above.
    Fact {
        /// Nothing is missing that could change it.
        Recorded "recorded",
        /// A stream is busy all the rest of the time, whatever launched its work.
        BusyStream "busy_stream",
        /// Work whose launch was recorded without it may have run all the while.
        LostWork "lost_work",
        /// Launches that are missing may have come as late as their neighbours allow.
        LateLaunches "late_launches",
        /// Time that nothing explains may stay, or go with what is changed.
        UnexplainedTime "unexplained_time",
    }
}

/// The least and the greatest share that a change may gain, with what bounds each.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// The least.
    pub low: f64,
    /// The greatest.
    pub high: f64,
    /// What bounds the least.
    pub low_by: Fact,
    /// What bounds the greatest.
    pub high_by: Fact,
}
