//! Links the enqueue and dequeue events of the task queue of `torch_npu`.
//!
//! The thread of an operator enqueues its launch, and a separate thread dequeues it and launches.
//! Both events have the same number. Numbers are reused in long traces, so the nearest earlier
//! enqueue event is used.

use std::collections::BTreeMap;

use crate::ids::{EventId, StringId};
use crate::tables::Tables;

/// A launch passed from the thread of an operator to the launching thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct QueuedTask {
    /// The event that takes it from the queue and launches.
    pub dequeue: EventId,
    /// The event that adds it to the queue.
    pub enqueue: EventId,
}

/// Returns the tasks of all queues, in file order.
pub fn queued_tasks(tables: &Tables) -> Vec<QueuedTask> {
    let [enqueue, dequeue] = ["enqueue", "dequeue"].map(|word| tables.strings.lookup(word));
    let (Some(enqueue), Some(dequeue)) = (enqueue, dequeue) else { return Vec::new() };
    let events = &tables.events;
    let of_category = |category: StringId| {
        events.ids().filter(move |&event| events.category(event) == Some(category))
    };
    let key =
        |event| Some((tables.lanes.place(events.lane(event)).process, events.correlation(event)?));
    let mut starts: BTreeMap<(StringId, i64), Vec<(i64, EventId)>> = BTreeMap::new();
    for event in of_category(enqueue) {
        if let Some(key) = key(event) {
            starts.entry(key).or_default().push((events.start_ns(event), event));
        }
    }
    for rows in starts.values_mut() {
        rows.sort_unstable();
    }
    let nearest = |event: EventId| {
        let rows = starts.get(&key(event)?)?;
        let behind = rows.partition_point(|&(start_ns, _)| start_ns <= events.start_ns(event));
        Some(QueuedTask { dequeue: event, enqueue: rows[behind.checked_sub(1)?].1 })
    };
    of_category(dequeue).filter_map(nearest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::{Options, read_bytes};

    #[test]
    fn a_task_was_put_in_by_the_nearest_earlier_one_with_its_number() {
        let event = |category: &str, ts: i64, number: i64| {
            format!(
                r#"{{"ph":"X","cat":"{category}","name":"n","pid":1,"tid":1,"ts":{ts},"dur":1,
                "args":{{"correlation_id":{number}}}}}"#
            )
        };
        let rows = [
            event("enqueue", 0, 7),
            event("enqueue", 10, 7),
            event("enqueue", 90, 7),
            event("dequeue", 20, 7),
            event("dequeue", 20, 8),
        ];
        let text = format!("[{}]", rows.join(","));
        let tables = read_bytes(text.as_bytes(), &Options::default()).unwrap();
        let [enqueue, dequeue] = [1, 3].map(EventId::from_row);
        assert_eq!(queued_tasks(&tables), [QueuedTask { dequeue, enqueue }]);
    }
}
