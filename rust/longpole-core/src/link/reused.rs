//! Determines which of several calls with one correlation id launched an activity.
//!
//! A trace may give one id to all calls. The call is therefore found by binary search among the
//! calls of one process, or with one external id, instead of checking every call.

use std::collections::{BTreeSet, HashMap};

use super::calls::Calls;
use crate::ids::{EventId, StringId};
use crate::tables::{EventTable, LaneTable};

/// The id, with the process or the external id if the search is limited to these.
type Key = (i64, Option<StringId>, Option<i64>);

/// The calls with ids that several calls share, by distinguishing property, in order of time.
pub(super) struct Reused {
    calls: HashMap<Key, Vec<EventId>>,
    /// The processes of the calls with an id.
    processes: HashMap<i64, BTreeSet<StringId>>,
}

impl Reused {
    pub(super) fn of(calls: &Calls, events: &EventTable, lanes: &LaneTable) -> Self {
        let mut found: HashMap<Key, Vec<EventId>> = HashMap::new();
        let mut processes: HashMap<i64, BTreeSet<StringId>> = HashMap::new();
        let same_number = calls.rows().chunk_by(|one, two| one.0 == two.0);
        for &(number, _, call) in same_number.filter(|rows| rows.len() > 1).flatten() {
            let process = lanes.place(events.lane(call)).process;
            processes.entry(number).or_default().insert(process);
            let process = Some(process);
            let mut add = |process, id| found.entry((number, process, id)).or_default().push(call);
            add(process, None);
            if let Some(id) = events.external_id(call) {
                add(process, Some(id));
                add(None, Some(id));
            }
        }
        Self { calls: found, processes }
    }

    /// For each process, returns the time from its last call with an id to `time_ns`; below 0 if
    /// all its calls began later.
    pub(super) fn nearest_of_processes(
        &self,
        number: i64,
        time_ns: i64,
        events: &EventTable,
    ) -> Vec<(StringId, i64)> {
        let after_ns = |&process: &StringId| {
            let calls = self.calls.get(&(number, Some(process), None))?;
            let before = calls.partition_point(|&call| events.start_ns(call) <= time_ns);
            Some((process, time_ns - events.start_ns(calls[before.saturating_sub(1)])))
        };
        self.processes.get(&number).into_iter().flatten().filter_map(after_ns).collect()
    }

    /// Calls of the process that launches on the device come first, then those with the external id
    /// of the activity. Of these, the last that began by then is chosen, otherwise the first.
    pub(super) fn choose(
        &self,
        all: &[(i64, i64, EventId)],
        work: EventId,
        home: Option<StringId>,
        events: &EventTable,
    ) -> EventId {
        let (number, id) = (all[0].0, events.external_id(work));
        let with = |process, id| self.calls.get(&(number, process, id));
        let at_home = home.and_then(|_| with(home, None));
        let same_id = id.and_then(|_| with(home.filter(|_| at_home.is_some()), id));
        let time_ns = events.start_ns(work);
        match same_id.or(at_home) {
            Some(calls) => {
                let before = calls.partition_point(|&call| events.start_ns(call) <= time_ns);
                calls[before.saturating_sub(1)]
            }
            None => all[all.partition_point(|row| row.1 <= time_ns).saturating_sub(1)].2,
        }
    }
}
