//! Looks runtime API calls up by their correlation id.
//!
//! Ids are reused in long traces, so a lookup takes the call nearest before a time. Sorted once,
//! every lookup is a binary search. Calls without an id, or with 0, are never found.

use std::cmp::Ordering;

use crate::ids::EventId;
use crate::tables::{by_content, EventTable, Tables};

/// Every call with its number, in order of number, then time.
pub(super) struct Calls {
    rows: Vec<(i64, i64, EventId)>,
}

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
        Self { rows }
    }

    pub(super) fn with_number_of(
        &self,
        work: EventId,
        events: &EventTable,
    ) -> &[(i64, i64, EventId)] {
        number(events, work).map_or(&[], |number| self.with_number(number))
    }

    /// The call with a number: of several the last that began by then, else the first.
    pub(super) fn at(&self, number: i64, time_ns: i64) -> Option<EventId> {
        let rows = self.with_number(number);
        let before = rows.partition_point(|row| row.1 <= time_ns);
        rows.get(before.saturating_sub(1)).map(|&(_, _, call)| call)
    }

    /// Every call with its number and start, in order of number, then time.
    pub(super) fn rows(&self) -> &[(i64, i64, EventId)] {
        &self.rows
    }

    fn with_number(&self, number: i64) -> &[(i64, i64, EventId)] {
        let start = self.rows.partition_point(|row| row.0 < number);
        let length = self.rows[start..].partition_point(|row| row.0 == number);
        &self.rows[start..start + length]
    }
}

/// The number that joins, which 0 never does.
pub(super) fn number(events: &EventTable, event: EventId) -> Option<i64> {
    events.correlation(event).filter(|&number| number > 0)
}
