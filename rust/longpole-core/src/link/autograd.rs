//! Pairs each backward thread with the forward thread that waits for it.
//!
//! PyTorch runs backward passes on separate threads, and no correlation id records which forward
//! thread waits for them. The evidence is the arrows from forward to backward operators or, in old
//! layouts, the operators of threads without steps. A backward thread has one partner; if several
//! forward threads have arrows to it, the one with the most arrows is used.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use crate::ids::{InColumn, LaneId, StringId};
use crate::tables::{ArgValue, EventKind, FlowTable, Tables, track};
use crate::vocabulary::{is_backward_node, is_engine_work};

/// A backward thread, and the forward thread that waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct AutogradPair {
    /// The thread that runs the forward pass and calls `backward`.
    pub forward: LaneId,
    /// The thread that runs the backward pass.
    pub backward: LaneId,
}

/// Returns the pairs of forward and backward threads, each backward thread once.
///
/// A backward thread is one to which arrows from forward operators of another thread lead, or that
/// runs operators of the autograd engine. A main thread is never a backward thread, because it runs
/// the backward operators of CPU models itself. The forward thread is the one from which most
/// arrows come (of several the main thread, otherwise the one with the first arrow), or without
/// arrows the main thread of the process.
pub fn autograd_pairs(tables: &Tables, is_main: &[bool]) -> Vec<AutogradPair> {
    let main_of: HashMap<_, _> = lanes(tables)
        .filter(|lane| is_main[lane.row()])
        .map(|lane| (tables.lanes.place(lane).process, lane))
        .collect();
    let mut callers = callers(tables);
    for engine in engines(tables) {
        callers.entry(engine).or_default();
    }
    callers
        .into_iter()
        .filter(|(engine, _)| !is_main[engine.row()])
        .filter_map(|(backward, votes)| {
            let main = *main_of.get(&tables.lanes.place(backward).process)?;
            let forward = most_votes(&votes, main, tables).unwrap_or(main);
            Some(AutogradPair { forward, backward })
        })
        .collect()
}

fn lanes(tables: &Tables) -> impl Iterator<Item = LaneId> {
    (0..tables.lanes.len()).map(LaneId::from_row)
}

/// Number of arrows from a thread, and the time of the first.
#[derive(Clone, Copy, Default)]
struct Votes {
    count: u64,
    first_ns: i64,
}

/// Returns the arrows to each thread, by the thread from which they come.
fn callers(tables: &Tables) -> BTreeMap<LaneId, BTreeMap<LaneId, Votes>> {
    let flows = &tables.flows;
    let ends = Ends::of(tables);
    let mut callers: BTreeMap<LaneId, BTreeMap<LaneId, Votes>> = BTreeMap::new();
    for &(key, _, row) in &ends.finishes {
        let Some(start) = ends.start_of(key, flows.time_ns(row)) else { continue };
        let (source, target) = (ends.thread_of(start, flows), ends.thread_of(row, flows));
        if let (Some(source), Some(target)) = (source, target)
            && source != target
        {
            let start_ns = flows.time_ns(start);
            let first = Votes { count: 0, first_ns: start_ns };
            let votes = callers.entry(target).or_default().entry(source).or_insert(first);
            votes.count += 1;
            votes.first_ns = votes.first_ns.min(start_ns);
        }
    }
    callers
}

/// Returns the thread with the most votes. Thread numbers decide only between otherwise equal
/// threads.
fn most_votes(votes: &BTreeMap<LaneId, Votes>, main: LaneId, tables: &Tables) -> Option<LaneId> {
    let strength = |&(&lane, votes): &(&LaneId, &Votes)| {
        let numbers = Reverse(track(lane, tables));
        (votes.count, lane == main, Reverse(votes.first_ns), numbers)
    };
    votes.iter().max_by_key(strength).map(|(&lane, _)| lane)
}

fn engines(tables: &Tables) -> impl Iterator<Item = LaneId> + '_ {
    let is_engine_work = tables.strings.matching(is_engine_work);
    let is_node = tables.strings.matching(is_backward_node);
    let is_old = tables.strings.matching(EventKind::is_old_category);
    let events = &tables.events;
    let is_old = move |event| events.category(event).is_some_and(|category| is_old[category.row()]);
    let runs_backward = move |event, name: StringId| {
        is_engine_work[name.row()] || (is_node[name.row()] && is_old(event))
    };
    events
        .ids()
        .filter(move |&event| {
            events.kind(event) == EventKind::Operator
                && events.end_ns(event).is_some()
                && events.name(event).is_some_and(|name| runs_backward(event, name))
        })
        .map(|event| events.lane(event))
}

/// Identifies an arrow: its process and its id.
type Key = (StringId, i64);

/// The endpoints of all arrows from forward to backward operators.
struct Ends {
    starts: Vec<(Key, i64, usize)>,
    finishes: Vec<(Key, i64, usize)>,
    thread: HashMap<(StringId, StringId), LaneId>,
}

impl Ends {
    fn of(tables: &Tables) -> Self {
        let flows = &tables.flows;
        let category = tables.strings.lookup("fwdbwd");
        let is_handover: Vec<_> = match category {
            Some(category) => flows
                .column(|source| source.category)
                .map(|it| it == Some(category).in_column())
                .collect(),
            None => Vec::new(),
        };
        let of_phase = |phase: u8| {
            let key = |row: usize| match flows.id.get(row) {
                Some(ArgValue::Integer(number)) => Some((flows.source(row).process, number)),
                _ => None,
            };
            let mut rows: Vec<_> = (0..is_handover.len())
                .filter(|&row| is_handover[row] && flows.phase[row] == phase)
                .filter_map(|row| Some((key(row)?, flows.time_ns(row), row)))
                .collect();
            rows.sort_unstable();
            rows
        };
        let thread = lanes(tables)
            .map(|lane| (lane, tables.lanes.place(lane)))
            .filter(|(_, place)| place.device.is_none() && place.stream.is_none())
            .map(|(lane, place)| ((place.process, place.thread), lane))
            .collect();
        Self { starts: of_phase(b's'), finishes: of_phase(b'f'), thread }
    }

    /// Of the starts with a key, returns the last by `time_ns`, otherwise the first.
    fn start_of(&self, key: Key, time_ns: i64) -> Option<usize> {
        let first = self.starts.partition_point(|start| start.0 < key);
        let behind = self.starts.partition_point(|start| (start.0, start.1) <= (key, time_ns));
        let row = behind.saturating_sub(1).max(first);
        self.starts.get(row).filter(|start| start.0 == key).map(|&(_, _, row)| row)
    }

    fn thread_of(&self, row: usize, flows: &FlowTable) -> Option<LaneId> {
        let source = flows.source(row);
        self.thread.get(&(source.process, source.thread)).copied()
    }
}
