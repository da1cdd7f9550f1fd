//! How long some activities ran at the same time as other activities of their device.

use std::collections::BTreeMap;

use super::Chosen;
use crate::ids::EventId;
use crate::intervals::Spans;
use crate::tables::Tables;

/// For each event in `of` with a start and an end, returns the time in which any event in `beside`
/// ran on the same device.
pub fn overlaps(tables: &Tables, of: &[EventId], beside: &Chosen) -> Vec<(EventId, i64)> {
    let events = &tables.events;
    let device = |event| tables.lanes.place(events.lane(event)).device;
    let mut spans: BTreeMap<Option<i64>, Vec<(i64, i64)>> = BTreeMap::new();
    for event in events.ids().filter(|&event| beside.holds(event)) {
        if let Some(span) = events.span(event) {
            spans.entry(device(event)).or_default().push(span);
        }
    }
    let spans: BTreeMap<_, _> =
        spans.into_iter().map(|(device, spans)| (device, Spans::union_of(spans))).collect();
    of.iter()
        .filter_map(|&event| Some((event, events.span(event)?)))
        .map(|(event, (start, end))| {
            let beside = spans.get(&device(event));
            (event, beside.map_or(0, |spans| spans.length_within_ns(start, end)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::{Options, read_bytes};

    #[test]
    fn only_the_same_device_counts_and_each_instant_once() {
        let rows = [(0, 10, 20), (0, 0, 12), (0, 5, 14), (0, 28, 9), (1, 10, 20)];
        let events: Vec<_> = rows
            .iter()
            .map(|(device, start, duration)| {
                format!(
                    r#"{{"ph":"X","cat":"kernel","name":"a","pid":{device},"tid":{start},"ts":{start}e-3,
                    "dur":{duration}e-3,"args":{{"device":{device},"stream":{start}}}}}"#
                )
            })
            .collect();
        let text = format!("[{}]", events.join(","));
        let tables = read_bytes(text.as_bytes(), &Options::default()).unwrap();
        let of = EventId::from_row(0);
        let found = overlaps(&tables, &[of], &Chosen::of_rows([1, 2, 3, 4], 5));
        assert_eq!(found, [(of, 9 + 2)]);
    }
}
