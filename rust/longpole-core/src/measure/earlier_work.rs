//! Finds work of a window that was launched before recording began.
//!
//! A stream runs its activities in the order of their launches. What has no launch in the trace
//! and runs before the first activity of its stream that has one was therefore launched before
//! it, most likely before the first call was recorded. Nothing tells of a stream without launches.

use crate::ids::EventId;
use crate::intervals::Spans;
use crate::link::Launches;
use crate::tables::Tables;

/// How many such activities run in a window, and for how long any of them does.
pub fn earlier_work(tables: &Tables, launches: &Launches, window: (i64, i64)) -> (u64, i64) {
    let events = &tables.events;
    let first_ns = first_linked_ns(tables, launches);
    let is_earlier = |event: EventId| {
        let first_ns = first_ns[events.lane(event).row()];
        launches.launcher(event).is_none() && first_ns.is_some_and(|ns| events.start_ns(event) < ns)
    };
    let work = events.ids().filter(|&event| events.kind(event).is_device_work());
    let spans = work.filter(|&event| is_earlier(event)).filter_map(|event| events.span(event));
    let clipped = spans.map(|(start, end)| (start.max(window.0), end.min(window.1)));
    let inside: Vec<_> = clipped.filter(|(start, end)| start < end).collect();
    (inside.len() as u64, Spans::union_of(inside).length_ns())
}

/// When the first activity with a launch begins on each lane.
fn first_linked_ns(tables: &Tables, launches: &Launches) -> Vec<Option<i64>> {
    let events = &tables.events;
    let mut first_ns: Vec<Option<i64>> = vec![None; tables.lanes.len()];
    for event in events.ids().filter(|&event| launches.launcher(event).is_some()) {
        let (first, start_ns) = (&mut first_ns[events.lane(event).row()], events.start_ns(event));
        *first = Some(first.map_or(start_ns, |ns| ns.min(start_ns)));
    }
    first_ns
}
