//! Pairs each backward thread with the forward thread that waits for it.
//!
//! PyTorch runs backward passes on separate threads, and no correlation id records which forward
//! thread waits for them. The evidence is the arrows from forward to backward operators or, in old
//! layouts, the operators of threads without steps. A backward thread has one partner; if several
//! forward threads have arrows to it, the one with the most arrows is used.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use crate::ids::{EventId, InColumn, LaneId, StringId};
use crate::tables::{ArgTable, ArgValue, EventKind, EventTable, FlowTable, Tables, track};
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

// Links each operator of a backward pass to the forward operator that it differentiates.
//
// Forward operators record the sequence number of the next autograd node. The operators of that
// node in the backward pass record the same number with a `Fwd thread id`. The node belongs to the
// last forward operator that began with its number. Thread ids are counted separately: the forward
// thread is the one with most of the numbers, so two threads that run the same model at the same
// time may be confused.

/// An operator of a backward pass and its forward operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackwardLink {
    /// The operator in the backward pass.
    pub backward: EventId,
    /// The operator that created the autograd node.
    pub forward: EventId,
}

/// Returns every operator of a backward pass whose forward operator is in the trace, in file order.
pub fn backward_links(tables: &Tables) -> Vec<BackwardLink> {
    let (forward, backward) = numbered(tables);
    let threads = forward_threads(&forward, &backward, tables);
    let link = |node: &Numbered| {
        let lane = *threads.get(&(node.process, node.forward_thread))?;
        let began = tables.events.start_ns(node.event);
        let last = last_before(&forward, (node.process, node.number, lane), began, &tables.events)?;
        Some(BackwardLink { backward: node.event, forward: last })
    };
    backward.iter().filter_map(link).collect()
}

/// An operator with a sequence number; `forward_thread` is 0 in the forward pass.
#[derive(Clone, Copy)]
struct Numbered {
    process: StringId,
    number: i64,
    forward_thread: i64,
    lane: LaneId,
    event: EventId,
}

/// Returns the forward operators, sorted by process, number, thread and time, and the operators of
/// backward passes, by event.
fn numbered(tables: &Tables) -> (Vec<Numbered>, Vec<Numbered>) {
    let (mut forward, mut backward) = (Vec::new(), Vec::new());
    for (_, args) in tables.args.iter() {
        for row in rows_with_numbers(args, tables) {
            let list = if row.forward_thread == 0 { &mut forward } else { &mut backward };
            list.push(row);
        }
    }
    let events = &tables.events;
    forward.sort_by_key(|row| {
        let spans = (events.start_ns(row.event), Reverse(events.end_ns(row.event)));
        (row.process, row.number, row.lane, spans, events.position(row.event))
    });
    backward.sort_by_key(|row| row.event);
    (forward, backward)
}

fn rows_with_numbers<'a>(
    args: &'a ArgTable,
    tables: &'a Tables,
) -> impl Iterator<Item = Numbered> + 'a {
    let (numbers, threads) = (args.column("Sequence number"), args.column("Fwd thread id"));
    let numbered = move |(row, event): (usize, EventId)| {
        let is_operator = tables.events.kind(event) == EventKind::Operator;
        let number = numbers?.integer(row).filter(|&number| is_operator && number >= 0)?;
        let lane = tables.events.lane(event);
        let forward_thread = threads.and_then(|column| column.integer(row)).unwrap_or(0);
        let process = tables.lanes.place(lane).process;
        Some(Numbered { process, number, forward_thread, lane, event })
    };
    args.events().enumerate().filter_map(numbered)
}

/// Returns the thread for each forward thread id: the one with most of its numbers.
fn forward_threads(
    forward: &[Numbered],
    backward: &[Numbered],
    tables: &Tables,
) -> HashMap<(StringId, i64), LaneId> {
    let mut votes: BTreeMap<_, BTreeMap<LaneId, u64>> = BTreeMap::new();
    for node in backward {
        let key = (node.process, node.number);
        let first = forward.partition_point(|row| (row.process, row.number) < key);
        let same = forward[first..].iter().take_while(|row| (row.process, row.number) == key);
        let mut last = None;
        for row in same.filter(|row| last.replace(row.lane) != Some(row.lane)) {
            let of_id = votes.entry((node.process, node.forward_thread)).or_default();
            *of_id.entry(row.lane).or_default() += 1;
        }
    }
    let most = |votes: BTreeMap<LaneId, u64>| {
        let strength = |&(lane, count): &(LaneId, u64)| (count, Reverse(track(lane, tables)));
        votes.into_iter().max_by_key(strength).map(|(lane, _)| lane)
    };
    votes.into_iter().filter_map(|(id, votes)| Some((id, most(votes)?))).collect()
}

/// Of the forward operators with a process, number and thread, returns the last that began by
/// `began_ns`.
fn last_before(
    forward: &[Numbered],
    key: (StringId, i64, LaneId),
    began_ns: i64,
    events: &EventTable,
) -> Option<EventId> {
    let of = |row: &Numbered| (row.process, row.number, row.lane);
    let behind =
        forward.partition_point(|row| (of(row), events.start_ns(row.event)) <= (key, began_ns));
    let last = forward[..behind].last().filter(|row| of(row) == key)?;
    Some(last.event)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::{Options, read_bytes};

    /// Links operators given as `(thread, start, end, sequence number, forward thread)`, as pairs
    /// of rows.
    fn links(rows: &[(i64, i64, i64, i64, i64)]) -> Vec<(usize, usize)> {
        let events: Vec<_> = rows
            .iter()
            .map(|(thread, start, end, number, forward)| {
                format!(
                    r#"{{"ph":"X","cat":"cpu_op","name":"n","pid":1,"tid":{thread},"ts":{start},"dur":{},
                    "args":{{"Sequence number":{number},"Fwd thread id":{forward}}}}}"#,
                    end - start
                )
            })
            .collect();
        let text = format!("[{}]", events.join(","));
        let tables = read_bytes(text.as_bytes(), &Options::default()).unwrap();
        let pair = |link: BackwardLink| (link.backward.row(), link.forward.row());
        backward_links(&tables).into_iter().map(pair).collect()
    }

    #[test]
    fn the_last_operator_that_began_with_the_number_made_the_node() {
        let linear = [(1, 0, 10, 7, 0), (1, 2, 4, 7, 0), (1, 5, 9, 8, 0)];
        let backward = [(2, 20, 30, 8, 1), (2, 21, 29, 8, 1), (2, 30, 40, 7, 1)];
        assert_eq!(links(&[linear, backward].concat()), [(3, 2), (4, 2), (5, 1)]);
    }

    #[test]
    fn the_forward_thread_is_the_one_with_most_of_the_numbers() {
        let rows = [(1, 0, 1, 7, 0), (1, 1, 2, 8, 0), (3, 0, 1, 8, 0), (2, 9, 10, 7, 1)];
        assert_eq!(links(&[&rows[..], &[(2, 11, 12, 8, 1)]].concat()), [(3, 0), (4, 1)]);
    }

    #[test]
    fn a_node_without_its_forward_pass_has_no_link() {
        assert_eq!(links(&[(2, 0, 10, 7, 1), (1, 20, 30, 7, 0), (1, 30, 40, -1, 0)]), []);
    }
}
