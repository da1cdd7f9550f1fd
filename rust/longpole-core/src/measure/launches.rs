//! Lists each GPU activity with its launch call, operator and delay.
//!
//! Rows are in file order, so that they can be joined to the event table by row.

use std::collections::HashMap;

use crate::columns::columns;
use crate::ids::EventId;
use crate::link::{Launches, LinkedBy, queued_tasks};
use crate::stack::Nesting;
use crate::tables::{EventKind, Tables, WorkClass};

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
