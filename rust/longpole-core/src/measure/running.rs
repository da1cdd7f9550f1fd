//! The event that was running on a thread at given times, such as when memory was allocated.

use crate::ids::{EventId, row_in_column};
use crate::stack::Nesting;
use crate::tables::Tables;

/// For each point (a lane row and a time in ns), returns the event that was open: the last event of
/// the lane to begin, or the innermost event around it that had not ended. An event that ends at
/// the point counts as open.
///
/// Points may be in any order; each event is visited once.
pub fn running_at(
    tables: &Tables,
    nesting: &Nesting,
    points: &[(u32, i64)],
) -> Vec<Option<EventId>> {
    let events = &tables.events;
    let begins = |event: EventId| (row_in_column(events.lane(event).row()), events.start_ns(event));
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_by_key(|&point| points[point]);
    let mut begun = nesting.outside_in().peekable();
    let mut open: Vec<EventId> = Vec::new();
    let mut found = vec![None; points.len()];
    for point in order {
        while let Some(event) = begun.next_if(|&event| begins(event) <= points[point]) {
            while open.last().is_some_and(|&last| nesting.parent(event) != Some(last)) {
                open.pop();
            }
            open.push(event);
        }
        let (lane, time_ns) = points[point];
        let is_over = |event: EventId| {
            begins(event).0 != lane || events.end_ns(event).is_none_or(|end| end < time_ns)
        };
        while open.last().is_some_and(|&last| is_over(last)) {
            open.pop();
        }
        found[point] = open.last().copied();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::silent;
    use crate::read::{Options, read_bytes};
    use crate::stack::nesting;

    #[test]
    fn the_innermost_event_that_has_not_ended_runs() {
        let row = |tid: i64, ts: i64, dur: i64| {
            format!(
                r#"{{"ph":"X","cat":"cpu_op","name":"n","pid":1,"tid":{tid},"ts":{ts},"dur":{dur}}}"#
            )
        };
        let rows = [row(1, 0, 100), row(1, 10, 20), row(1, 12, 2), row(2, 5, 10)];
        let tables =
            read_bytes(format!("[{}]", rows.join(",")).as_bytes(), &Options::default()).unwrap();
        let nesting = nesting(&tables, &silent).unwrap();
        let lane = |event| row_in_column(tables.events.lane(EventId::from_row(event)).row());
        let (one, two) = (lane(0), lane(3));
        let points = [(one, 13), (one, 50), (two, 4), (two, 15), (one, 20), (one, 101), (two, 16)];
        let points = points.map(|(lane, us)| (lane, us * 1000));
        let found: Vec<_> = running_at(&tables, &nesting, &points)
            .into_iter()
            .map(|event| event.map(EventId::row))
            .collect();
        let expected = [Some(2), Some(0), None, Some(3), Some(1), None, None];
        assert_eq!(found, expected);
    }
}
