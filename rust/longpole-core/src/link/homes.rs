//! Which process launches on a device, for files that hold several ranks with the same numbers.

use std::collections::{BTreeMap, HashMap};

use super::calls::Calls;
use super::reused::Reused;
use crate::ids::{EventId, StringId};
use crate::tables::{EventTable, LaneTable, Tables};

/// The process that launches on each device, as far as links agree on one. Files that hold
/// several ranks have the same numbers in each.
pub(super) struct Homes {
    process: HashMap<Device, Option<StringId>>,
}

/// A device, as its work names it.
type Device = (StringId, Option<i64>);

/// What speaks for a process: how many links only it allows, for how many its calls began too
/// late, and how long before the work they began.
type Vote = (usize, usize, i64);

impl Homes {
    pub(super) fn learn(tables: &Tables, calls: &Calls, reused: &Reused) -> Self {
        let (events, lanes) = (&tables.events, &tables.lanes);
        let mut votes: HashMap<Device, BTreeMap<StringId, Vote>> = HashMap::new();
        for work in events.ids().filter(|&event| events.kind(event).is_device_work()) {
            let place = lanes.place(events.lane(work));
            let nearest = nearest_of_processes(work, tables, calls, reused);
            let is_only = nearest.len() == 1;
            for (process, after_ns) in nearest {
                let votes = votes.entry((place.process, place.device)).or_default();
                let vote = votes.entry(process).or_default();
                vote.0 += usize::from(is_only);
                vote.1 += usize::from(after_ns < 0);
                vote.2 = vote.2.saturating_add(after_ns.max(0));
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

/// How long after the last call with its number in each process work began; less than 0 where
/// all of them began later.
fn nearest_of_processes(
    work: EventId,
    tables: &Tables,
    calls: &Calls,
    reused: &Reused,
) -> Vec<(StringId, i64)> {
    let (events, lanes) = (&tables.events, &tables.lanes);
    let start_ns = events.start_ns(work);
    match calls.with_number_of(work, events) {
        [] => Vec::new(),
        [(_, called_ns, call)] => {
            vec![(lanes.place(events.lane(*call)).process, start_ns - called_ns)]
        }
        [(number, ..), ..] => reused.nearest_of_processes(*number, start_ns, events),
    }
}

/// The process that alone allows some links and no other does; where all share their numbers, the
/// one whose calls begin before the work, and sooner before it.
fn home(votes: &BTreeMap<StringId, Vote>) -> Option<StringId> {
    let mut with_links = votes.iter().filter(|(_, vote)| vote.0 > 0);
    match (with_links.next(), with_links.next()) {
        (Some((&process, _)), None) => Some(process),
        (Some(_), Some(_)) => None,
        (None, _) => {
            let fit = |(_, vote): &(&StringId, &Vote)| (vote.1, vote.2);
            let best = votes.iter().min_by_key(fit)?;
            let n_best = votes.iter().filter(|it| fit(it) == fit(&best)).count();
            (n_best == 1).then_some(*best.0)
        }
    }
}
