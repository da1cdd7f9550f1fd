//! Number of activities per stream that are launched and have not started, over time.

use std::collections::{BTreeMap, HashMap};

use super::Chosen;
use crate::columns::columns;
use crate::ids::EventId;
use crate::link::{Launches, LinkedBy, queued_tasks};
use crate::stack::Nesting;
use crate::tables::{EventKind, Tables, WorkClass};

columns! {
    /// The number of activities waiting on a stream from a given time.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct QueueChange {
        /// The device; `None` if the trace has no device numbers.
        pub device: Option<i64>,
        /// The stream.
        pub stream: Option<i64>,
        /// The time of the change.
        pub time_ns: i64,
        /// The call that launched another activity, or the activity that began. It is before the window
        /// if `queue_length` is the length at its start.
        pub event: EventId,
        /// Number of waiting activities from then on.
        pub queue_length: i64,
    }
}

/// An activity joins (+1) or leaves (-1) a queue: time, direction, and event.
type Change = (i64, i64, EventId);

/// Returns the length at the start of the window (if not zero) and the changes in it, sorted by
/// place and time. If one activity leaves as another joins, the one that leaves comes first.
/// Activities without a known launch do not count.
pub fn queues(
    tables: &Tables,
    launches: &Launches,
    window: (i64, i64),
    chosen: &Chosen,
) -> Vec<QueueChange> {
    let mut found = Vec::new();
    for ((device, stream), mut changes) in changes_by_place(tables, launches, chosen) {
        changes.sort();
        let row = |time_ns, event, queue_length| QueueChange {
            device,
            stream,
            time_ns,
            event,
            queue_length,
        };
        found.extend(
            cut(&changes, window).map(|(time_ns, event, length)| row(time_ns, event, length)),
        );
    }
    found
}

/// Returns the activities that join and leave the queue of each device and stream: first all that
/// join, then all that leave. Each part is mostly sorted, which a merge sort exploits.
fn changes_by_place(
    tables: &Tables,
    launches: &Launches,
    chosen: &Chosen,
) -> BTreeMap<(Option<i64>, Option<i64>), Vec<Change>> {
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
            by_place.entry((place.device, place.stream)).or_default().extend(changes.concat());
        }
    }
    by_place
}

/// Returns the lengths of one queue in a window: time, event, and length from then on.
fn cut(
    changes: &[Change],
    (start_ns, end_ns): (i64, i64),
) -> impl Iterator<Item = (i64, EventId, i64)> + '_ {
    let n_before = changes.partition_point(|&(time_ns, ..)| time_ns < start_ns);
    let (before, later) = changes.split_at(n_before);
    let mut length: i64 = before.iter().map(|&(_, change, _)| change).sum();
    let last = before.last().filter(|_| length != 0);
    let opening = last.map(|&(_, _, event)| (start_ns, event, length));
    let inside = later.iter().take_while(move |&&(time_ns, ..)| time_ns <= end_ns);
    opening.into_iter().chain(inside.map(move |&(time_ns, change, event)| {
        length += change;
        (time_ns, event, length)
    }))
}

// Lists each GPU activity with its launch call, operator and delay.
//
// Rows are in file order, so that they can be joined to the event table by row.

columns! {
    /// A GPU activity and its launch.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Launch {
        /// The activity.
        pub event: EventId,
        /// Its class.
        pub work_class: WorkClass,
        /// The launch call, if it is in the trace.
        pub call: Option<EventId>,
        /// The innermost operator around the call, or around the event that enqueued it for another
        /// thread.
        pub operator: Option<EventId>,
        /// How the activity was linked to its call.
        pub linked_by: Option<LinkedBy>,
        /// Time from the return of the call to the start of the activity; negative if the activity
        /// began inside the call. `None` without a call.
        pub delay_ns: Option<i64>,
    }
}

/// Returns a row for each GPU activity, in file order.
pub fn launches(tables: &Tables, launches: &Launches, nesting: &Nesting) -> Vec<Launch> {
    let events = &tables.events;
    let class_of = tables.work_classes();
    let by_id: HashMap<_, _> = launches.operators_by_external_id().iter().copied().collect();
    let queued: HashMap<_, _> =
        queued_tasks(tables).iter().map(|task| (task.dequeue, task.enqueue)).collect();
    let innermost = |event: EventId| {
        std::iter::successors(nesting.parent(event), |&event| nesting.parent(event))
            .find(|&event| events.kind(event) == EventKind::Operator)
    };
    // A thread that launches for others has no operators; they are around the enqueue event.
    let operator_around = |call: EventId| {
        let operator = innermost(call)?;
        let enqueue = queued.get(&operator).copied();
        Some(enqueue.and_then(innermost).unwrap_or(operator))
    };
    let row = |work, class| {
        let call = launches.launcher(work);
        let operator = call.map_or_else(|| by_id.get(&work).copied(), operator_around);
        let returned_ns = call.and_then(|call| events.end_ns(call));
        Launch {
            event: work,
            work_class: class,
            call,
            operator,
            linked_by: linked_by(call, operator, launches),
            delay_ns: returned_ns.map(|returned_ns| events.start_ns(work) - returned_ns),
        }
    };
    events.ids().filter_map(|event| Some(row(event, class_of(event)?))).collect()
}

fn linked_by(
    call: Option<EventId>,
    operator: Option<EventId>,
    launches: &Launches,
) -> Option<LinkedBy> {
    let Some(call) = call else { return operator.map(|_| LinkedBy::ExternalId) };
    let is_holder = launches.holders().binary_search(&call).is_ok();
    Some(if is_holder { LinkedBy::Holder } else { LinkedBy::Correlation })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::launches;
    use crate::progress::silent;
    use crate::read::{Options, read_bytes};

    /// Returns the queue lengths of a stream with two activities, launched at 0 and 5, that begin
    /// at 5 and 9.
    fn lengths_in(window_us: (i64, i64)) -> Vec<(i64, i64)> {
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
        let window = (window_us.0 * 1000, window_us.1 * 1000);
        let changes = queues(&tables, &launches, window, &Chosen::All);
        changes.iter().map(|row| (row.time_ns / 1000, row.queue_length)).collect()
    }

    #[test]
    fn an_activity_waits_from_its_call_to_its_start() {
        assert_eq!(lengths_in((0, 30)), [(0, 1), (5, 0), (5, 1), (9, 0)]);
    }

    #[test]
    fn what_waits_at_the_start_of_a_window_counts_from_there() {
        assert_eq!(lengths_in((2, 6)), [(2, 1), (5, 0), (5, 1)]);
        assert_eq!(lengths_in((6, 8)), [(6, 1)]);
        assert_eq!(lengths_in((10, 30)), []);
    }
}
