//! Tells which thread of each process is its main thread.
//!
//! A trace ends, and a step begins, with the main thread; helper threads sleep longest and must not
//! decide. No profiler names it, so steps, then the process id, then the amount of work decide.

use std::collections::HashMap;

use crate::ids::{EventId, LaneId};
use crate::tables::{EventKind, Tables, by_content};
use crate::vocabulary::step_number;

/// Which lanes are the main thread of their process, one row for each lane.
///
/// That is the thread that runs the steps; else the one whose number is that of
/// the process, if it works; else the one with most operators and calls. Between
/// equals the one whose first event comes first.
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

/// What speaks for a thread to be the main one.
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

/// A claim for each thread, in order of their first events.
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

/// Whether the event is one of a thread that takes part in the critical path.
fn runs_on_thread(event: EventId, tables: &Tables) -> bool {
    let kind = tables.events.kind(event);
    let labels_or_works =
        matches!(kind, EventKind::Annotation | EventKind::Operator | EventKind::Python);
    (labels_or_works || kind.is_call()) && tables.events.end_ns(event).is_some()
}
