//! Self times of the events of each thread.
//!
//! Durations of nested events count several times. One pass over starts and ends assigns every
//! instant of a thread to the open event that started last, including events that cross.

use crate::columns::columns;
use crate::ids::{EventId, LaneId};
use crate::intervals::Spans;
use crate::stack::Nesting;
use crate::tables::{EventTable, NO_INTEGER, Tables};

/// Returns the self time of each event: the time in which nothing that began later ran on its
/// thread. One row for each event; [`NO_INTEGER`] for events that are not on a thread.
///
/// Every instant of a thread belongs to the open event that started last, even if events cross. The
/// self times therefore add up to the time in which anything ran.
pub fn self_time_ns(tables: &Tables, nesting: &Nesting) -> Vec<i64> {
    let mut own = vec![NO_INTEGER; tables.events.len()];
    for event in nesting.outside_in() {
        own[event.row()] = 0;
    }
    let all = nesting.outside_in();
    for_each_owned(&tables.events, all, |event, start, end| own[event.row()] += end - start);
    own
}

columns! {
    /// The time of an event within spans of its thread.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct TimeWithin {
        /// The event.
        pub event: EventId,
        /// Its self time, as in [`self_time_ns`].
        pub self_ns: i64,
        /// Its self time plus that of all events nested in it.
        pub total_ns: i64,
    }
}

/// Returns the events that ran within `spans`, each of which is on one lane; outermost events come
/// first. Overlapping spans of a lane count once.
pub fn times_within(
    tables: &Tables,
    nesting: &Nesting,
    spans: impl IntoIterator<Item = (LaneId, i64, i64)>,
) -> Vec<TimeWithin> {
    let spans = by_lane(spans, tables.lanes.len());
    let mut own = vec![0; tables.events.len()];
    for_each_owned(&tables.events, nesting.outside_in(), |event, start, end| {
        own[event.row()] += spans[tables.events.lane(event).row()].length_within_ns(start, end);
    });
    let mut total = own.clone();
    for event in nesting.inside_out() {
        if let Some(parent) = nesting.parent(event) {
            total[parent.row()] += total[event.row()];
        }
    }
    let times = nesting.outside_in().map(|event| TimeWithin {
        event,
        self_ns: own[event.row()],
        total_ns: total[event.row()],
    });
    times.filter(|row| row.total_ns > 0).collect()
}

fn by_lane(spans: impl IntoIterator<Item = (LaneId, i64, i64)>, n_lanes: usize) -> Vec<Spans> {
    let mut of_lane: Vec<Vec<(i64, i64)>> = vec![Vec::new(); n_lanes];
    for (lane, start, end) in spans {
        of_lane[lane.row()].push((start, end));
    }
    of_lane.into_iter().map(Spans::union_of).collect()
}

/// Calls `visit` with every span of time of every thread, and the event that owns it, of those that
/// are given in the order of [`Nesting::outside_in`].
pub(super) fn for_each_owned(
    events: &EventTable,
    outside_in: impl Iterator<Item = EventId>,
    visit: impl FnMut(EventId, i64, i64),
) {
    let mut thread = Thread { visit, open: Vec::new(), now: i64::MIN };
    let mut lane = None;
    for event in outside_in {
        let Some((start, end)) = events.span(event) else { continue };
        if lane.replace(events.lane(event)) != Some(events.lane(event)) {
            thread.go_to(i64::MAX);
            thread.now = i64::MIN;
        }
        thread.go_to(start);
        thread.open.push((event, end));
    }
    thread.go_to(i64::MAX);
}

/// The state of a thread during the sweep.
struct Thread<Visit> {
    visit: Visit,
    /// The events that have begun, in that order, with their ends; some have ended.
    open: Vec<(EventId, i64)>,
    now: i64,
}

impl<Visit: FnMut(EventId, i64, i64)> Thread<Visit> {
    /// Assigns the time up to `then` to its owners.
    fn go_to(&mut self, then: i64) {
        while let Some(&(event, end)) = self.open.last() {
            let until = end.min(then);
            if until > self.now {
                (self.visit)(event, self.now, until);
                self.now = until;
            }
            if end > then {
                return;
            }
            self.open.pop();
        }
        self.now = then;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::silent;
    use crate::read::{Options, read_bytes};
    use crate::stack::nesting;

    /// Creates tables of operators given as `(thread, start, end)` in us.
    fn operators(rows: &[(i64, i64, i64)]) -> Tables {
        let events: Vec<_> = rows
            .iter()
            .map(|(thread, start, end)| {
                format!(
                    r#"{{"ph":"X","cat":"cpu_op","name":"n","pid":1,"tid":{thread},"ts":{start},"dur":{}}}"#,
                    end - start
                )
            })
            .collect();
        read_bytes(format!("[{}]", events.join(",")).as_bytes(), &Options::default()).unwrap()
    }

    /// Returns the self times in us.
    fn own(rows: &[(i64, i64, i64)]) -> Vec<i64> {
        let tables = operators(rows);
        let nesting = nesting(&tables, &silent).unwrap();
        self_time_ns(&tables, &nesting).iter().map(|ns| ns / 1000).collect()
    }

    #[test]
    fn children_are_taken_off_once() {
        let rows = [(1, 0, 100), (1, 10, 40), (1, 20, 30), (1, 60, 60), (1, 90, 100)];
        assert_eq!(own(&rows), [60, 20, 10, 0, 10]);
    }

    #[test]
    fn where_events_cross_the_later_one_owns_the_time_and_the_sum_closes() {
        let rows = [(1, 0, 100), (1, 10, 40), (1, 35, 60), (1, 50, 120)];
        assert_eq!(own(&rows), [10, 25, 15, 70]);
        assert_eq!(own(&rows).iter().sum::<i64>(), 120);
    }

    #[test]
    fn threads_do_not_know_each_other() {
        assert_eq!(own(&[(1, 50, 100), (2, 0, 60)]), [50, 60]);
    }

    #[test]
    fn what_a_thread_did_in_some_spans_counts_outside_in() {
        let tables = operators(&[(1, 0, 100), (1, 10, 40), (2, 0, 100)]);
        let nesting = nesting(&tables, &silent).unwrap();
        let lane = tables.events.lane(EventId::from_row(0));
        let spans = [(lane, 0, 20_000), (lane, 15_000, 50_000), (lane, 200_000, 300_000)];
        let found = times_within(&tables, &nesting, spans);
        let figures: Vec<_> =
            found.iter().map(|row| (row.event.row(), row.self_ns, row.total_ns)).collect();
        assert_eq!(figures, [(0, 20_000, 50_000), (1, 30_000, 30_000)]);
    }
}
