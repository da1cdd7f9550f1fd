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
        /// Recording may have cost less or more than what was removed.
        RecordingCost "recording_cost",
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

impl Bounds {
    /// Extends the bounds to those that hold with another cost of recording.
    pub(super) fn extend(&mut self, other: &Self) {
        if other.low < self.low {
            (self.low, self.low_by) = (other.low, Fact::RecordingCost);
        }
        if other.high > self.high {
            (self.high, self.high_by) = (other.high, Fact::RecordingCost);
        }
    }
}
