//! Inferred waits between streams: a late start follows the activity of another stream that ended
//! just before.
//!
//! How late a start must be, and how strong the evidence, depends on whether the launching thread
//! issued a wait call.

use super::{ended_before, rivals};
use crate::graph::facts::{Asked, Facts, Mark};
use crate::graph::model::{Edge, Evidence, limits};
use crate::ids::Order;

/// Returns the edge from the likeliest activity that ended shortly before the start, at a usual
/// latency; otherwise from the likeliest of all.
pub(super) fn edge(work: Order, ready_ns: i64, facts: &Facts<'_>) -> Option<Edge> {
    let start_ns = facts.timeline.start_ns(work);
    let late_ns = start_ns - ready_ns;
    let Some((reach_ns, least)) = suspicion(work, late_ns, facts) else {
        return unasked(work, ready_ns, facts);
    };
    let likeliest = |reach_ns: i64, until_ns: i64| {
        let ended_ns = (ready_ns.max(start_ns - reach_ns - 1), until_ns);
        let mut marks = Mark::FROM_LIKELY.into_iter().take_while(|&mark| mark >= least);
        ended_before::paired(work, ended_ns, facts)
            .or_else(|| marks.find_map(|it| ended_before::elsewhere(work, ended_ns, it, facts)))
    };
    let until = |until_ns: i64| {
        let farther = || likeliest(reach_ns, until_ns);
        let usual_ns = limits::WAIT_RELEASE_NS;
        likeliest(usual_ns, until_ns).or_else(|| (reach_ns > usual_ns).then(farther).flatten())
    };
    // An end closer to the start than a wait takes is accepted only if the start needs a reason.
    let needs_reason =
        late_ns > limits::LATE_START_AFTER_WAIT_CALL_NS || facts.streams.n_siblings() > 0;
    let producer = until(start_ns - limits::QUICKEST_RELEASE_NS)
        .or_else(|| needs_reason.then(|| until(start_ns)).flatten())?;
    let rival = rivals::of_start(producer, work, ready_ns, facts);
    Some(facts.wait_edge(producer, work, Evidence::Inferred).with_rival(rival))
}

/// Returns the edge from the last activity to end on the other side of a stream that waits for all
/// others without a wait call, however late the start is.
fn unasked(work: Order, ready_ns: i64, facts: &Facts<'_>) -> Option<Edge> {
    let start_ns = facts.timeline.start_ns(work);
    let after_ns = ready_ns.max(start_ns - limits::WAIT_RELEASE_NS - 1);
    let ended_ns = (after_ns, start_ns - limits::QUICKEST_RELEASE_NS);
    let device = facts.streams.device_of(work);
    let (_, producer) = ended_before::on_device(device, work, ended_ns, Mark::Unmarked, facts)
        .filter(|&(_, producer)| facts.are_serial(producer, work))?;
    Some(facts.wait_edge(producer, work, Evidence::Inferred))
}

/// Returns how long before the start the awaited activity may have ended, and the weakest mark
/// accepted. The later the start, the weaker the mark.
fn suspicion(work: Order, late_ns: i64, facts: &Facts<'_>) -> Option<(i64, Mark)> {
    let after_call_ns = limits::WAIT_RELEASE_AFTER_WAIT_CALL_NS;
    let is_late = late_ns > limits::LATE_START_NS;
    let is_rather_late = late_ns > limits::LATE_START_AFTER_WAIT_CALL_NS;
    match facts.asked[work.row()] {
        Asked::JustNow | Asked::Before if is_late => Some((after_call_ns, Mark::Unmarked)),
        Asked::JustNow if is_rather_late => Some((after_call_ns, Mark::Possible)),
        // The calls that record events are unknown, so any wait call may be the one.
        Asked::Before if is_rather_late && !facts.marks.has_records => {
            Some((after_call_ns, Mark::Possible))
        }
        Asked::JustNow => Some((after_call_ns, Mark::Likely)),
        // In a process with several devices, the events recorded before the wait calls are reliable
        // enough.
        Asked::Before if is_rather_late && facts.paired_on_devices(work).is_some() => {
            Some((after_call_ns, Mark::Likely))
        }
        Asked::No if is_late && may_wait_without_call(work, facts) => {
            Some((limits::WAIT_RELEASE_NS, Mark::Unmarked))
        }
        Asked::ByOther if is_late => Some((limits::WAIT_RELEASE_NS, Mark::Possible)),
        Asked::Before | Asked::ByOther | Asked::No => None,
    }
}

/// Whether the activity may have waited without a visible wait call: the trace has no such calls,
/// or they could not be recorded.
fn may_wait_without_call(work: Order, facts: &Facts<'_>) -> bool {
    !facts.has_wait_calls || facts.timeline.launcher(work).is_none() || facts.is_in_graph(work)
}
