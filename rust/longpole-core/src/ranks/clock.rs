//! The clock of a rank, and the conversion to common time.

/// The conversion of the clock of a rank to that of the first: `t + offset + drift (t - origin)`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Clock {
    /// Offset added to its times.
    pub offset_ns: i64,
    /// Drift: nanoseconds added per nanosecond since `origin_ns`.
    pub drift: f64,
    /// The time at which drift is zero, by the clock of the rank.
    pub origin_ns: i64,
    /// The part of `offset_ns` that is recorded in the files.
    pub base_ns: i64,
    /// Median of the remaining differences of its ends.
    pub residual_ns: i64,
    /// Largest of these differences.
    pub worst_residual_ns: i64,
    /// Bound of the remaining clock error relative to the first rank, between the calls.
    pub bound_ns: i64,
    /// The same bound for the whole recording: drift before the first call and after the last is
    /// unknown.
    pub edge_bound_ns: i64,
    /// Number of calls used for the fit.
    pub n_calls: usize,
    /// Whether calls connect it to the first rank, directly or through other ranks.
    pub is_connected: bool,
}

impl Clock {
    /// Converts a time of the rank to common time.
    pub fn common_ns(&self, time_ns: i64) -> i64 {
        time_ns + self.offset_ns + rounded(self.drift * float(time_ns - self.origin_ns))
    }

    /// Converts a duration of the rank to common time.
    pub fn scaled_ns(&self, duration_ns: i64) -> i64 {
        duration_ns + rounded(self.drift * float(duration_ns))
    }
}

#[allow(clippy::cast_precision_loss)] // times within a trace, of which 53 bits are 104 days
pub(super) fn float(value: i64) -> f64 {
    value as f64
}

#[allow(clippy::cast_possible_truncation)] // fits: it was a time
pub(super) fn rounded(value: f64) -> i64 {
    value.round() as i64
}
