//! Which call launched an activity if several have its correlation id: by process, for files that
//! contain several ranks with the same ids, and by time.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::calls::Calls;
use crate::ids::{EventId, StringId};
use crate::tables::{EventTable, LaneTable, Tables};

/// The process that launches on each device, if the links agree on one. Files that contain several
/// ranks have the same ids in each.
pub(super) struct Homes {
    process: HashMap<Device, Option<StringId>>,
}

/// A device, as recorded on its activities.
type Device = (StringId, Option<i64>);

/// The evidence for each process.
type Votes = BTreeMap<StringId, Vote>;

/// The evidence for a process.
#[derive(Clone, Default)]
struct Vote {
    /// Number of links that only this process allows.
    n_only: usize,
    /// Number of links for which its calls began too late.
    n_late: usize,
    /// Total time from its calls to the activities.
    lead_ns: i64,
}

impl Vote {
    fn add(&mut self, is_only: bool, after_ns: i64) {
        self.n_only += usize::from(is_only);
        self.n_late += usize::from(after_ns < 0);
        self.lead_ns = self.lead_ns.saturating_add(after_ns.max(0));
    }

    fn join(&mut self, other: &Self) {
        self.n_only += other.n_only;
        self.n_late += other.n_late;
        self.lead_ns = self.lead_ns.saturating_add(other.lead_ns);
    }
}

impl Homes {
    pub(super) fn learn(tables: &Tables, calls: &Calls, reused: &Reused) -> Self {
        let (events, lanes) = (&tables.events, &tables.lanes);
        let mut votes_of_lane: Vec<Votes> = vec![Votes::new(); lanes.len()];
        for work in events.ids().filter(|&event| events.kind(event).is_device_work()) {
            let votes = &mut votes_of_lane[events.lane(work).row()];
            let start_ns = events.start_ns(work);
            match calls.with_number_of(work, events) {
                [] => {}
                &[(_, called_ns, call)] => {
                    let process = lanes.place(events.lane(call)).process;
                    votes.entry(process).or_default().add(true, start_ns - called_ns);
                }
                &[(number, ..), ..] => {
                    let nearest = reused.nearest_of_processes(number, start_ns, events);
                    let is_only = nearest.len() == 1;
                    for (process, after_ns) in nearest {
                        votes.entry(process).or_default().add(is_only, after_ns);
                    }
                }
            }
        }
        let mut votes: HashMap<Device, Votes> = HashMap::new();
        for (place, of_lane) in lanes.places().iter().zip(&votes_of_lane) {
            for (&process, vote) in of_lane {
                let of_device = votes.entry((place.process, place.device)).or_default();
                of_device.entry(process).or_default().join(vote);
            }
        }
        Self { process: votes.into_iter().map(|(device, votes)| (device, home(&votes))).collect() }
    }

    pub(super) fn of(
        &self,
        work: EventId,
        events: &EventTable,
        lanes: &LaneTable,
    ) -> Option<StringId> {
        let place = lanes.place(events.lane(work));
        *self.process.get(&(place.process, place.device))?
    }
}

/// Returns the process that is the only one to allow some links; if all share their ids, the one
/// whose calls begin before the activities, and closest to them.
fn home(votes: &Votes) -> Option<StringId> {
    let mut with_links = votes.iter().filter(|(_, vote)| vote.n_only > 0);
    match (with_links.next(), with_links.next()) {
        (Some((&process, _)), None) => Some(process),
        (Some(_), Some(_)) => None,
        (None, _) => {
            let fit = |(_, vote): &(&StringId, &Vote)| (vote.n_late, vote.lead_ns);
            let best = votes.iter().min_by_key(fit)?;
            let n_best = votes.iter().filter(|it| fit(it) == fit(&best)).count();
            (n_best == 1).then_some(*best.0)
        }
    }
}

// Determines which of several calls with one correlation id launched an activity.
//
// A trace may give one id to all calls. The call is therefore found by binary search among the
// calls of one process, or with one external id, instead of checking every call.

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
