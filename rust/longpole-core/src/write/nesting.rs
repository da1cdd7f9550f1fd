//! Distributes the events of a lane over tracks on which slices nest, as Perfetto requires.
//!
//! A slice is written as its begin and its end, in table order. Readers sort both by time, and
//! equal times by file position. An event therefore shares a track only with events that it nests
//! in or follows, and at equal times only with earlier rows.
//!
//! The first [`NESTED`] tracks of a lane are tried in turn. Other events are placed on tracks
//! without nesting, so that the cost stays O(n log n) for any number of overlapping events.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::ids::EventId;
use crate::tables::{EventKind, Tables};

/// The track of events without an end, which would enclose everything that follows.
pub(super) const UNFINISHED: u32 = u32::MAX;

/// Number of tracks per lane with nested slices.
const NESTED: usize = 32;

/// Returns the track number of each event within its lane.
pub(super) fn track_numbers(tables: &Tables, keeps: impl Fn(EventId) -> bool) -> Vec<u32> {
    let events = &tables.events;
    let mut numbers = vec![0; events.len()];
    let mut of_lane: Vec<Vec<EventId>> = vec![Vec::new(); tables.lanes.len()];
    for event in events.ids().filter(|&event| keeps(event)) {
        if events.end_ns(event).is_some() {
            of_lane[events.lane(event).row()].push(event);
        } else if events.duration_ns(event).is_none() && events.kind(event) != EventKind::Instant {
            numbers[event.row()] = UNFINISHED;
        }
    }
    for mut of_lane in of_lane {
        let length = |it: EventId| Reverse(events.duration_ns(it));
        of_lane.sort_unstable_by_key(|&it| (events.start_ns(it), length(it), it));
        let mut lane = Lane::default();
        for event in of_lane {
            let (start_ns, end_ns) = events.span(event).unwrap_or_default();
            numbers[event.row()] = lane.room(Slice { start_ns, end_ns, row: event.row() });
        }
    }
    numbers
}

#[derive(Clone, Copy)]
struct Slice {
    start_ns: i64,
    end_ns: i64,
    row: usize,
}

/// The tracks of a lane while they are filled in order of time.
#[derive(Default)]
struct Lane {
    nested: Vec<Track>,
    /// The end of the last slice of each further track, with its row, and the number of the track.
    flat: BinaryHeap<Reverse<(i64, usize, usize)>>,
}

impl Lane {
    /// Places a slice on a track. Returns the track number.
    fn room(&mut self, slice: Slice) -> u32 {
        let found = self.nested.iter_mut().position(|track| track.takes(slice));
        let number = found.unwrap_or_else(|| match self.nested.len() {
            NESTED => self.follow(slice),
            number => {
                self.nested.push(Track { open: vec![slice], ended: (i64::MIN, 0) });
                number
            }
        });
        u32::try_from(number).unwrap_or(UNFINISHED)
    }

    /// Places a slice after the one that ends first, or on a new track.
    fn follow(&mut self, slice: Slice) -> usize {
        let is_free = |&Reverse((end_ns, row, _)): &Reverse<(i64, usize, usize)>| {
            (end_ns, row) < (slice.start_ns, slice.row)
        };
        let number = if self.flat.peek().is_some_and(is_free) {
            self.flat.pop().map_or(NESTED, |Reverse((_, _, number))| number)
        } else {
            NESTED + self.flat.len()
        };
        self.flat.push(Reverse((slice.end_ns, slice.row, number)));
        number
    }
}

/// A track of nested slices.
struct Track {
    open: Vec<Slice>,
    /// The latest end of its slices, and the last row with that end.
    ended: (i64, usize),
}

impl Track {
    /// Adds a slice if it nests here and readers can see that. Returns whether it was added.
    fn takes(&mut self, slice: Slice) -> bool {
        while let Some(over) = self.open.pop_if(|open| open.end_ns <= slice.start_ns) {
            self.ended = self.ended.max((over.end_ns, over.row));
        }
        let nests = self.open.last().is_none_or(|around| {
            slice.end_ns <= around.end_ns
                && (around.start_ns, around.row) < (slice.start_ns, slice.row)
        });
        let fits = nests && self.ended < (slice.start_ns, slice.row);
        if fits {
            self.open.push(slice);
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(slices: &[(i64, i64)]) -> Vec<u32> {
        let mut lane = Lane::default();
        let slices = slices.iter().enumerate();
        slices
            .map(|(row, &(start_ns, end_ns))| lane.room(Slice { start_ns, end_ns, row }))
            .collect()
    }

    #[test]
    fn what_nests_or_follows_shares_a_track_and_what_crosses_does_not() {
        assert_eq!(numbers(&[(0, 9), (1, 4), (4, 9), (9, 12)]), [0, 0, 0, 0]);
        assert_eq!(numbers(&[(0, 5), (3, 9), (5, 7), (6, 8)]), [0, 1, 0, 1]);
    }

    #[test]
    fn of_equal_times_an_earlier_row_goes_elsewhere() {
        let slice = |start_ns, end_ns, row| Slice { start_ns, end_ns, row };
        let mut lane = Lane::default();
        assert_eq!(lane.room(slice(0, 9, 3)), 0);
        assert_eq!(lane.room(slice(0, 5, 2)), 1);
        assert_eq!(lane.room(slice(9, 12, 1)), 1);
        assert_eq!(lane.room(slice(9, 10, 4)), 0);
    }

    #[test]
    fn many_that_cross_take_no_more_tracks_than_run_at_once() {
        let crossing: Vec<_> = (0..10_000).map(|start_ns| (start_ns, start_ns + 100)).collect();
        assert!(numbers(&crossing).into_iter().max() < Some(101));
    }
}
