//! Finds the range around each event: among the events of a thread that enclose it, or, for GPU
//! activities, the annotation that the profiler drew on their stream.

use std::collections::BTreeMap;

use super::Chosen;
use crate::ids::{EventId, LaneId};
use crate::stack::Nesting;
use crate::tables::{EventKind, Tables};

/// Which of several enclosing events is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The nearest one.
    Innermost,
    /// The farthest one.
    Outermost,
}

/// The chosen event of the same thread that encloses `event`, or is it.
pub fn enclosing(
    nesting: &Nesting,
    event: EventId,
    chosen: &Chosen,
    side: Side,
) -> Option<EventId> {
    let around = std::iter::successors(Some(event), |&event| nesting.parent(event));
    let mut around = around.filter(|&event| chosen.holds(event));
    match side {
        Side::Innermost => around.next(),
        Side::Outermost => around.last(),
    }
}

/// The annotation on the stream of each GPU activity in which the activity began, by row of the
/// activity: the last of these to begin.
pub fn device_ranges(tables: &Tables) -> Vec<(EventId, EventId)> {
    let events = &tables.events;
    let mut by_lane: BTreeMap<LaneId, Vec<EventId>> = BTreeMap::new();
    let takes_part = |kind: EventKind| kind.is_device_work() || kind == EventKind::DeviceAnnotation;
    for event in events.ids().filter(|&event| takes_part(events.kind(event))) {
        if events.span(event).is_some() {
            by_lane.entry(events.lane(event)).or_default().push(event);
        }
    }
    let mut found: Vec<_> =
        by_lane.into_values().flat_map(|lane| ranges_of_stream(tables, lane)).collect();
    found.sort_unstable();
    found
}

/// Activities with their annotation, on one stream.
fn ranges_of_stream(tables: &Tables, mut lane: Vec<EventId>) -> Vec<(EventId, EventId)> {
    let events = &tables.events;
    let is_range = |event| events.kind(event) == EventKind::DeviceAnnotation;
    // At the same time, longer ranges come first and activities last.
    lane.sort_by_key(|&event| {
        let range_first = (!is_range(event), -events.duration_ns(event).unwrap_or(0));
        (events.start_ns(event), range_first, event)
    });
    let mut open: Vec<EventId> = Vec::new();
    let mut found = Vec::new();
    for event in lane {
        let now_ns = events.start_ns(event);
        while open.last().and_then(|&range| events.end_ns(range)).is_some_and(|end| end <= now_ns) {
            open.pop();
        }
        if is_range(event) {
            open.push(event);
        } else if let Some(&range) = open.last() {
            found.push((event, range));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::{read_bytes, Options};

    #[test]
    fn an_activity_belongs_to_the_innermost_range_of_its_stream() {
        let rows = [
            ("gpu_user_annotation", 7, 0, 100),
            ("gpu_user_annotation", 7, 10, 20),
            ("kernel", 7, 12, 5),
            ("kernel", 7, 40, 5),
            ("kernel", 8, 12, 5),
            ("kernel", 7, 100, 5),
        ];
        let events: Vec<_> = rows
            .iter()
            .map(|(category, stream, start, duration)| {
                format!(
                    r#"{{"ph":"X","cat":"{category}","name":"a","pid":0,"tid":{stream},"ts":{start},
                    "dur":{duration},"args":{{"device":0,"stream":{stream}}}}}"#
                )
            })
            .collect();
        let text = format!("[{}]", events.join(","));
        let tables = read_bytes(text.as_bytes(), &Options::default()).unwrap();
        let found: Vec<_> = device_ranges(&tables)
            .into_iter()
            .map(|(event, range)| (event.row(), range.row()))
            .collect();
        assert_eq!(found, [(2, 1), (3, 0)]);
    }
}
