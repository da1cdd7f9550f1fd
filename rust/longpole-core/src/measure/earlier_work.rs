//! Finds GPU activities of a window that were launched before recording began.
//!
//! A stream runs its activities in launch order. An activity without a launch in the trace that
//! runs before the first activity of its stream with one was therefore launched earlier, most
//! likely before the first call was recorded. Nothing is known about streams without launches.

use crate::ids::EventId;
use crate::intervals::Spans;
use crate::link::Launches;
use crate::tables::Tables;

/// Returns the number of such activities in a window, and the time during which any of them runs.
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

/// For each lane, returns the start of the first activity with a launch.
fn first_linked_ns(tables: &Tables, launches: &Launches) -> Vec<Option<i64>> {
    let events = &tables.events;
    let mut first_ns: Vec<Option<i64>> = vec![None; tables.lanes.len()];
    for event in events.ids().filter(|&event| launches.launcher(event).is_some()) {
        let (first, start_ns) = (&mut first_ns[events.lane(event).row()], events.start_ns(event));
        *first = Some(first.map_or(start_ns, |ns| ns.min(start_ns)));
    }
    first_ns
}
