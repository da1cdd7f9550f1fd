//! Which GPU activities belong to a window, and with what time.
//!
//! A step has the activities that were launched in its host time, whole, wherever they run: on
//! several streams, activities of two steps run at the same time. An activity whose launch is not in
//! the trace belongs to the step of the next linked one of its stream, but to none if it starts
//! before the first. After the last, and in other windows, the part that runs inside counts.

use std::collections::{BTreeMap, HashMap};

use crate::ids::{EventId, LaneId};
use crate::link::Launches;
use crate::tables::Tables;

/// The GPU activities of a window.
pub struct Belonging<'a> {
    tables: &'a Tables,
    launches: &'a Launches,
    window: (i64, i64),
    /// If the window is a step, the time in which its launches begin.
    host: Option<(i64, i64)>,
    unlinked: HashMap<EventId, Launch>,
}

/// When an activity was launched.
#[derive(Clone, Copy)]
enum Launch {
    At(i64),
    BeforeAll,
    Unknown,
}

impl<'a> Belonging<'a> {
    /// Prepares the activities of a window. `host` is the time in which the host work begins that
    /// belongs to it: that of the window itself if it is not a step.
    pub fn of(
        tables: &'a Tables,
        launches: &'a Launches,
        window: (i64, i64),
        host: (i64, i64),
    ) -> Self {
        let host = Some(host).filter(|&host| host != window);
        let unlinked = if host.is_some() { unlinked(tables, launches) } else { HashMap::new() };
        Self { tables, launches, window, host, unlinked }
    }

    /// Returns the time of an activity that counts for the window; `None` if it does not belong to
    /// it.
    pub fn time_ns(&self, work: EventId) -> Option<i64> {
        let span = self.tables.events.span(work)?;
        let Some((from_ns, until_ns)) = self.host else { return inside_ns(span, self.window) };
        match self.launch(work) {
            Launch::At(ns) => (from_ns <= ns && ns < until_ns).then_some(span.1 - span.0),
            Launch::BeforeAll => None,
            Launch::Unknown => inside_ns(span, self.window),
        }
    }

    fn launch(&self, work: EventId) -> Launch {
        match self.launches.launcher(work) {
            Some(call) => Launch::At(self.tables.events.start_ns(call)),
            None => self.unlinked.get(&work).copied().unwrap_or(Launch::Unknown),
        }
    }
}

/// Returns when the activities without a launch call were launched, by the next of their stream.
fn unlinked(tables: &Tables, launches: &Launches) -> HashMap<EventId, Launch> {
    let events = &tables.events;
    let mut streams: BTreeMap<LaneId, Vec<(i64, EventId)>> = BTreeMap::new();
    for work in events.ids().filter(|&event| events.kind(event).is_device_work()) {
        streams.entry(events.lane(work)).or_default().push((events.start_ns(work), work));
    }
    let mut found = HashMap::new();
    for works in streams.values_mut() {
        works.sort_unstable();
        let is_linked = |&(_, work): &(i64, EventId)| launches.launcher(work).is_some();
        let Some(first) = works.iter().position(is_linked) else { continue };
        found.extend(works[..first].iter().map(|&(_, work)| (work, Launch::BeforeAll)));
        let mut next = Launch::Unknown;
        for &(_, work) in works[first..].iter().rev() {
            match launches.launcher(work) {
                Some(call) => next = Launch::At(events.start_ns(call)),
                None => drop(found.insert(work, next)),
            }
        }
    }
    found
}

/// Returns the part of a span inside a window; `None` if it has none. That of an instant is 0.
fn inside_ns((start, end): (i64, i64), window: (i64, i64)) -> Option<i64> {
    let (from, until) = (start.max(window.0), end.min(window.1));
    (from < until || (from == until && start == end)).then_some(until - from)
}
