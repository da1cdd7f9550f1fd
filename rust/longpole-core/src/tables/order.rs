//! The content order of events, which breaks all ties.
//!
//! The order in the file depends on the threads of the profiler. Results must not, so ties are
//! broken by the content of events; the row in the file only decides between events that are equal
//! in everything.

use std::cmp::{Ordering, Reverse};

use super::{ArgValue, EventKind, Tables};
use crate::ids::{EventId, LaneId, StringId};

/// Compares two events by content: start, then longer first, then the kind that encloses the other,
/// then the profiler's number, name, process and thread, then all ids. The position in the file
/// comes last and only decides between otherwise equal events, so that results do not depend on
/// file order.
///
/// Only the first comparisons are cheap, and they decide nearly all pairs.
pub fn by_content(one: EventId, two: EventId, tables: &Tables) -> Ordering {
    let events = &tables.events;
    let times = |event| (events.start_ns(event), Reverse(events.end_ns(event)));
    let ids = |event| (events.kind(event), events.external_id(event), events.correlation(event));
    times(one)
        .cmp(&times(two))
        .then_with(|| events.kind(one).layer().cmp(&events.kind(two).layer()))
        .then_with(|| identity(one, tables).cmp(&identity(two, tables)))
        .then_with(|| name(one, tables).cmp(name(two, tables)))
        .then_with(|| track(events.lane(one), tables).cmp(&track(events.lane(two), tables)))
        .then_with(|| ids(one).cmp(&ids(two)))
        .then_with(|| events.position(one).cmp(&events.position(two)))
}

impl EventKind {
    /// Returns the layer of a kind: of two events with the same times, the one with the smaller
    /// layer is the outer.
    pub fn layer(self) -> u8 {
        match self {
            Self::Annotation => 0,
            Self::Operator => 1,
            Self::Python => 2,
            Self::Runtime | Self::Driver => 3,
            kind if kind.is_device_work() => 4,
            _ => 5,
        }
    }
}

/// Returns the profiler's number for the event; 0 for none, as in all of these arguments except `Ev
/// Idx`.
fn identity(event: EventId, tables: &Tables) -> i64 {
    let events = &tables.events;
    let given = |number: Option<i64>| number.filter(|&number| number != 0);
    argument(event, "Ev Idx", tables)
        .or_else(|| given(argument(event, "Record function id", tables)))
        .or_else(|| given(events.external_id(event)))
        .or_else(|| given(events.correlation(event)))
        .unwrap_or(0)
}

/// Returns an integer argument, written as a number or a string.
pub(crate) fn argument(event: EventId, key: &str, tables: &Tables) -> Option<i64> {
    match argument_value(event, key, tables) {
        Some(ArgValue::Integer(number)) => Some(number),
        Some(ArgValue::Text(text)) => tables.strings.get(text).trim().parse().ok(),
        _ => None,
    }
}

/// Returns a string argument.
pub(crate) fn argument_text<'a>(event: EventId, key: &str, tables: &'a Tables) -> Option<&'a str> {
    argument_text_id(event, key, tables).map(|text| tables.strings.get(text))
}

/// Returns the handle of a string argument.
pub(crate) fn argument_text_id(event: EventId, key: &str, tables: &Tables) -> Option<StringId> {
    match argument_value(event, key, tables) {
        Some(ArgValue::Text(text)) => Some(text),
        _ => None,
    }
}

fn argument_value(event: EventId, key: &str, tables: &Tables) -> Option<ArgValue> {
    let table = tables.args.of(tables.events.category(event))?;
    table.column(key)?.values.get(table.row_of(event)?)
}

fn name(event: EventId, tables: &Tables) -> &str {
    tables.events.name(event).map_or("", |name| tables.strings.get(name))
}

/// Returns the sort key of process and thread: numbers by value, before names.
pub(crate) fn track(lane: LaneId, tables: &Tables) -> [(bool, i64, &str); 2] {
    let place = tables.lanes.place(lane);
    [place.process, place.thread].map(|id| {
        let text = tables.strings.get(id);
        text.parse().map_or((true, 0, text), |number| (false, number, ""))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::{Options, read_bytes};

    #[test]
    fn content_decides_and_the_file_only_between_equals() {
        let event = |category: &str, dur: i64, name: &str, tid: i64, index: i64| {
            format!(
                r#"{{"ph":"X","cat":"{category}","name":"{name}","pid":1,"tid":{tid},"ts":5,"dur":{dur},
                "args":{{"Ev Idx":{index}}}}}"#
            )
        };
        let rows = [
            event("cpu_op", 5, "b", 1, 2),
            event("cpu_op", 5, "a", 10, 2),
            event("cpu_op", 5, "a", 9, 2),
            event("cpu_op", 5, "z", 1, 1),
            event("user_annotation", 5, "z", 1, 9),
            event("cpu_op", 6, "z", 1, 9),
            event("cpu_op", 5, "a", 9, 2),
        ];
        let text = format!("[{}]", rows.join(","));
        let tables = read_bytes(text.as_bytes(), &Options::default()).unwrap();
        let mut order: Vec<_> = tables.events.ids().collect();
        order.sort_by(|&one, &two| by_content(one, two, &tables));
        let rows: Vec<_> = order.into_iter().map(EventId::row).collect();
        assert_eq!(rows, [5, 4, 3, 2, 6, 1, 0]);
    }
}
