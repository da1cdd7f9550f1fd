//! Hypothetical changes to a program.

use crate::graph::Kind;
use crate::ids::EventId;
use crate::tables::EventKind;

/// A hypothetical change to a program.
///
/// With `events` or `time_ranges`, it is limited to their time.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The effect on the time of what is selected.
    pub effect: Effect,
    /// Only edges of this kind; without it, any work.
    pub kind: Option<Kind>,
    /// Only the time of events of this kind; for annotations, the time inside them.
    pub event_kind: Option<EventKind>,
    /// Only events whose name matches this pattern; for kernels, the name of a family selects that
    /// family only.
    pub matching: Option<String>,
    /// Only these events: the time inside them, or their waits.
    pub events: Option<Vec<EventId>>,
    /// Only what a thread did during these time ranges.
    pub time_ranges: Option<Vec<TimeRange>>,
}

/// A time range of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimeRange {
    /// The row of the thread in the lane table.
    pub lane: usize,
    /// Start time.
    pub start_ns: i64,
    /// End time.
    pub end_ns: i64,
}

/// The effect of a change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Effect {
    /// Multiplies the time. With a factor of 0, dependencies remain.
    Scale(Ratio),
    /// Sets the duration of each selected GPU activity.
    Replace(i64),
    /// Adds a time to each selected event, such as the cost of a mechanism.
    Insert(i64),
    /// Removes the wait of what is selected by its kind of wait.
    RemoveWait,
}

/// Replaces the latency of a removed edge.
pub(crate) const REMOVED: i64 = i64::MIN;

impl Change {
    /// Creates a change of everything of a kind.
    pub fn of_kind(effect: Effect, kind: Kind) -> Self {
        Self {
            effect,
            kind: Some(kind),
            event_kind: None,
            matching: None,
            events: None,
            time_ranges: None,
        }
    }

    /// Creates a change of any work in the given events.
    pub fn of_events(effect: Effect, events: Vec<EventId>) -> Self {
        Self {
            effect,
            kind: None,
            event_kind: None,
            matching: None,
            events: Some(events),
            time_ranges: None,
        }
    }

    /// Whether the change can only shorten what it selects.
    pub(in crate::path) fn only_shortens(&self) -> bool {
        match self.effect {
            Effect::Scale(by) => by.as_f64() <= 1.0,
            Effect::RemoveWait => true,
            Effect::Replace(_) | Effect::Insert(_) => false,
        }
    }

    /// Whether the change selects by kind only.
    pub(in crate::path) fn is_plain(&self) -> bool {
        let has_effect_of_kinds = matches!(self.effect, Effect::Scale(_) | Effect::RemoveWait);
        let is_of_all = self.events.is_none() && self.time_ranges.is_none();
        has_effect_of_kinds && is_of_all && self.matching.is_none() && self.event_kind.is_none()
    }
}

// Exact factors of times.

/// An exact factor. Its product with a time rounds half to even.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ratio {
    numerator: u64,
    denominator: u64,
}

impl Ratio {
    /// No change.
    pub const ONE: Self = Self { numerator: 1, denominator: 1 };
    /// No time at all.
    pub const ZERO: Self = Self { numerator: 0, denominator: 1 };
    /// Half the time.
    pub const HALF: Self = Self { numerator: 1, denominator: 2 };

    /// Creates a factor; `None` if the denominator is 0.
    pub fn new(numerator: u64, denominator: u64) -> Option<Self> {
        (denominator > 0).then_some(Self { numerator, denominator })
    }

    /// Returns the factor as a floating-point number.
    #[allow(clippy::cast_precision_loss)] // for people to read
    pub fn as_f64(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }

    /// Returns the product of two factors. It loses its last digits beyond 64 bits.
    pub(super) fn times(self, other: Self) -> Self {
        let mut numerator = u128::from(self.numerator) * u128::from(other.numerator);
        let mut denominator = u128::from(self.denominator) * u128::from(other.denominator);
        let common = greatest_common_divisor(numerator, denominator).max(1);
        (numerator, denominator) = (numerator / common, denominator / common);
        while numerator.max(denominator) > u128::from(u64::MAX) {
            (numerator, denominator) = (numerator / 2, (denominator / 2).max(1));
        }
        let narrow = |value| u64::try_from(value).unwrap_or(u64::MAX);
        Self { numerator: narrow(numerator), denominator: narrow(denominator) }
    }

    /// Whether the product with any time below 2^51 ns is exact as a floating-point number, so that
    /// rounding it gives the same result as [`Self::of`].
    pub(super) fn is_exact_as_f64(self) -> bool {
        self.numerator <= 1 && self.denominator <= 2
    }

    /// Multiplies a time.
    pub fn of(self, time_ns: i64) -> i64 {
        if self == Self::ONE {
            return time_ns;
        }
        let product = i128::from(time_ns) * i128::from(self.numerator);
        let denominator = i128::from(self.denominator);
        let (floor, rest) = (product.div_euclid(denominator), product.rem_euclid(denominator));
        let up = match (rest * 2).cmp(&denominator) {
            std::cmp::Ordering::Less => 0,
            std::cmp::Ordering::Equal => floor.rem_euclid(2),
            std::cmp::Ordering::Greater => 1,
        };
        i64::try_from(floor + up).unwrap_or(i64::MAX)
    }
}

fn greatest_common_divisor(mut one: u128, mut two: u128) -> u128 {
    while two > 0 {
        (one, two) = (two, one % two);
    }
    one
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_round_half_to_even() {
        let rounded: Vec<_> = [1, 2, 3, 5].iter().map(|&ns| Ratio::HALF.of(ns)).collect();
        assert_eq!(rounded, [0, 1, 2, 2]);
        assert_eq!(Ratio::new(1, 3).map(|third| third.of(8)), Some(3));
    }

    #[test]
    fn factors_multiply_exactly() {
        let third = Ratio::new(1, 3).unwrap();
        assert_eq!(third.times(Ratio::new(3, 2).unwrap()), Ratio::HALF);
        assert_eq!(Ratio::new(3, 0), None);
    }

    #[test]
    fn a_factor_beyond_all_bounds_stays_in_bounds() {
        let huge = Ratio::new(u64::MAX, 1).unwrap();
        assert_eq!(huge.times(huge).of(i64::MAX), i64::MAX);
    }
}
