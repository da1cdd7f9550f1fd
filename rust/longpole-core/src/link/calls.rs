//! Looks up runtime API calls by correlation id.
//!
//! Ids are reused in long traces, so a lookup returns the last call before a time. Calls are sorted
//! once; every lookup is a binary search, or an index lookup if the ids are dense, as they usually
//! are. Calls without an id, or with id 0, are never found.

use std::cmp::Ordering;

use crate::ids::{EventId, row_in_column};
use crate::tables::{EventTable, Tables, by_content};

/// Every call with its number, sorted by number, then time.
pub(super) struct Calls {
    rows: Vec<(i64, i64, EventId)>,
    /// Index of the first row of each number, starting at the lowest, followed by the end index;
    /// empty if the numbers are sparse.
    first: Vec<u32>,
}

/// Maximum ratio of the range of numbers to the number of calls for an index.
const NUMBERS_A_CALL: usize = 8;

impl Calls {
    pub(super) fn of(tables: &Tables) -> Self {
        let events = &tables.events;
        let mut rows: Vec<_> = events
            .ids()
            .filter(|&event| events.kind(event).is_call())
            .filter_map(|call| Some((number(events, call)?, events.start_ns(call), call)))
            .collect();
        rows.sort_by(|one, two| match (one.0, one.1).cmp(&(two.0, two.1)) {
            Ordering::Equal => by_content(one.2, two.2, tables),
            decided => decided,
        });
        Self { first: first_rows(&rows), rows }
    }

    pub(super) fn with_number_of(
        &self,
        work: EventId,
        events: &EventTable,
    ) -> &[(i64, i64, EventId)] {
        number(events, work).map_or(&[], |number| self.with_number(number))
    }

    /// Returns the call with a number: of several, the last that began by `time_ns`, otherwise the
    /// first.
    pub(super) fn at(&self, number: i64, time_ns: i64) -> Option<EventId> {
        let rows = self.with_number(number);
        let before = rows.partition_point(|row| row.1 <= time_ns);
        rows.get(before.saturating_sub(1)).map(|&(_, _, call)| call)
    }

    /// Returns every call with its number and start, sorted by number, then time.
    pub(super) fn rows(&self) -> &[(i64, i64, EventId)] {
        &self.rows
    }

    fn with_number(&self, number: i64) -> &[(i64, i64, EventId)] {
        if let (Some(lowest), false) = (self.rows.first(), self.first.is_empty()) {
            let place = usize::try_from(number.saturating_sub(lowest.0)).unwrap_or(usize::MAX);
            return match self.first.get(place..place.saturating_add(2)) {
                Some(&[start, end]) => &self.rows[start as usize..end as usize],
                _ => &[],
            };
        }
        let start = self.rows.partition_point(|row| row.0 < number);
        let length = self.rows[start..].partition_point(|row| row.0 == number);
        &self.rows[start..start + length]
    }
}

fn first_rows(rows: &[(i64, i64, EventId)]) -> Vec<u32> {
    let (Some(lowest), Some(highest)) = (rows.first(), rows.last()) else { return Vec::new() };
    let most = rows.len().saturating_mul(NUMBERS_A_CALL);
    let span = highest.0.checked_sub(lowest.0).and_then(|span| usize::try_from(span).ok());
    let Some(span) = span.filter(|&span| span < most) else { return Vec::new() };
    let mut first = vec![0; span + 2];
    for (place, row) in rows.iter().enumerate() {
        // Rows are sorted by number, so the last row of each number determines where the next
        // begins.
        if let Ok(number) = usize::try_from(row.0 - lowest.0) {
            first[number + 1] = row_in_column(place + 1);
        }
    }
    for number in 1..first.len() {
        first[number] = first[number].max(first[number - 1]);
    }
    first
}

/// Returns the correlation number of an event; `None` for 0, which never links.
pub(super) fn number(events: &EventTable, event: EventId) -> Option<i64> {
    events.correlation(event).filter(|&number| number > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(numbers: &[i64]) -> Calls {
        let rows: Vec<_> = numbers
            .iter()
            .zip(0_u8..)
            .map(|(&n, row)| (n, 0, EventId::from_row(row.into())))
            .collect();
        Calls { first: first_rows(&rows), rows }
    }

    #[test]
    fn numbers_close_together_and_far_apart_are_found_alike() {
        let close = [3, 4, 4, 7, 9, 9, 9];
        let far = close.map(|number| number * 1_000_000_000_000);
        let (listed, searched) = (calls(&close), calls(&far));
        assert!(!listed.first.is_empty() && searched.first.is_empty());
        for number in 1..12 {
            let found = listed.with_number(number).iter().map(|row| row.2);
            let others = searched.with_number(number * 1_000_000_000_000).iter().map(|row| row.2);
            assert!(found.clone().eq(others), "{number}");
            assert_eq!(found.count(), close.iter().filter(|&&known| known == number).count());
        }
        assert!(calls(&[]).with_number(1).is_empty());
        assert!(calls(&[1, i64::MAX]).with_number(2).is_empty());
    }
}
