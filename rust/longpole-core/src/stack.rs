//! Finds the parent of every event on a thread.
//!
//! Time intervals determine the parent; ties are decided by content. Profilers round times, so a
//! small overhang still counts as enclosed. Events that cross others by more are counted.

use crate::error::Result;
use crate::ids::{EventId, InColumn, NO_ROW, row_in_column};
use crate::progress::{Progress, report};
use crate::tables::{Packed, Tables, by_content};

/// The nesting of events. See [`nesting`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Nesting {
    parent: Vec<u32>,
    depth: Vec<u16>,
    order: Packed,
    /// Number of events that exceed their parent because of rounding, by at most [`TOLERANCE_NS`].
    pub rounded: u64,
    /// Events that begin inside another event of their thread and end outside it.
    pub crossings: Vec<EventId>,
}

/// Maximum overhang of an enclosed event, because profilers round times. Four in five overlaps in
/// real traces are below this; the others are real and counted as crossings.
pub const TOLERANCE_NS: i64 = 1_000;

impl Nesting {
    /// Returns the innermost event of the same thread that encloses `event`.
    pub fn parent(&self, event: EventId) -> Option<EventId> {
        EventId::from_column(self.parent[event.row()])
    }

    /// Returns the events on threads, lane by lane, outermost first and in order of time: a parent
    /// comes before its children.
    pub fn outside_in(&self) -> impl ExactSizeIterator<Item = EventId> + '_ {
        self.order.rows().map(|row| EventId::from_row(row as usize))
    }

    /// Returns the events in reverse order: children come before their parent.
    pub fn inside_out(&self) -> impl ExactSizeIterator<Item = EventId> + '_ {
        let event = |place| EventId::from_row(self.order.row(place) as usize);
        (0..self.order.len()).rev().map(event)
    }

    /// Returns the column of parents, one row for each event; [`NO_ROW`] for none.
    pub fn parents(&self) -> &[u32] {
        &self.parent
    }

    /// Returns the column of depths; [`NO_DEPTH`] for events that are not on a thread.
    pub fn depths(&self) -> &[u16] {
        &self.depth
    }
}

/// Represents "not on a thread" in the column of depths. Larger depths are stored as one less than
/// this.
pub const NO_DEPTH: u16 = u16::MAX;

/// Finds, for each event on a thread, the last to begin of the events that enclose it. This is the
/// smallest, unless these cross one another.
///
/// Events are visited in order of start, longer ones first; for equal times, the outer kind is
/// annotation, operator, Python function, call. An event that begins when another ends is not
/// inside it, unless it has no duration.
///
/// # Errors
///
/// Returns an error only if `progress` asks to stop.
pub fn nesting(tables: &Tables, progress: Progress<'_>) -> Result<Nesting> {
    let mut found = Nesting {
        parent: vec![NO_ROW; tables.events.len()],
        depth: vec![NO_DEPTH; tables.events.len()],
        ..Nesting::default()
    };
    let mut rows = rows_by_lane(tables);
    for lane in lanes_of(&mut rows, tables) {
        report(progress, 0)?;
        sort_outside_in(lane, tables);
        found.nest(lane, tables);
    }
    found.order = rows.into_iter().collect();
    Ok(found)
}

/// Returns the rows of each lane.
fn lanes_of<'a>(rows: &'a mut [u32], tables: &'a Tables) -> impl Iterator<Item = &'a mut [u32]> {
    let lane = |row: u32| tables.events.lane(EventId::from_row(row as usize));
    rows.chunk_by_mut(move |&one, &two| lane(one) == lane(two))
}

/// Returns the rows of all nested events, lane by lane, each lane in file order.
fn rows_by_lane(tables: &Tables) -> Vec<u32> {
    let events = &tables.events;
    let nests =
        |event: &EventId| events.kind(*event).is_on_thread() && events.end_ns(*event).is_some();
    let nesting = || {
        let with_lanes = events.ids().zip(events.lanes());
        with_lanes.filter(|(event, _)| nests(event)).map(|(event, lane)| (event, lane as usize))
    };
    let mut next = vec![0_usize; tables.lanes.len() + 1];
    for (_, lane) in nesting() {
        next[lane + 1] += 1;
    }
    for lane in 1..next.len() {
        next[lane] += next[lane - 1];
    }
    let mut rows = vec![0; next[tables.lanes.len()]];
    for (event, lane) in nesting() {
        let slot = &mut next[lane];
        rows[*slot] = row_in_column(event.row());
        *slot += 1;
    }
    rows
}

/// Sorts the rows. Profilers write each kind in order of time, which a merge sort exploits.
fn sort_outside_in(rows: &mut [u32], tables: &Tables) {
    let id = |row: u32| EventId::from_row(row as usize);
    rows.sort_by(|&one, &two| by_content(id(one), id(two), tables));
}

impl Nesting {
    fn nest(&mut self, rows: &[u32], tables: &Tables) {
        let (starts, durations) = (tables.events.starts_ns(), tables.events.durations_ns());
        let mut open: Vec<Open> = Vec::new();
        for &row in rows {
            let start = starts[row as usize];
            let end = start + durations[row as usize];
            let event = EventId::from_row(row as usize);
            if self.close(&mut open, start, end) {
                self.crossings.push(event);
            }
            let parent = open.last();
            self.parent[row as usize] = parent.map(|parent| parent.event).in_column();
            self.depth[row as usize] =
                parent.map_or(0, |parent| (parent.depth + 1).min(NO_DEPTH - 1));
            open.push(Open { event, end, depth: self.depth[row as usize] });
        }
    }

    /// Removes from the stack the events that do not enclose an event from `start` to `end`.
    /// Returns whether the event crosses any of these.
    ///
    /// An event that ends inside this one cannot be the parent of a later event either, because
    /// later events inside it began inside this one. Each event is therefore removed once, and the
    /// total cost is linear.
    fn close(&mut self, open: &mut Vec<Open>, start: i64, end: i64) -> bool {
        let mut crosses = false;
        while let Some(last) = open.last() {
            if encloses(last.end, (start, end)) {
                self.rounded += u64::from(end > last.end);
                break;
            }
            crosses |= last.end - start > TOLERANCE_NS;
            open.pop();
        }
        crosses
    }
}

/// Whether an event that has begun and ends at `last` encloses one from `start` to `end`, which may
/// end a little later because of rounding.
pub(crate) fn encloses(last: i64, (start, end): (i64, i64)) -> bool {
    let (overlap, beyond) = (last - start, end - last);
    let is_inside = beyond <= 0 && (overlap > 0 || (overlap == 0 && beyond == 0));
    is_inside || (beyond <= TOLERANCE_NS && overlap >= beyond)
}

/// An event that has begun and may not have ended.
struct Open {
    event: EventId,
    end: i64,
    depth: u16,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::silent;
    use crate::read::{Options, read_bytes};

    /// Returns the parent of each operator, given as `(start_ns, end_ns)` on one thread.
    fn parents(spans: &[(i64, i64)]) -> (Vec<Option<usize>>, Nesting) {
        let events: Vec<_> = spans
            .iter()
            .map(|(start, end)| {
                format!(
                    r#"{{"ph":"X","cat":"cpu_op","name":"n","pid":1,"tid":1,"ts":{}e-3,"dur":{}e-3}}"#,
                    start,
                    end - start
                )
            })
            .collect();
        let tables =
            read_bytes(format!("[{}]", events.join(",")).as_bytes(), &Options::default()).unwrap();
        let found = nesting(&tables, &silent).unwrap();
        (tables.events.ids().map(|id| found.parent(id).map(EventId::row)).collect(), found)
    }

    #[test]
    fn the_innermost_enclosing_event_is_the_parent() {
        let (rows, found) = parents(&[(20, 30), (0, 100_000), (10, 40), (40, 50)]);
        assert_eq!(rows, [Some(2), None, Some(1), Some(1)]);
        assert_eq!(found.depths(), [2, 0, 1, 1]);
    }

    #[test]
    fn an_event_that_begins_where_another_ends_is_beside_it() {
        assert_eq!(parents(&[(0, 10), (10, 20), (20, 20)]).0, [None, None, Some(1)]);
    }

    #[test]
    fn a_nanosecond_of_rounding_does_not_tear_a_child_away() {
        let (rows, found) = parents(&[(0, 10_000), (2_000, 10_001)]);
        assert_eq!((rows, found.rounded, found.crossings.len()), (vec![None, Some(0)], 1, 0));
    }

    #[test]
    fn nor_does_it_make_a_child_of_a_sibling() {
        let (rows, found) = parents(&[(0, 10_000), (9_999, 10_900)]);
        assert_eq!((rows, found.crossings.len()), (vec![None, None], 0));
    }

    #[test]
    fn crossing_events_are_siblings_and_counted() {
        let (rows, found) = parents(&[(0, 10_000), (5_000, 15_000), (6_000, 9_000)]);
        assert_eq!((rows, found.crossings.len()), (vec![None, None, Some(1)], 1));
    }
}
