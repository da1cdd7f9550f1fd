//! Determines the main thread of each process.
//!
//! A trace ends, and a step begins, with the main thread; helper threads may sleep for long and
//! must not end the trace. Profilers do not record which thread is the main one, so steps, then the
//! process id, then the amount of work decide.

use std::collections::HashMap;

use crate::ids::{EventId, LaneId};
use crate::tables::{EventKind, Tables, by_content};
use crate::vocabulary::step_number;

/// Returns whether each lane is the main thread of its process, one row for each lane.
///
/// The main thread is the one that runs the steps; otherwise the one whose id is the process id, if
/// it has events; otherwise the one with the most operators and calls. Among equals, the one with
/// the first event is used.
pub fn main_threads(tables: &Tables) -> Vec<bool> {
    let claims = claims(tables);
    let mut best: HashMap<_, &Claim> = HashMap::new();
    for claim in &claims {
        let process = tables.lanes.place(claim.thread).process;
        let leader = best.entry(process).or_insert(claim);
        if claim.strength() > leader.strength() {
            *leader = claim;
        }
    }
    let mut is_main = vec![false; tables.lanes.len()];
    for claim in &claims {
        let process = tables.lanes.place(claim.thread).process;
        is_main[claim.thread.row()] = best[&process].thread == claim.thread;
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
