//! Which GPU activities belong to a window, and with what time.
//!
//! A step has the activities that were launched in its host time, whole, wherever they run: on
//! several streams, activities of two steps run at the same time. An activity whose launch is not in
//! the trace belongs to the step of the next linked one of its stream, but to none if it starts
//! before the first. After the last, and in other windows, the part that runs inside counts.

use std::collections::{BTreeMap, HashMap};

use super::Launches;
use crate::ids::{EventId, LaneId};
use crate::tables::Tables;

/// The GPU activities of a window.
pub struct Belonging<'a> {
    tables: &'a Tables,
    launches: &'a Launches,
    window: (i64, i64),
    /// If the window is a step, the time in which its launches begin.
    host: Option<(i64, i64)>,
    times: LaunchTimes,
}

/// When an activity was launched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Launch {
    /// At a time: that of its own launch, or of the next known one of its stream.
    At(i64),
    /// Before all known launches of its stream.
    BeforeAll,
    /// After them, or its stream has none.
    Unknown,
}

/// When activities were launched; those without a launch call, by the next of their stream.
#[derive(Debug, Default)]
pub struct LaunchTimes(HashMap<EventId, Launch>);

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
        let times =
            if host.is_some() { LaunchTimes::of(tables, launches) } else { LaunchTimes::default() };
        Self { tables, launches, window, host, times }
    }

    /// Returns the time of an activity that counts for the window; `None` if it does not belong to
    /// it.
    pub fn time_ns(&self, work: EventId) -> Option<i64> {
        self.span(work).map(|(start, end)| end - start)
    }

    /// Returns the start and end of this time.
    pub fn span(&self, work: EventId) -> Option<(i64, i64)> {
        let span = self.tables.events.span(work)?;
        let Some((from_ns, until_ns)) = self.host else { return inside(span, self.window) };
        match self.times.launch(work, self.tables, self.launches) {
            Launch::At(ns) => (from_ns <= ns && ns < until_ns).then_some(span),
            Launch::BeforeAll => None,
            Launch::Unknown => inside(span, self.window),
        }
    }
}

impl LaunchTimes {
    /// Finds the launches of the activities without a call.
    pub fn of(tables: &Tables, launches: &Launches) -> Self {
        Self(unlinked(tables, launches))
    }

    /// Returns when an activity was launched, with or without a launch call.
    pub fn launch(&self, work: EventId, tables: &Tables, launches: &Launches) -> Launch {
        match launches.launcher(work) {
            Some(call) => Launch::At(tables.events.start_ns(call)),
            None => self.0.get(&work).copied().unwrap_or(Launch::Unknown),
        }
    }
}

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
fn inside((start, end): (i64, i64), window: (i64, i64)) -> Option<(i64, i64)> {
    let (from, until) = (start.max(window.0), end.min(window.1));
    (from < until || (from == until && start == end)).then_some((from, until))
}
