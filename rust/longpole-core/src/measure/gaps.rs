//! Finds the spans in which nothing ran on a device, and what ended each of them.
//!
//! The activity that ends a gap, and whether its launching call had returned by then, tell whether
//! the device was short of launches or its work was queued. The graph tells why.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::ids::EventId;
use crate::intervals::Spans;
use crate::link::Launches;
use crate::tables::Tables;
use crate::time::in_range;

/// A span in which nothing ran on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// The device; none where the trace names none.
    pub device: Option<i64>,
    /// When the work before it had ended.
    pub start_ns: i64,
    /// When the work behind it began, or the window ended.
    pub end_ns: i64,
    /// The work that ended it; none at the end of the window.
    pub next: Option<EventId>,
    /// The call that launched that work.
    pub call: Option<EventId>,
    /// The part of the gap before that call had returned, or the work had begun
    /// inside it: the device waited for the host. None without a call.
    pub host_ns: Option<i64>,
}

/// The gaps of every device from `window.0` to `window.1`, by device and time.
/// Of work that begins together, the shortest is taken for what ended a gap, and
/// after that content decides.
pub fn gaps(tables: &Tables, launches: &Launches, window: (i64, i64)) -> Vec<Gap> {
    let window = in_range(window);
    let events = &tables.events;
    let mut work: BTreeMap<Option<i64>, Vec<(i64, i64, EventId)>> = BTreeMap::new();
    for event in events.ids().filter(|&event| events.kind(event).is_device_work()) {
        if let Some((start, end)) = events.span(event) {
            let rows = work.entry(tables.lanes.place(events.lane(event)).device).or_default();
            // Work that took no time ends no gap.
            if start < end {
                rows.push((start, end, event));
            }
        }
    }
    let mut found = Vec::new();
    for (device, mut rows) in work {
        rows.sort_by(|one, two| {
            (one.0, one.1).cmp(&(two.0, two.1)).then_with(|| by_content(one.2, two.2, tables))
        });
        let busy = Spans::union_of(rows.iter().map(|&(start, end, _)| (start, end)));
        let idle = Spans::union_of([window]).minus(&busy);
        found.extend(idle.as_slice().iter().map(|&(start_ns, end_ns)| {
            // The first work that begins where the gap ends, unless the window ends there.
            let behind = rows.partition_point(|row| row.0 < end_ns);
            let next = rows.get(behind).filter(|row| row.0 == end_ns && end_ns < window.1);
            let next = next.map(|&(_, _, event)| event);
            let call = next.and_then(|next| launches.launcher(next));
            let host_ns = call
                .and_then(|call| events.end_ns(call))
                .map(|returned| returned.clamp(start_ns, end_ns) - start_ns);
            Gap { device, start_ns, end_ns, next, call, host_ns }
        }));
    }
    found
}

/// Between work of the same time. Rows decide only where nothing else does.
fn by_content(one: EventId, two: EventId, tables: &Tables) -> Ordering {
    let content = |work: EventId| {
        let events = &tables.events;
        let name = events.name(work).map(|name| tables.strings.get(name));
        (tables.lanes.place(events.lane(work)).stream, name, events.correlation(work), work)
    };
    content(one).cmp(&content(two))
}
