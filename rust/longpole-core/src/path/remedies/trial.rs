//! The gain of one set of changes in each window, with bounds for missing records.

use super::bounds::{Bounds, Fact};

/// A stream that is busy for at least 95 % of the remaining time bounds a gain.
const NEARLY_ALL: (i64, i64) = (20, 19);

/// The gain of one trial in each window.
#[derive(Debug, Clone, Default)]
pub(super) struct Trial {
    pub(super) gains_ns: Vec<i64>,
    pub(super) lengths_ns: Vec<i64>,
    /// Total length after the change, even if the windows are longer than before.
    pub(super) changed_ns: i64,
    /// Gain in all windows with missing records placed for the smallest and for the largest gain.
    pub(super) bounds_ns: (i64, i64),
    /// The reasons for these bounds.
    pub(super) facts: Option<(Fact, Fact)>,
}

impl Trial {
    pub(super) fn gain_ns(&self) -> i64 {
        self.gains_ns.iter().sum()
    }

    /// Returns the gain as a share of all windows, or of one.
    #[allow(clippy::cast_precision_loss)] // a share
    pub(super) fn gain(&self, window: Option<usize>) -> f64 {
        let (gain_ns, length_ns) = match window {
            Some(place) => (self.gains_ns[place], self.lengths_ns[place]),
            None => (self.gain_ns(), self.lengths_ns.iter().sum()),
        };
        gain_ns as f64 / length_ns.max(1) as f64
    }

    /// Widens the bounds to the window lengths in the least and the most favourable case, but not
    /// below the time that a stream is busy anyway.
    pub(super) fn widen(&mut self, lengths_ns: [Vec<i64>; 2], busy_ns: i64, missing: Fact) {
        let total_ns: i64 = self.lengths_ns.iter().sum();
        let [least_ns, most_ns] = lengths_ns.map(|of| total_ns - of.iter().sum::<i64>());
        let gain_ns = self.gain_ns();
        // Shortening one event never lengthens another.
        let low_ns = least_ns.max(0).min(self.bounds_ns.0);
        let high_ns = most_ns.min(total_ns - busy_ns).max(self.bounds_ns.1);
        let is_busy = (total_ns - high_ns) * NEARLY_ALL.1 <= busy_ns * NEARLY_ALL.0;
        let low_by = if low_ns < gain_ns { missing } else { Fact::Recorded };
        let high_by = match high_ns > gain_ns {
            _ if is_busy => Fact::BusyStream,
            true => Fact::UnexplainedTime,
            false => Fact::Recorded,
        };
        self.bounds_ns = (low_ns, high_ns);
        self.facts = Some((low_by, high_by));
    }

    /// Returns the bounds of the gain as shares.
    #[allow(clippy::cast_precision_loss)] // a share
    pub(super) fn bounds(&self) -> Bounds {
        let length_ns = self.lengths_ns.iter().sum::<i64>().max(1) as f64;
        let (low_by, high_by) = self.facts.unwrap_or((Fact::Recorded, Fact::Recorded));
        let [low, high] = [self.bounds_ns.0, self.bounds_ns.1].map(|ns| ns as f64 / length_ns);
        Bounds { low, high, low_by, high_by }
    }
}
