//! Finds the positions in a thread of the trace that match the operators of an execution trace.
//!
//! Both files list operators in the order in which they began, but if several began at the same
//! timestamp, only the execution trace records their order. The events of one timestamp are
//! therefore compared as a set, and the nesting in the execution trace distinguishes operators of
//! the same name.
//!
//! Sets are compared by sums of hashes of their names, one number per timestamp. A position is
//! rejected at the first timestamp that differs. The total number of comparisons is limited in
//! proportion to the number of events; only long repetitions of names, each with other names at the
//! same timestamp, exceed the limit.

use std::collections::{HashMap, VecDeque};

use crate::ids::{EventId, InColumn, StringId};
use crate::tables::{ExecutionTrace, Tables};
use crate::vocabulary::EventKind;

/// Maximum number of comparisons per event and node.
const MOST_COMPARISONS: usize = 1_000;

/// The nodes of one thread, in the order in which they began.
pub(super) struct Thread {
    rows: Vec<usize>,
    names: Vec<StringId>,
    /// For each node, the index of its parent; `None` if the parent is not a node of this thread.
    around: Vec<Option<usize>>,
    /// Prefix sums of the hashes of the nodes.
    sums: Vec<u64>,
}

impl Thread {
    /// Creates a thread from its nodes, given as rows and as names of the trace.
    pub(super) fn of(nodes: Vec<(usize, StringId)>, trace: &ExecutionTrace) -> Self {
        let (rows, names): (Vec<_>, Vec<_>) = nodes.into_iter().unzip();
        let place = |parent: usize| rows.binary_search(&parent).ok();
        let around = rows.iter().map(|&row| trace.parent(row).and_then(place)).collect();
        let sums = sums(names.iter().map(|&name| hash(Some(name))));
        Self { rows, names, around, sums }
    }

    /// Returns the rows of its nodes.
    pub(super) fn rows(&self) -> &[usize] {
        &self.rows
    }

    /// Returns the indices of a range of nodes that all began at one timestamp: first the last of
    /// them and its parents, outermost first, because only these can have a duration; then the
    /// nodes that had already ended.
    fn longest_first(&self, from: usize, until: usize) -> Vec<usize> {
        let mut lasts = vec![false; until - from];
        let mut next = Some(until - 1);
        while let Some(place) = next.filter(|&place| place >= from) {
            lasts[place - from] = true;
            next = self.around[place].filter(|&around| around < place);
        }
        let (mut found, over): (Vec<_>, Vec<_>) =
            (from..until).partition(|&place| lasts[place - from]);
        found.extend(over);
        found
    }
}

/// The events of one thread of the trace by timestamp; within a timestamp, longest first.
pub(super) struct Lane {
    events: Vec<EventId>,
    names: Vec<Option<StringId>>,
    /// Index of the first event of each timestamp, followed by the end index.
    stamps: Vec<usize>,
    /// Prefix sums of the hashes of events, by timestamp.
    sums: Vec<u64>,
}

impl Lane {
    /// Creates a lane from its events, which must be sorted.
    pub(super) fn of(events: Vec<EventId>, tables: &Tables) -> Self {
        let start_ns = |place: usize| tables.events.start_ns(events[place]);
        let begins = |&place: &usize| place == 0 || start_ns(place) != start_ns(place - 1);
        let stamps: Vec<_> = (0..events.len()).filter(begins).chain([events.len()]).collect();
        let names: Vec<_> = events.iter().map(|&event| tables.events.name(event)).collect();
        let all = sums(names.iter().map(|&name| hash(name)));
        let sums = stamps.iter().map(|&place| all[place]).collect();
        Self { events, names, stamps, sums }
    }

    fn n_stamps(&self) -> usize {
        self.stamps.len() - 1
    }

    fn length(&self, stamp: usize) -> usize {
        self.stamps[stamp + 1] - self.stamps[stamp]
    }

    fn pool(&self, stamp: usize) -> Pool {
        let mut pool = Pool::default();
        for place in self.stamps[stamp]..self.stamps[stamp + 1] {
            if let Some(name) = self.names[place] {
                pool.0.entry(name).or_default().push_back(self.events[place]);
            }
        }
        pool
    }
}

fn sums(hashes: impl Iterator<Item = u64>) -> Vec<u64> {
    let next = |sum: &mut u64, hash: u64| {
        *sum = sum.wrapping_add(hash);
        Some(*sum)
    };
    [0].into_iter().chain(hashes.scan(0, next)).collect()
}

/// Mixes the number of a name into 64 bits (the finalizer of `SplitMix64`), so that different sets
/// have different sums.
fn hash(name: Option<StringId>) -> u64 {
    let mut bits = name.map_or(0, |name| name.row() as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

/// The events of one timestamp that are not matched yet, by name; within a name, longest first.
#[derive(Default)]
struct Pool(HashMap<StringId, VecDeque<EventId>>);

impl Pool {
    /// Returns the number of these names, in order, that the pool contains before the first missing
    /// one.
    fn contains(&self, names: impl Iterator<Item = StringId>) -> usize {
        let mut taken: HashMap<StringId, usize> = HashMap::new();
        let mut is_left = |name: &StringId| {
            let taken = taken.entry(*name).or_default();
            *taken += 1;
            self.0.get(name).is_some_and(|events| events.len() >= *taken)
        };
        names.take_while(|name| is_left(name)).count()
    }

    /// Matches each node in a range with an event: of the events with its name, the first ones, or
    /// the last ones if the nodes that follow have the same timestamp.
    fn take(
        &mut self,
        thread: &Thread,
        (from, until): (usize, usize),
        is_last: bool,
        found: &mut [Option<EventId>],
    ) {
        let mut places = thread.longest_first(from, until);
        if is_last {
            places.reverse();
        }
        for place in places {
            let events = self.0.get_mut(&thread.names[place]);
            found[place] = events
                .and_then(|events| if is_last { events.pop_back() } else { events.pop_front() });
        }
    }
}

/// Returns every position in a lane that matches the operators of a thread, each with the events of
/// the nodes, and whether the search was exhaustive. Positions do not overlap: of two that would,
/// the earlier one is kept.
pub(super) fn fits(thread: &Thread, lane: &Lane) -> (Vec<Vec<EventId>>, bool) {
    fits_within(thread, lane, MOST_COMPARISONS)
}

/// Like [`fits`], with at most `most` comparisons per event and node.
fn fits_within(thread: &Thread, lane: &Lane, most: usize) -> (Vec<Vec<EventId>>, bool) {
    let n_comparisons = (lane.events.len() + thread.rows.len()).saturating_mul(most);
    Search { thread, lane, endings: HashMap::new(), n_comparisons }.run()
}

struct Search<'a> {
    thread: &'a Thread,
    lane: &'a Lane,
    /// For each timestamp already examined, how many of the last nodes can be matched by its
    /// events.
    endings: HashMap<usize, usize>,
    /// Number of comparisons left.
    n_comparisons: usize,
}

/// The end of a match: the first timestamp that is only partly used, and the number of nodes in it.
type Ending = (usize, usize);

impl Search<'_> {
    fn run(mut self) -> (Vec<Vec<EventId>>, bool) {
        let mut found = Vec::new();
        let (mut stamp, mut pool) = (0, None);
        while stamp < self.lane.n_stamps() && self.n_comparisons > 0 {
            let Some(mut left) = pool.take().or_else(|| self.pool_to_start_in(stamp)) else {
                stamp += 1;
                continue;
            };
            self.within(&mut left, &mut found);
            let most = left.contains(self.thread.names.iter().copied());
            let place = (1..=most).rev().find_map(|n| Some((n, self.follow(stamp + 1, n)?)));
            let Some((n_first, ending)) = place else {
                stamp += 1;
                continue;
            };
            let (events, rest) = self.taken(left, stamp, n_first, ending);
            found.extend(events);
            (stamp, pool) = (ending.0, rest);
        }
        (found, self.n_comparisons > 0)
    }

    /// Returns the events of a timestamp, if the first node can be one of them.
    fn pool_to_start_in(&self, stamp: usize) -> Option<Pool> {
        let time_range = self.lane.stamps[stamp]..self.lane.stamps[stamp + 1];
        let first = self.thread.names.first().copied();
        self.lane.names[time_range].contains(&first).then(|| self.lane.pool(stamp))
    }

    /// Matches all nodes within one timestamp, as often as possible.
    fn within(&self, pool: &mut Pool, found: &mut Vec<Vec<EventId>>) {
        let n_nodes = self.thread.names.len();
        while pool.contains(self.thread.names.iter().copied()) == n_nodes {
            let mut events = vec![None; n_nodes];
            pool.take(self.thread, (0, n_nodes), false, &mut events);
            found.extend(events.into_iter().collect::<Option<Vec<_>>>());
        }
    }

    /// Returns the end of a match whose first `n_first` nodes have been matched and whose next node
    /// is at the following timestamp.
    fn follow(&mut self, first_stamp: usize, n_first: usize) -> Option<Ending> {
        let (thread, lane) = (self.thread, self.lane);
        let n_nodes = thread.names.len();
        let until = *lane.stamps.get(first_stamp)? + n_nodes - n_first;
        let end_stamp = lane.stamps.partition_point(|&place| place <= until) - 1;
        let same = |stamp: usize, other: usize| {
            let node = |stamp: usize| n_first + lane.stamps[stamp] - lane.stamps[first_stamp];
            lane.sums[other].wrapping_sub(lane.sums[stamp])
                == thread.sums[node(other)].wrapping_sub(thread.sums[node(stamp)])
        };
        self.n_comparisons = self.n_comparisons.saturating_sub(1);
        if end_stamp < first_stamp || !same(first_stamp, end_stamp) {
            return None;
        }
        for stamp in first_stamp..end_stamp {
            self.n_comparisons = self.n_comparisons.saturating_sub(1);
            if self.n_comparisons == 0 || !same(stamp, stamp + 1) {
                return None;
            }
        }
        let n_last = until - lane.stamps[end_stamp];
        (n_last <= self.ending(end_stamp, n_last)).then_some((end_stamp, n_last))
    }

    /// Returns how many of the last nodes can be matched by the events of a timestamp.
    fn ending(&mut self, stamp: usize, n_last: usize) -> usize {
        if n_last == 0 || stamp == self.lane.n_stamps() {
            return 0;
        }
        let lasts = self.thread.names.iter().rev().copied();
        *self.endings.entry(stamp).or_insert_with(|| self.lane.pool(stamp).contains(lasts))
    }

    /// Returns the events of a match, and the events that it leaves at its last timestamp.
    fn taken(
        &self,
        mut first: Pool,
        stamp: usize,
        n_first: usize,
        (end_stamp, n_last): Ending,
    ) -> (Option<Vec<EventId>>, Option<Pool>) {
        let mut events = vec![None; self.thread.names.len()];
        first.take(self.thread, (0, n_first), false, &mut events);
        let mut from = n_first;
        for stamp in stamp + 1..end_stamp {
            let until = from + self.lane.length(stamp);
            if until - from == 1 {
                events[from] = Some(self.lane.events[self.lane.stamps[stamp]]);
            } else {
                self.lane.pool(stamp).take(self.thread, (from, until), false, &mut events);
            }
            from = until;
        }
        let rest = (n_last > 0).then(|| {
            let mut last = self.lane.pool(end_stamp);
            last.take(self.thread, (from, from + n_last), true, &mut events);
            last
        });
        (events.into_iter().collect(), rest)
    }
}

/// The names of the nodes as strings of the trace.
pub(super) struct Names {
    in_trace: Vec<Option<StringId>>,
}

impl Names {
    pub(super) fn of(trace: &ExecutionTrace, tables: &Tables) -> Self {
        let mut known = vec![None; trace.strings.len()];
        let mut look_up = |name: StringId| {
            *known[name.row()].get_or_insert_with(|| tables.strings.lookup(trace.strings.get(name)))
        };
        Self { in_trace: trace.nodes.iter().map(|node| look_up(node.name)).collect() }
    }

    /// Returns the name of a node as a string of the trace; `None` if the trace has no such string.
    pub(super) fn in_trace(&self, row: usize) -> Option<StringId> {
        self.in_trace[row]
    }

    /// Whether a node and an event have the same name.
    pub(super) fn agree(&self, row: usize, event: EventId, tables: &Tables) -> bool {
        self.in_trace[row].is_some() && self.in_trace[row] == tables.events.name(event)
    }
}

/// Returns the events to which nodes can be linked, in an order that does not depend on the file.
pub(super) fn candidates(tables: &Tables) -> Vec<EventId> {
    let events = &tables.events;
    let is_candidate = |event: &EventId| {
        matches!(events.kind(*event), EventKind::Operator | EventKind::Annotation)
            && events.end_ns(*event).is_some()
    };
    let mut found: Vec<_> = events.ids().filter(is_candidate).collect();
    found.sort_by_cached_key(|&event| {
        let end = events.end_ns(event).map(std::cmp::Reverse);
        let id = events.external_id(event).in_column();
        (events.start_ns(event), end, id, events.kind(event), events.position(event))
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(thread: &Thread, lane: &Lane) -> Vec<Vec<EventId>> {
        super::fits(thread, lane).0
    }

    fn thread(names: &[usize], around: &[Option<usize>]) -> Thread {
        let names: Vec<_> = names.iter().map(|&name| StringId::from_row(name)).collect();
        let sums = sums(names.iter().map(|&name| hash(Some(name))));
        Thread { rows: (0..names.len()).collect(), names, around: around.to_vec(), sums }
    }

    fn flat(names: &[usize]) -> Thread {
        thread(names, &vec![None; names.len()])
    }

    /// Returns a lane with the given names at each timestamp; events are numbered consecutively.
    fn lane(of_stamps: &[Vec<usize>]) -> Lane {
        let names = of_stamps.iter().flatten().map(|&name| Some(StringId::from_row(name)));
        let names: Vec<_> = names.collect();
        let mut stamps = vec![0];
        stamps.extend(of_stamps.iter().scan(0, |sum, names| {
            *sum += names.len();
            Some(*sum)
        }));
        let all = sums(names.iter().map(|&name| hash(name)));
        let sums = stamps.iter().map(|&place| all[place]).collect();
        let events = (0..names.len()).map(EventId::from_row).collect();
        Lane { events, names, stamps, sums }
    }

    fn rows(fits: &[Vec<EventId>]) -> Vec<Vec<usize>> {
        fits.iter().map(|fit| fit.iter().map(|event| event.row()).collect()).collect()
    }

    /// Returns all permutations of the elements.
    fn orders(of: &[usize]) -> Vec<Vec<usize>> {
        if of.is_empty() {
            return vec![Vec::new()];
        }
        let rest_of = |at: usize| [&of[..at], &of[at + 1..]].concat();
        let begun = |at: usize| {
            let rests = orders(&rest_of(at)).into_iter();
            rests.map(move |rest| [vec![of[at]], rest].concat())
        };
        (0..of.len()).flat_map(begun).collect()
    }

    /// Whether the names occur consecutively in some order of the events of each timestamp.
    fn occurs(names: &[usize], of_stamps: &[Vec<usize>]) -> bool {
        let longer = |begun: Vec<Vec<usize>>, stamp: &Vec<usize>| {
            let ends = orders(stamp);
            let pairs = begun.iter().flat_map(|begun| ends.iter().map(move |end| (begun, end)));
            pairs.map(|(begun, end)| [begun.clone(), end.clone()].concat()).collect()
        };
        let texts: Vec<Vec<usize>> = of_stamps.iter().fold(vec![Vec::new()], longer);
        texts.iter().any(|text| text.windows(names.len()).any(|window| window == names))
    }

    /// Returns a pseudo-random number below a bound.
    fn next(state: &mut u64, below: u64) -> usize {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        usize::try_from((*state >> 33) % below).unwrap()
    }

    #[test]
    fn a_place_is_found_where_some_order_of_each_stamp_has_the_names_together() {
        for seed in 1..3_000_u64 {
            let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let below = 2 + seed % 2;
            let names: Vec<_> =
                (0..=next(&mut state, 5)).map(|_| next(&mut state, below)).collect();
            let of_stamps: Vec<Vec<_>> = (0..=next(&mut state, 4))
                .map(|_| (0..=next(&mut state, 3)).map(|_| next(&mut state, below)).collect())
                .collect();
            let lane = lane(&of_stamps);
            let found = fits(&flat(&names), &lane);
            assert_eq!(!found.is_empty(), occurs(&names, &of_stamps), "{names:?} {of_stamps:?}");
            for fit in &found {
                let theirs: Vec<_> = fit.iter().map(|event| lane.names[event.row()]).collect();
                assert!(theirs.iter().flatten().map(|name| name.row()).eq(names.iter().copied()));
            }
            let mut all: Vec<_> = found.iter().flatten().collect();
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), found.len() * names.len(), "no event is taken twice");
        }
    }

    #[test]
    fn of_one_name_and_stamp_the_longest_event_is_the_outer_node() {
        // Event 0 is the longest. Node 0 had ended when node 1, the parent of node 2, began.
        let found =
            fits(&thread(&[5, 5, 6], &[None, None, Some(1)]), &lane(&[vec![5, 5], vec![6]]));
        assert_eq!(rows(&found), [[1, 0, 2]]);
    }

    #[test]
    fn a_place_that_begins_and_ends_within_a_stamp_leaves_the_rest_to_its_neighbours() {
        let of_stamps = [vec![9, 1], vec![2], vec![1, 3], vec![2], vec![3, 9]];
        assert_eq!(rows(&fits(&flat(&[1, 2, 3]), &lane(&of_stamps))), [[1, 2, 4], [3, 5, 6]]);
    }

    #[test]
    fn names_in_another_order_at_different_stamps_do_not_fit() {
        assert!(fits(&flat(&[1, 2, 3]), &lane(&[vec![1], vec![3], vec![2]])).is_empty());
        assert_eq!(rows(&fits(&flat(&[1, 2, 3]), &lane(&[vec![1], vec![3, 2]]))), [[0, 2, 1]]);
    }

    #[test]
    fn the_number_of_comparisons_grows_with_the_events() {
        let n = 100_000;
        let one_stamp: Vec<_> = (0..n).map(|place| place % 5).collect();
        let forward: Vec<_> = (0..n).map(|place| (place * 3) % 5).collect();
        assert_eq!(fits(&flat(&forward), &lane(std::slice::from_ref(&one_stamp))).len(), 1);
        assert_eq!(fits(&flat(&[0, 1, 2]), &lane(std::slice::from_ref(&one_stamp))).len(), n / 5);
        // Half of the names at each of two timestamps, so that a match may begin at every position.
        let same = vec![1; n / 2];
        let names = [same.clone(), same.clone(), vec![2]].concat();
        assert!(fits(&flat(&names), &lane(&[same.clone(), same.clone(), vec![3]])).is_empty());
        // Every second position has the same names and differs only in the middle.
        let halves = [[1, 2].repeat(n / 8), vec![1, 1, 1, 2, 2, 2], [1, 2].repeat(n / 8)];
        assert!(fits(&flat(&halves.concat()), &lane(&vec![vec![1, 2]; n / 2])).is_empty());
        // Every second position matches for long and fails at the end.
        let pairs = vec![vec![1, 2]; n / 2];
        let mut other = pairs.clone();
        other[n / 2 - 1] = vec![2, 3];
        let names = [[1, 2].repeat(n / 4), vec![3, 1]].concat();
        assert!(fits(&flat(&names), &lane(&other)).is_empty());
    }

    #[test]
    fn a_search_that_was_stopped_says_so() {
        // Every second position has the same names and differs only in the middle.
        let halves = [[1, 2].repeat(99), vec![1, 1, 1, 2, 2, 2], [1, 2].repeat(99)].concat();
        let lane = lane(&vec![vec![1, 2]; 400]);
        assert_eq!(fits_within(&flat(&halves), &lane, 1), (Vec::new(), false));
        assert_eq!(fits_within(&flat(&halves), &lane, 1_000), (Vec::new(), true));
    }
}
