//! Repeating sequences of GPU activities, for programs without annotations.
//!
//! A cycle of kernels is not always an iteration: a model of equal layers repeats once per layer.

use std::collections::HashMap;

use super::model::Moment;
use crate::ids::EventId;
use crate::link::Launches;
use crate::tables::Tables;

/// Maximum number of activities searched for a cycle, because each cycle length is tried on all of
/// them.
const MOST_SEARCHED: usize = 20_000;

/// The shortest cycle whose match is within this of the best is used.
const NEARLY_BEST: f64 = 0.02;

/// Minimum match of a cycle.
const LEAST_MATCH: f64 = 0.6;

/// Minimum number of consecutive repetitions.
const FEWEST_REPETITIONS: usize = 3;

/// At most one mismatch in this many activities.
const MISSES_ONE_IN: i64 = 10;

/// Minimum share of all activities that the cycle must cover.
const LEAST_COVER: f64 = 0.8;

/// The repetitions on a device: the launches that begin each of them, except the end of the last;
/// the activities themselves if no launch is recorded.
pub(super) struct Cycle {
    pub(super) moments: Vec<Moment>,
    /// Number of repetitions whose launch is missing.
    pub(super) n_unlaunched: usize,
}

/// Finds the cycle on the stream with the most activities.
pub(super) fn cycle(tables: &Tables, launches: &Launches) -> Option<Cycle> {
    let works = busiest_stream(tables);
    let names: Vec<_> = works
        .iter()
        .map(|&work| tables.events.name(work).map_or(0, |name| name.row() + 1))
        .collect();
    let length = shortest_cycle(&names[..names.len().min(MOST_SEARCHED)])?;
    let (first, behind) = longest_time_range(&names, length);
    #[allow(clippy::cast_precision_loss)] // a share
    let cover = (behind - first) as f64 / names.len() as f64;
    if behind - first < FEWEST_REPETITIONS * length || cover < LEAST_COVER {
        return None;
    }
    let (first, behind) = largest_group(&works, &names, (first, behind), length, tables);
    let beginning = once_each(&names[first..behind], length)?;
    let begins: Vec<_> = (first..behind).filter(|&place| names[place] == beginning).collect();
    let calls = begins.iter().filter_map(|&place| launches.launcher(works[place]));
    let mut moments: Vec<_> = calls.map(Moment::Start).collect();
    if !works.iter().any(|&work| launches.launcher(work).is_some()) {
        let starts: Vec<_> = begins.iter().map(|&place| works[place]).collect();
        if !fills_trace(&starts, tables) {
            return None;
        }
        moments = starts.into_iter().map(Moment::Start).collect();
    }
    let n_unlaunched = begins.len() - moments.len();
    moments.dedup();
    (moments.len() > FEWEST_REPETITIONS).then_some(Cycle { moments, n_unlaunched })
}

/// Returns the range of a cycle. If no activity comes about once in each repetition, these are
/// groups of different activities, one after another: of them, the one that takes most time.
fn largest_group(
    works: &[EventId],
    names: &[usize],
    (first, behind): (usize, usize),
    length: usize,
    tables: &Tables,
) -> (usize, usize) {
    let of_all = &names[first..behind];
    let n_repetitions = (of_all.len() + length / 2) / length;
    let n_begun = once_each(of_all, length)
        .map_or(0, |beginning| of_all.iter().filter(|&&name| name == beginning).count());
    if 4 * n_begun >= 3 * n_repetitions {
        return (first, behind);
    }
    let differs = |&place: &usize| names[place] != names[place + length];
    let ends = (first..behind - length).filter(differs).map(|place| place + 1);
    let starts: Vec<_> = std::iter::once(first).chain(ends).collect();
    let ends = starts[1..].iter().map(|&start| start - 1 + length).chain([behind]);
    let groups = starts.iter().copied().zip(ends);
    let repeats = |group: &(usize, usize)| group.1 - group.0 >= FEWEST_REPETITIONS * length;
    let time_ns = |&(start, end): &(usize, usize)| {
        let lengths_ns = works[start..end].iter().filter_map(|&it| tables.events.duration_ns(it));
        lengths_ns.fold(0, i64::saturating_add)
    };
    groups.filter(repeats).max_by_key(time_ns).unwrap_or((first, behind))
}

/// Whether repetitions of the median length would fill half of the time of all GPU activities.
/// Without launches nothing else shows that the program repeats, and not only a part of it.
fn fills_trace(begins: &[EventId], tables: &Tables) -> bool {
    let events = &tables.events;
    let starts: Vec<_> = begins.iter().map(|&work| events.start_ns(work)).collect();
    let mut lengths_ns: Vec<_> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    lengths_ns.sort_unstable();
    let Some(&median_ns) = lengths_ns.get(lengths_ns.len() / 2) else { return false };
    let works = || events.ids().filter(|&event| events.kind(event).is_device_work());
    let first_ns = works().map(|work| events.start_ns(work)).min().unwrap_or(0);
    let last_ns = works().filter_map(|work| events.end_ns(work)).max().unwrap_or(0);
    let filled_ns = i128::from(median_ns) * lengths_ns.len() as i128;
    2 * filled_ns >= i128::from(last_ns) - i128::from(first_ns)
}

/// Returns the indices at which a sequence of launches begins again: all indices if all launches
/// are alike or too few to decide, none if nothing repeats.
pub(super) fn beginnings(names: &[usize]) -> Vec<usize> {
    let all = (0..names.len()).collect();
    if names.len() < FEWEST_REPETITIONS {
        return all;
    }
    match shortest_cycle(&names[..names.len().min(MOST_SEARCHED)]) {
        None => Vec::new(),
        Some(1) => all,
        Some(length) => {
            let (first, behind) = longest_time_range(names, length);
            let begins = once_each(&names[first..behind], length);
            (first..behind).filter(|&place| Some(names[place]) == begins).collect()
        }
    }
}

fn busiest_stream(tables: &Tables) -> Vec<EventId> {
    let events = &tables.events;
    let mut of_lane: Vec<Vec<EventId>> = vec![Vec::new(); tables.lanes.len()];
    for work in events.ids().filter(|&event| events.kind(event).is_device_work()) {
        of_lane[events.lane(work).row()].push(work);
    }
    let busy_ns = |works: &Vec<EventId>| {
        works.iter().filter_map(|&work| events.duration_ns(work)).fold(0, i64::saturating_add)
    };
    let mut works = of_lane.into_iter().max_by_key(busy_ns).unwrap_or_default();
    works.sort_by_key(|&work| (events.start_ns(work), work));
    works
}

fn shortest_cycle(names: &[usize]) -> Option<usize> {
    let longest = names.len() / FEWEST_REPETITIONS;
    let matches: Vec<_> = (1..=longest).map(|latency| share_equal(names, latency)).collect();
    let best = matches.iter().copied().fold(0.0, f64::max);
    let is_cycle = |share: &f64| *share >= best - NEARLY_BEST;
    (best >= LEAST_MATCH).then(|| matches.iter().position(is_cycle).map(|place| place + 1))?
}

#[allow(clippy::cast_precision_loss)] // a share
fn share_equal(names: &[usize], latency: usize) -> f64 {
    let equal = names.iter().zip(&names[latency..]).filter(|(one, two)| one == two).count();
    equal as f64 / (names.len() - latency) as f64
}

/// Returns the longest range in which at most one name in ten differs from the one a cycle later.
fn longest_time_range(names: &[usize], latency: usize) -> (usize, usize) {
    // A range qualifies if the running sum at its end is at least that at its start.
    let mut sums = vec![0_i64];
    for (one, two) in names.iter().zip(&names[latency..]) {
        let worth = if one == two { 1 } else { 1 - MISSES_ONE_IN };
        sums.push(sums[sums.len() - 1] + worth);
    }
    let mut falling: Vec<usize> = Vec::new();
    for place in 0..sums.len() {
        if falling.last().is_none_or(|&last| sums[place] < sums[last]) {
            falling.push(place);
        }
    }
    let mut best = (0, 0);
    for end in (0..sums.len()).rev() {
        while let Some(&start) = falling.last().filter(|&&start| sums[start] <= sums[end]) {
            if end.saturating_sub(start) > best.1 - best.0 {
                best = (start, end);
            }
            falling.pop();
        }
    }
    (best.0, best.1 + latency)
}

/// Returns the name whose number of occurrences per repetition is closest to one.
fn once_each(names: &[usize], length: usize) -> Option<usize> {
    let mut counts: HashMap<usize, (usize, usize)> = HashMap::new();
    for (place, &name) in names.iter().enumerate() {
        counts.entry(name).or_insert((0, place)).0 += 1;
    }
    let n_repetitions = (names.len() + length / 2) / length;
    let often_enough = counts.into_iter().filter(|&(_, (count, _))| count > FEWEST_REPETITIONS);
    let nearest = often_enough
        .min_by_key(|&(name, (count, first))| (count.abs_diff(n_repetitions), count, first, name));
    nearest.map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_of_equally_good_cycles_counts() {
        let names: Vec<_> = [1, 2, 3].repeat(20);
        assert_eq!(shortest_cycle(&names), Some(3));
        assert_eq!(shortest_cycle(&(0..60).collect::<Vec<_>>()), None);
    }

    #[test]
    fn a_name_that_comes_in_a_few_repetitions_begins_none() {
        let turn = |turn| [1, if [3, 10, 16, 31].contains(&turn) { 9 } else { 2 }, 3, 3];
        let names: Vec<_> = (0..60).flat_map(turn).collect();
        assert_eq!(shortest_cycle(&names), Some(4));
        assert_eq!(beginnings(&names), (0..60).map(|turn| 4 * turn).collect::<Vec<_>>());
    }

    #[test]
    fn what_stands_before_and_behind_the_repetitions_is_left_out() {
        let names: Vec<_> = (100..110).chain([1, 2, 3].repeat(20)).chain(200..205).collect();
        let (first, behind) = longest_time_range(&names, 3);
        assert!(first <= 10 && 70 <= behind && behind - first <= 60 + 6, "{first} {behind}");
    }
}
