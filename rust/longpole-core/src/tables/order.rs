//! The order of events by content, which settles every tie.
//!
//! The order in the file depends on threads of the profiler. An answer must not, so ties are broken
//! by what events are; the row in the file separates only events that are alike in everything.

use std::cmp::{Ordering, Reverse};

use super::{ArgValue, EventKind, Tables};
use crate::ids::{EventId, LaneId, StringId};

/// The order of two events by what they are: start, then longer first, then the
/// kind that encloses the other, then the number the profiler gave, name, process
/// and thread, then all ids. The place in the file comes last and separates only events that
/// are alike in all else, so that what follows from this order does not depend on
/// how the file lists them.
///
/// Only the first comparisons are cheap; they settle nearly all pairs.
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
    /// Of two events with the same times, the one with the smaller layer is the outer.
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

/// The number that the profiler gave to the event, 0 for none. All but `Ev Idx`
/// use 0 for none themselves.
fn identity(event: EventId, tables: &Tables) -> i64 {
    let events = &tables.events;
    let given = |number: Option<i64>| number.filter(|&number| number != 0);
    argument(event, "Ev Idx", tables)
        .or_else(|| given(argument(event, "Record function id", tables)))
        .or_else(|| given(events.external_id(event)))
        .or_else(|| given(events.correlation(event)))
        .unwrap_or(0)
}

/// An argument that is an integer, written as one or as a text.
pub(crate) fn argument(event: EventId, key: &str, tables: &Tables) -> Option<i64> {
    match argument_value(event, key, tables) {
        Some(ArgValue::Integer(number)) => Some(number),
        Some(ArgValue::Text(text)) => tables.strings.get(text).trim().parse().ok(),
        _ => None,
    }
}

/// An argument that is a text.
pub(crate) fn argument_text<'a>(event: EventId, key: &str, tables: &'a Tables) -> Option<&'a str> {
    argument_text_id(event, key, tables).map(|text| tables.strings.get(text))
}

/// The handle of an argument that is a text.
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

/// Process and thread: numbers by value, before names.
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
