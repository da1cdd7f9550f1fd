//! How many activities were launched and not begun on each stream, over time.

use std::collections::BTreeMap;

use super::Chosen;
use crate::ids::EventId;
use crate::link::Launches;
use crate::tables::Tables;

/// A change of the number of activities that wait on a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueChange {
    /// The device; none where the trace names none.
    pub device: Option<i64>,
    /// The stream.
    pub stream: Option<i64>,
    /// When.
    pub time_ns: i64,
    /// The call that launched one more, or the activity that began.
    pub event: EventId,
    /// How many wait from then on.
    pub length: i64,
}

/// Joins (+1) or leaves (-1) a queue: when, which of both, and what does so.
type Change = (i64, i64, EventId);

/// The changes on every stream, by place and time; where one leaves as another joins, it leaves
/// first. Activities that nothing known launched do not count.
pub fn queues(tables: &Tables, launches: &Launches, chosen: &Chosen) -> Vec<QueueChange> {
    let events = &tables.events;
    let mut by_lane: Vec<[Vec<Change>; 2]> = vec![Default::default(); tables.lanes.len()];
    let is_work = |work: &EventId| events.kind(*work).is_device_work() && chosen.holds(*work);
    for work in events.ids().filter(is_work) {
        if let Some(call) = launches.launcher(work) {
            let [joining, leaving] = &mut by_lane[events.lane(work).row()];
            joining.push((events.start_ns(call), 1, call));
            leaving.push((events.start_ns(work), -1, work));
        }
    }
    let mut by_place: BTreeMap<_, Vec<Change>> = BTreeMap::new();
    for (lane, changes) in tables.lanes.ids().zip(by_lane) {
        if !changes[0].is_empty() {
            let place = tables.lanes.place(lane);
            let of_place = by_place.entry((place.device, place.stream)).or_default();
            // Each side is mostly in order, so that the sort below has runs to merge.
            for mut side in changes {
                of_place.append(&mut side);
            }
        }
    }
    let n_changes = by_place.values().map(Vec::len).sum();
    let mut found = Vec::with_capacity(n_changes);
    for ((device, stream), mut changes) in by_place {
        changes.sort();
        let mut length = 0;
        found.extend(changes.into_iter().map(|(time_ns, change, event)| {
            length += change;
            QueueChange { device, stream, time_ns, event, length }
        }));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::launches;
    use crate::progress::silent;
    use crate::read::{read_bytes, Options};

    #[test]
    fn an_activity_waits_from_its_call_to_its_start() {
        let row = |category: &str, tid: i64, ts: i64, id: i64| {
            format!(
                r#"{{"ph":"X","cat":"{category}","name":"n","pid":1,"tid":{tid},"ts":{ts},"dur":1,
                "args":{{"correlation":{id},"device":0,"stream":{tid}}}}}"#
            )
        };
        let rows = [
            row("cuda_runtime", 1, 0, 1),
            row("cuda_runtime", 1, 5, 2),
            row("kernel", 7, 5, 1),
            row("kernel", 7, 9, 2),
            row("kernel", 7, 20, 3),
        ];
        let text = format!("[{}]", rows.join(","));
        let tables = read_bytes(text.as_bytes(), &Options::default()).unwrap();
        let launches = launches(&tables, &silent).unwrap();
        let changes = queues(&tables, &launches, &Chosen::All);
        let shown: Vec<_> = changes.iter().map(|row| (row.time_ns / 1000, row.length)).collect();
        assert_eq!(shown, [(0, 1), (5, 0), (5, 1), (9, 0)]);
    }
}
