//! Links each operator of a backward pass to the forward operator that it differentiates.
//!
//! Forward operators record the sequence number of the next autograd node. The operators of that
//! node in the backward pass record the same number with a `Fwd thread id`. The node belongs to the
//! last forward operator that began with its number. Thread ids are counted separately: the forward
//! thread is the one with most of the numbers, so two threads that run the same model at the same
//! time may be confused.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use crate::ids::{EventId, LaneId, StringId};
use crate::tables::{ArgTable, EventKind, EventTable, Tables, track};

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
