//! Interval sets: unions, intersections and gaps of half-open spans `[start, end)`.
//!
//! All interval arithmetic is in this module. Lengths are exact to the nanosecond.

/// A set of times, as sorted spans that neither touch nor overlap.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spans {
    spans: Vec<(i64, i64)>,
}

impl Spans {
    /// Returns the union of spans in any order. Empty spans are ignored.
    ///
    /// ```
    /// use longpole_core::intervals::Spans;
    /// let busy = Spans::union_of([(5, 9), (0, 3), (3, 6), (7, 7)]);
    /// assert_eq!(busy.as_slice(), [(0, 9)]);
    /// ```
    pub fn union_of(spans: impl IntoIterator<Item = (i64, i64)>) -> Self {
        let mut spans: Vec<_> = spans.into_iter().filter(|(start, end)| start < end).collect();
        // Profilers write most spans in order of time, which a merge sort exploits.
        #[allow(clippy::stable_sort_primitive)]
        spans.sort();
        let mut merged: Vec<(i64, i64)> = Vec::with_capacity(spans.len());
        for (start, end) in spans {
            match merged.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => merged.push((start, end)),
            }
        }
        Self { spans: merged }
    }

    /// Returns the spans, sorted.
    pub fn as_slice(&self) -> &[(i64, i64)] {
        &self.spans
    }

    /// Returns the total length.
    pub fn length_ns(&self) -> i64 {
        self.spans.iter().map(|(start, end)| end - start).sum()
    }

    /// Returns the length within `[start, end)`.
    pub fn length_within_ns(&self, start: i64, end: i64) -> i64 {
        let first = self.spans.partition_point(|span| span.1 <= start);
        let inside = self.spans[first..].iter().take_while(|span| span.0 < end);
        inside.map(|&(from, to)| to.min(end) - from.max(start)).sum()
    }

    /// Returns the union of two sets.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self::union_of(self.spans.iter().chain(&other.spans).copied())
    }

    /// Returns the difference: times in this set and not in the other.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        let mut spans = Vec::new();
        let mut cuts = other.spans.as_slice();
        for &(mut start, end) in &self.spans {
            while let Some(&(from, to)) = cuts.first() {
                if from >= end {
                    break;
                }
                if start < from {
                    spans.push((start, from));
                }
                start = start.max(to);
                if to > end {
                    break;
                }
                cuts = &cuts[1..];
            }
            if start < end {
                spans.push((start, end));
            }
        }
        Self { spans }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns all sets over the points 0..6, by brute force on single points.
    fn all_sets() -> Vec<Spans> {
        (0_u32..64)
            .map(|bits| {
                Spans::union_of((0..6).filter(|bit| bits >> bit & 1 == 1).map(|bit| (bit, bit + 1)))
            })
            .collect()
    }

    fn holds(set: &Spans, point: i64) -> bool {
        set.as_slice().iter().any(|&(start, end)| start <= point && point < end)
    }

    #[test]
    fn every_operation_is_right_at_every_point() {
        let sets = all_sets();
        for one in &sets {
            for two in &sets {
                let (either, less) = (one.union(two), one.minus(two));
                for point in 0..6 {
                    let (in_one, in_two) = (holds(one, point), holds(two, point));
                    assert_eq!(holds(&either, point), in_one || in_two);
                    assert_eq!(holds(&less, point), in_one && !in_two);
                }
                assert_eq!(less.length_ns() + two.length_ns(), either.length_ns());
            }
        }
    }
}
