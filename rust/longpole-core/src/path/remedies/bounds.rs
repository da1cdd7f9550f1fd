//! Bounds of a gain, given what is missing from the trace, and the reason for each bound.

use crate::names::named;

named! {
    /// The reason for a lower or upper bound of a gain.
    Fact {
        /// Nothing that could change the gain is missing.
        Recorded "recorded",
        /// A stream is busy for the rest of the time, regardless of what launched its activities.
        BusyStream "busy_stream",
        /// The missing activity of a recorded launch may have run during all of the gap.
        MissingActivities "missing_activities",
        /// Missing launches may have been made as late as their neighbours allow.
        LateLaunches "late_launches",
        /// Unexplained time may remain, or be removed together with what is changed.
        UnexplainedTime "unexplained_time",
        /// The recording cost may have been smaller or larger than what was removed.
        RecordingCost "recording_cost",
    }
}

/// The smallest and largest gain of a change as a share, with the reason for each.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// Smallest gain.
    pub low: f64,
    /// Largest gain.
    pub high: f64,
    /// Reason for the lower bound.
    pub low_by: Fact,
    /// Reason for the upper bound.
    pub high_by: Fact,
}

impl Bounds {
    /// Extends the bounds to those that hold with another cost of recording.
    pub fn extend(&mut self, other: &Self) {
        if other.low < self.low {
            (self.low, self.low_by) = (other.low, Fact::RecordingCost);
        }
        if other.high > self.high {
            (self.high, self.high_by) = (other.high, Fact::RecordingCost);
        }
    }
}
