//! Finds the calls that are known to have waited for an activity.

use crate::graph::facts::Facts;
use crate::ids::Order;
use crate::tables::EventKind;
use crate::vocabulary::{ApiRole, blit_kernel};

/// Returns pairs of an activity and a call that is known to have waited for it.
pub(super) fn known_waits(facts: &Facts<'_>) -> Vec<(Order, Order)> {
    let mut found = Vec::new();
    for call in facts.calls() {
        if let Some(producers) = facts.recorded.producers.get(&call) {
            found.extend(producers.iter().map(|&work| (work, call)));
        } else if facts.purpose(call) == ApiRole::DeviceSynchronize
            && facts.streams.n_devices() == 1
        {
            found.extend(last_submitted_before(call, facts).map(|work| (work, call)));
        } else {
            let copies = facts.streams.launched_by(call).iter().copied();
            found.extend(copies.filter(|&it| blocks(it, call, facts)).map(|work| (work, call)));
        }
    }
    found.retain(|&(work, _)| facts.timeline.launcher(work).is_some());
    found
}

/// Returns the last to finish of the activities submitted before a call, for a process with one
/// device.
fn last_submitted_before(call: Order, facts: &Facts<'_>) -> Option<Order> {
    let called_ns = facts.timeline.start_ns(call);
    let last = facts.streams.all.iter().filter_map(|it| it.last_finished_before(called_ns));
    last.max_by_key(|&work| facts.timeline.end_ns(work))
}

/// Whether a call returns only after its copy is complete. For pageable memory it may return once
/// the bytes are staged, and within a device it need not wait. A copy kernel does not record the
/// memory kinds.
fn blocks(copy: Order, call: Order, facts: &Facts<'_>) -> bool {
    if facts.timeline.kind(copy) != EventKind::Copy {
        return false;
    }
    let name = facts.name(copy);
    let [is_staged, is_fetched] = facts.tables.pageable_ends(facts.timeline.event(copy));
    let stays = stays_on_device(copy, facts) || blit_kernel(name).is_some();
    let waits = is_fetched || !facts.name(call).contains("Async");
    waits && !is_staged && !stays
}

/// Whether a copy is recorded as one within a device.
pub(in crate::graph::rules) fn stays_on_device(copy: Order, facts: &Facts<'_>) -> bool {
    let name = facts.name(copy);
    name.contains("DtoD") || name.contains("Device -> Device")
}
