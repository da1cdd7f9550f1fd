//! The main thread of each process, and the task queue of `torch_npu`, by which a thread launches
//! for others.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::ids::{EventId, LaneId, StringId};
use crate::tables::{EventKind, Tables, by_content};
use crate::vocabulary::step_number;

/// Returns whether each lane is the main thread of its process, one row for each lane.
///
/// The main thread is the one that runs the steps; otherwise the one whose id is the process id, if
/// it has events; otherwise the one with the most operators and calls. Among equals, the one with
/// the first event is used. A process without steps, operators and calls has no main thread if
/// another process has some: its threads only wait, such as the monitor of a progress bar.
pub fn main_threads(tables: &Tables) -> Vec<bool> {
    let claims = claims(tables);
    let process = |claim: &Claim| tables.lanes.place(claim.thread).process;
    let mut best: HashMap<_, &Claim> = HashMap::new();
    for claim in &claims {
        let leader = best.entry(process(claim)).or_insert(claim);
        if claim.strength() > leader.strength() {
            *leader = claim;
        }
    }
    let active: HashSet<_> = claims.iter().filter(|claim| claim.is_active()).map(process).collect();
    let mut is_main = vec![false; tables.lanes.len()];
    for claim in &claims {
        let is_in_use = active.is_empty() || active.contains(&process(claim));
        is_main[claim.thread.row()] = is_in_use && best[&process(claim)].thread == claim.thread;
    }
    is_main
}

/// The evidence that a thread is the main one.
struct Claim {
    thread: LaneId,
    first: EventId,
    runs_steps: bool,
    is_first_of_process: bool,
    works: bool,
    n_busy: usize,
}

impl Claim {
    fn is_active(&self) -> bool {
        self.runs_steps || self.n_busy > 0
    }

    fn strength(&self) -> (bool, bool, usize) {
        (self.runs_steps, self.works && self.is_first_of_process, self.n_busy)
    }
}

/// Returns a claim for each thread, in order of first event.
fn claims(tables: &Tables) -> Vec<Claim> {
    let events = &tables.events;
    let is_step = tables.strings.matching(|name| step_number(name).is_some());
    let mut of_lane: Vec<Option<Claim>> = Vec::new();
    of_lane.resize_with(tables.lanes.len(), || None);
    for event in events.ids().filter(|&event| runs_on_thread(event, tables)) {
        let kind = events.kind(event);
        let lane = events.lane(event);
        let claim = of_lane[lane.row()].get_or_insert_with(|| Claim::new(lane, event, tables));
        claim.runs_steps |= events.name(event).is_some_and(|name| is_step[name.row()]);
        claim.works |= kind != EventKind::Annotation;
        claim.n_busy += usize::from(kind == EventKind::Operator || kind.is_call());
        let may_be_first = events.start_ns(event) <= events.start_ns(claim.first);
        if may_be_first && by_content(event, claim.first, tables).is_lt() {
            claim.first = event;
        }
    }
    let mut claims: Vec<_> = of_lane.into_iter().flatten().collect();
    claims.sort_by(|one, two| by_content(one.first, two.first, tables));
    claims
}

impl Claim {
    fn new(thread: LaneId, first: EventId, tables: &Tables) -> Self {
        let place = tables.lanes.place(thread);
        Self {
            thread,
            first,
            runs_steps: false,
            is_first_of_process: place.thread == place.process,
            works: false,
            n_busy: 0,
        }
    }
}

/// Whether an event is on a thread and part of the critical path.
fn runs_on_thread(event: EventId, tables: &Tables) -> bool {
    let kind = tables.events.kind(event);
    let labels_or_works =
        matches!(kind, EventKind::Annotation | EventKind::Operator | EventKind::Python);
    (labels_or_works || kind.is_call()) && tables.events.end_ns(event).is_some()
}

// Links the enqueue and dequeue events of the task queue of `torch_npu`.
//
// The thread of an operator enqueues its launch, and a separate thread dequeues it and launches.
// Both events have the same number. Numbers are reused in long traces, so the nearest earlier
// enqueue event is used.

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
    fn a_process_that_only_waits_has_no_main_thread_beside_one_that_works() {
        let event = |category: &str, process: i64| {
            format!(
                r#"{{"ph":"X","cat":"{category}","name":"n","pid":{process},"tid":{process},
                "ts":0,"dur":9}}"#
            )
        };
        let other_thread = r#"{"ph":"X","cat":"cpu_op","name":"n","pid":5,"tid":6,"ts":0,"dur":9}"#;
        let main = |rows: &[String]| {
            let text = format!("[{}]", rows.join(","));
            main_threads(&read_bytes(text.as_bytes(), &Options::default()).unwrap())
        };
        let waits = event("python_function", 0);
        assert_eq!(main(&[waits.clone(), event("cpu_op", 5)]), [false, true]);
        assert_eq!(main(&[waits.clone(), event("cuda_runtime", 5)]), [false, true]);
        assert_eq!(main(&[waits.clone(), event("python_function", 5)]), [true, true]);
        let of_both = [waits, event("python_function", 5), other_thread.to_owned()];
        assert_eq!(main(&of_both), [false, true, false]);
    }

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
