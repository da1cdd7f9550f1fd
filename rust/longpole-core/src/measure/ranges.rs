//! Finds the range around each event: an enclosing event on its thread or, for GPU activities, the
//! annotation that the profiler recorded on their stream.

use std::collections::BTreeMap;

use super::Chosen;
use crate::ids::{EventId, LaneId};
use crate::stack::Nesting;
use crate::tables::{EventKind, Tables};

/// Which of several enclosing events to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The innermost one.
    Innermost,
    /// The outermost one.
    Outermost,
}

/// For each event, returns the chosen event of its thread that encloses it, or the event itself if
/// it is chosen.
///
/// Every event is visited once, regardless of the depth of nesting and the number of requests.
pub fn enclosing(
    nesting: &Nesting,
    of: impl IntoIterator<Item = Option<EventId>>,
    chosen: &Chosen,
    side: Side,
) -> Vec<Option<EventId>> {
    let mut around = Around {
        found: vec![None; nesting.parents().len()],
        is_known: vec![false; nesting.parents().len()],
        chosen,
        side,
    };
    let mut climbed = Vec::new();
    of.into_iter().map(|event| around.of(event?, nesting, &mut climbed)).collect()
}

/// Results for the requested events, and for those around them.
struct Around<'a> {
    found: Vec<Option<EventId>>,
    is_known: Vec<bool>,
    chosen: &'a Chosen,
    side: Side,
}

impl Around<'_> {
    fn of(
        &mut self,
        event: EventId,
        nesting: &Nesting,
        climbed: &mut Vec<EventId>,
    ) -> Option<EventId> {
        climbed.clear();
        let (mut next, mut found) = (Some(event), None);
        while let Some(event) = next {
            if self.is_known[event.row()] {
                found = self.found[event.row()];
                break;
            }
            climbed.push(event);
            next = nesting.parent(event);
        }
        for &event in climbed.iter().rev() {
            if self.chosen.holds(event) && (self.side == Side::Innermost || found.is_none()) {
                found = Some(event);
            }
            self.found[event.row()] = found;
            self.is_known[event.row()] = true;
        }
        found
    }
}

/// For each GPU activity, returns the annotation on its stream in which it began; of several, the
/// last to begin. Only `chosen` annotations count.
pub fn device_ranges(tables: &Tables, chosen: &Chosen) -> Vec<(EventId, EventId)> {
    let events = &tables.events;
    let mut by_lane: BTreeMap<LaneId, Vec<EventId>> = BTreeMap::new();
    for event in events.ids() {
        let kind = events.kind(event);
        let is_range = kind == EventKind::DeviceAnnotation && chosen.holds(event);
        if (is_range || kind.is_device_work()) && events.span(event).is_some() {
            by_lane.entry(events.lane(event)).or_default().push(event);
        }
    }
    let mut found: Vec<_> =
        by_lane.into_values().flat_map(|lane| ranges_of_stream(tables, lane)).collect();
    found.sort_unstable();
    found
}

/// Returns the activities of one stream, with their annotation.
fn ranges_of_stream(tables: &Tables, mut lane: Vec<EventId>) -> Vec<(EventId, EventId)> {
    let events = &tables.events;
    let is_range = |event| events.kind(event) == EventKind::DeviceAnnotation;
    // At equal times, longer ranges come first and activities last.
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
    use crate::read::{Options, read_bytes};

    #[test]
    fn the_innermost_and_the_outermost_of_some_events_are_found_and_an_event_encloses_itself() {
        let spans = [(0, 100), (10, 80), (20, 60), (30, 40), (200, 210)];
        let events: Vec<_> = spans
            .iter()
            .map(|(start, end)| {
                let duration = end - start;
                format!(
                    r#"{{"ph":"X","cat":"cpu_op","name":"n","pid":1,"tid":1,"ts":{start},
                    "dur":{duration}}}"#
                )
            })
            .collect();
        let text = format!("[{}]", events.join(","));
        let tables = read_bytes(text.as_bytes(), &Options::default()).unwrap();
        let nesting = crate::stack::nesting(&tables, &crate::progress::silent).unwrap();
        let chosen = Chosen::of_rows([1, 2], tables.events.len());
        let rows = |side| {
            let of = [3, 2, 1, 0, 4].map(|row| Some(EventId::from_row(row))).into_iter();
            let found = enclosing(&nesting, of.chain([None]), &chosen, side);
            found.into_iter().map(|event| event.map(EventId::row)).collect::<Vec<_>>()
        };
        assert_eq!(rows(Side::Innermost), [Some(2), Some(2), Some(1), None, None, None]);
        assert_eq!(rows(Side::Outermost), [Some(1), Some(1), Some(1), None, None, None]);
    }

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
        let found = |chosen: &Chosen| -> Vec<_> {
            let ranges = device_ranges(&tables, chosen).into_iter();
            ranges.map(|(event, range)| (event.row(), range.row())).collect()
        };
        assert_eq!(found(&Chosen::All), [(2, 1), (3, 0)]);
        assert_eq!(found(&Chosen::of_rows([0], tables.events.len())), [(2, 0), (3, 0)]);
    }
}
