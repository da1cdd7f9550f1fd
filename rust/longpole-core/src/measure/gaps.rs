//! Finds the gaps in which nothing ran on a device, and the event that ended each.
//!
//! The activity that ends a gap, and whether its launch call had returned by then, show whether the
//! device waited for launches or the activity was queued. The graph shows why.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::Chosen;
use crate::ids::EventId;
use crate::intervals::Spans;
use crate::link::Launches;
use crate::tables::Tables;
use crate::time::in_range;

/// A gap in which nothing ran on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// The device; `None` if the trace has no device numbers.
    pub device: Option<i64>,
    /// The stream; `None` for the device as a whole.
    pub stream: Option<i64>,
    /// End of the previous activity, or start of the window.
    pub start_ns: i64,
    /// Start of the next activity, or end of the window.
    pub end_ns: i64,
    /// Start and end of the gap in the trace: it may reach beyond the window, and what ended it
    /// does not depend on the window.
    pub whole_ns: (i64, i64),
    /// The next activity, also if it starts after the window; `None` if none follows in the trace.
    pub next: Option<EventId>,
    /// The launch call of that activity.
    pub call: Option<EventId>,
    /// The part of the gap before that call returned, or before the activity began inside the call:
    /// the device waited for the host. `None` without a call.
    pub host_ns: Option<i64>,
}

/// Where to look for gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Places {
    /// On each device as a whole.
    Devices,
    /// On each stream, regardless of other streams.
    Streams,
}

/// The activities of a device or a stream: start, end and event of each.
type Runs = Vec<(i64, i64, EventId)>;

/// Returns the gaps between the chosen activities of every device or stream between `window.0` and
/// `window.1`, sorted by place and time. If activities begin together, the shortest counts as the
/// one that ended the gap; further ties are decided by content.
pub fn gaps(
    tables: &Tables,
    launches: &Launches,
    window: (i64, i64),
    places: Places,
    chosen: &Chosen,
) -> Vec<Gap> {
    let window = in_range(window);
    let recorded = recorded(tables, window);
    let mut found = Vec::new();
    for ((device, stream), mut rows) in runs(tables, places, chosen) {
        rows.sort_by(|one, two| {
            (one.0, one.1).cmp(&(two.0, two.1)).then_with(|| by_content(one.2, two.2, tables))
        });
        let busy = Spans::union_of(rows.iter().map(|&(start, end, _)| (start, end)));
        let idle = Spans::union_of([recorded]).minus(&busy);
        let mut behind = 0;
        let is_inside =
            |&&(start_ns, end_ns): &&(i64, i64)| start_ns.max(window.0) < end_ns.min(window.1);
        found.extend(idle.as_slice().iter().filter(is_inside).map(|&whole_ns| {
            let (start_ns, end_ns) = (whole_ns.0.max(window.0), whole_ns.1.min(window.1));
            // The first activity that begins where the gap ends.
            behind += rows[behind..].iter().take_while(|row| row.0 < whole_ns.1).count();
            let next = rows.get(behind).map(|&(_, _, event)| event);
            let call = next.and_then(|next| launches.launcher(next));
            let host_ns = call
                .and_then(|call| tables.events.end_ns(call))
                .map(|returned| returned.clamp(start_ns, end_ns) - start_ns);
            Gap { device, stream, start_ns, end_ns, whole_ns, next, call, host_ns }
        }));
    }
    found
}

/// Returns the time from the first event of a trace to the last, extended to a window.
fn recorded(tables: &Tables, window: (i64, i64)) -> (i64, i64) {
    let spans = tables.events.ids().filter_map(|event| tables.events.span(event));
    spans.fold(window, |(first, last), (start, end)| (first.min(start), last.max(end)))
}

/// Returns the chosen activities of each place. Activities without duration end no gap.
fn runs(
    tables: &Tables,
    places: Places,
    chosen: &Chosen,
) -> BTreeMap<(Option<i64>, Option<i64>), Runs> {
    let events = &tables.events;
    let mut by_lane: Vec<Option<Runs>> = vec![None; tables.lanes.len()];
    let is_work = |event: &EventId| events.kind(*event).is_device_work() && chosen.holds(*event);
    for event in events.ids().filter(is_work) {
        if let Some((start, end)) = events.span(event) {
            let rows = by_lane[events.lane(event).row()].get_or_insert_default();
            if start < end {
                rows.push((start, end, event));
            }
        }
    }
    let mut work: BTreeMap<_, Runs> = BTreeMap::new();
    for (lane, rows) in tables.lanes.ids().zip(by_lane) {
        let Some(mut rows) = rows else { continue };
        let place = tables.lanes.place(lane);
        let stream = place.stream.filter(|_| places == Places::Streams);
        work.entry((place.device, stream)).or_default().append(&mut rows);
    }
    work
}

/// Compares activities with equal times by content; row numbers only decide between equal events.
fn by_content(one: EventId, two: EventId, tables: &Tables) -> Ordering {
    let content = |work: EventId| {
        let events = &tables.events;
        let name = events.name(work).map(|name| tables.strings.get(name));
        (tables.lanes.place(events.lane(work)).stream, name, events.correlation(work), work)
    };
    content(one).cmp(&content(two))
}
