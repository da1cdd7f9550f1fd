//! Which process launches on each device, for files that contain several ranks with the same ids.

use std::collections::{BTreeMap, HashMap};

use super::calls::Calls;
use super::reused::Reused;
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
