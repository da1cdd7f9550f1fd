//! The clock of a rank, and how its times are brought to the common one.

/// How the clock of a rank is brought to that of the first: `t + offset + drift (t - origin)`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Clock {
    /// What is added to its times.
    pub offset_ns: i64,
    /// What is added for each ns since `origin_ns`.
    pub drift: f64,
    /// Where the drift counts from, by the clock of the rank.
    pub origin_ns: i64,
    /// The part of `offset_ns` that the files themselves say.
    pub base_ns: i64,
    /// The median of what its ends still differ.
    pub residual_ns: i64,
    /// The greatest of it.
    pub worst_residual_ns: i64,
    /// How far the clock may still be off from that of the first rank, between the calls.
    pub bound_ns: i64,
    /// The same over the whole recording: nothing tells a drift before the first call and after
    /// the last.
    pub edge_bound_ns: i64,
    /// The calls it was fitted to.
    pub n_calls: usize,
    /// Whether it is joined to the first rank by calls.
    pub is_connected: bool,
}

impl Clock {
    /// A time of the rank on the common clock.
    pub fn common_ns(&self, time_ns: i64) -> i64 {
        time_ns + self.offset_ns + rounded(self.drift * float(time_ns - self.origin_ns))
    }

    /// A duration of the rank on the common clock.
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
