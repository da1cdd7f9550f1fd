//! Aligns unnumbered calls of several ranks by order, and checks and repairs the alignment by their
//! end times.
//!
//! Calls of two ranks can be one call only if they are alike, overlap in time and end together. If
//! the sequences are equal, order decides, provided that steps, ends or the sequence itself would
//! reveal a missing call. Otherwise, clock shifts on which many ends agree are tried, and the calls
//! whose ends are nearest under the best shift are paired. If a second shift explains nearly as
//! many calls, the alignment is ambiguous, unless the best shift is so small that the clocks simply
//! agree.
//!
//! The cost is O(n log n): shifts come from a sample of neighbours, and each is tried in one sweep.

use std::collections::{BTreeMap, BTreeSet};

use super::model::Maybe;

/// Maximum difference of the ends of one call after clocks agree; 332 us were observed.
const ENDS_AGREE_NS: i64 = 500_000;

/// Tolerances for the agreement of ends, tried from the smallest.
const TOLERANCES_NS: [i64; 3] = [20_000, 100_000, ENDS_AGREE_NS];

/// Maximum difference of clocks that count as equal.
const CLOCKS_AGREE_NS: i64 = 300_000;

/// Number of consecutive calls from the middle of a rank that are compared with all calls of
/// another.
const SAMPLE: usize = 48;

/// Maximum number of shifts that are tried in full.
const MOST_SHIFTS: usize = 8;

/// A second shift counts as equally good if it explains this fraction of the pairs of the best.
const NEARLY: f64 = 0.9;

/// In a sequence that is trusted, at most one in this many calls may end apart from its partner.
const STRAYS_ONE_IN: usize = 20;

/// The same limit if every call has the same step on both sides: the ends of CPU libraries differ
/// by milliseconds on a busy machine, as do those of ranks that share a device.
const STRAYS_OF_STEPS_ONE_IN: usize = 2;

/// A sequence is periodic if, when shifted, more than one in this many calls still looks alike.
const PERIODIC_ONE_IN: usize = 2;

/// Periods of fewer calls than this are tested.
const LONGEST_PERIOD: usize = 64;

/// The direction of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Send.
    Out,
    /// Receive.
    In,
}

/// A call, reduced to what is compared.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item {
    /// Index of the member.
    pub(super) member: u32,
    /// The step in which it was called.
    pub(super) step: Maybe,
    /// Hash of operation, data type and size.
    pub(super) likeness: u64,
    /// Its direction, if it is a message.
    pub(super) way: Option<Way>,
    pub(super) start_ns: i64,
    pub(super) end_ns: i64,
}

/// The aligned calls, by rank and index.
#[derive(Debug, Default)]
pub(super) struct Aligned {
    /// The ranks of each call and the member of each.
    pub(super) calls: Vec<Vec<(u32, u32)>>,
    /// Pairs of ranks for which several alignments explain the calls.
    pub(super) ambiguous: Vec<(u32, u32)>,
}

/// Aligns the calls of several ranks, given as `(rank, its calls in order)`.
pub(super) fn align(mut sequences: Vec<(u32, Vec<Item>)>) -> Aligned {
    let mut found = Aligned::default();
    if is_one_sequence(&sequences) {
        let n = sequences.first().map_or(0, |(_, items)| items.len());
        let at =
            |place: usize| sequences.iter().map(move |(rank, items)| (*rank, items[place].member));
        found.calls = (0..n).map(|place| at(place).collect()).collect();
        return found;
    }
    // Starts with the rank that has the most calls, then with the calls it lacked, and so on.
    while sequences.len() > 1 {
        let longest =
            (0..sequences.len()).max_by_key(|&it| (sequences[it].1.len(), std::cmp::Reverse(it)));
        let (reference, items) = sequences.remove(longest.unwrap_or(0));
        let mut calls: BTreeMap<u32, Vec<(u32, u32)>> = BTreeMap::new();
        for (rank, others) in &mut sequences {
            let Some(pairs) = pairs(&items, others) else {
                found.ambiguous.push((reference, *rank));
                continue;
            };
            let taken: BTreeSet<u32> = pairs.iter().map(|pair| pair.1).collect();
            others.retain(|item| !taken.contains(&item.member));
            for (own, other) in pairs {
                calls.entry(own).or_insert_with(|| vec![(reference, own)]).push((*rank, other));
            }
        }
        found.calls.extend(calls.into_values());
        sequences.retain(|(_, items)| !items.is_empty());
    }
    found
}

/// Whether all ranks made the same calls, so that order identifies them. This holds if
/// corresponding calls are in the same step, or all end together by clocks that agree, or if the
/// order would reveal a missing call.
fn is_one_sequence(sequences: &[(u32, Vec<Item>)]) -> bool {
    let Some(((_, first), others)) = sequences.split_first() else { return true };
    if others.len() > 1 && first.iter().any(|item| item.way.is_some()) {
        return false;
    }
    others.iter().all(|(_, items)| {
        let is_alike = first.len() == items.len()
            && first.iter().zip(items).all(|(one, other)| may_be_one(one, other));
        let has_steps = || first.iter().chain(items).all(|item| item.step.get().is_some());
        let found = strays(first, items);
        let few = |one_in: usize| found.n * one_in <= first.len();
        is_alike
            && (has_steps() && few(STRAYS_OF_STEPS_ONE_IN)
                || few(STRAYS_ONE_IN) && found.shift_ns.abs() <= CLOCKS_AGREE_NS
                || !is_periodic(first))
    })
}

/// Whether a sequence looks alike when shifted by a few calls, so that a missing call would not be
/// noticed.
fn is_periodic(items: &[Item]) -> bool {
    let alike = |by: &usize| {
        let pairs = || items.iter().zip(&items[*by..]);
        let n_alike = pairs().filter(|(one, other)| one.likeness == other.likeness).count();
        n_alike * PERIODIC_ONE_IN > pairs().count()
    };
    (1..items.len().min(LONGEST_PERIOD)).any(|by| alike(&by))
}

/// The difference between the ends of two sequences, and the number of calls that deviate from it.
struct Strays {
    n: usize,
    shift_ns: i64,
}

fn strays(one: &[Item], other: &[Item]) -> Strays {
    let differences: Vec<_> = one.iter().zip(other).map(|(a, b)| a.end_ns - b.end_ns).collect();
    let middle = |of: &[i64]| {
        let mut sorted = of.to_vec();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).copied().unwrap_or(0)
    };
    // Clocks drift, so each call is compared with its neighbours only.
    let near = |place: usize| {
        middle(&differences[place.saturating_sub(8)..(place + 9).min(differences.len())])
    };
    let is_stray = |place: &usize| (differences[*place] - near(*place)).abs() > ENDS_AGREE_NS;
    Strays { n: (0..differences.len()).filter(is_stray).count(), shift_ns: middle(&differences) }
}

/// Returns the pairs of calls of two ranks; `None` if several alignments are equally good.
///
/// Ends that agree closely distinguish neighbouring calls, so the smallest tolerance that explains
/// half of the pairs is used.
fn pairs(one: &[Item], other: &[Item]) -> Option<Vec<(u32, u32)>> {
    let mut tried: Vec<Tried> = TOLERANCES_NS.iter().map(|&it| tried(one, other, it)).collect();
    let most = tried.iter().map(Tried::n_pairs).max().unwrap_or(0);
    let closest = tried.iter().position(|it| 2 * it.n_pairs() >= most)?;
    let Tried { tolerance_ns, by_shift } = tried.swap_remove(closest);
    let Some((best_shift, best)) = by_shift.first() else { return Some(Vec::new()) };
    let agreeing = by_shift.iter().find(|(shift, pairs)| {
        shift.abs() <= CLOCKS_AGREE_NS && is_nearly(pairs.len(), best.len())
    });
    if let Some((_, pairs)) = agreeing {
        return Some(pairs.clone());
    }
    let rival = by_shift.iter().skip(1).find(|(shift, pairs)| {
        (shift - best_shift).abs() > 2 * tolerance_ns && is_nearly(pairs.len(), best.len())
    });
    rival.is_none().then(|| best.clone())
}

/// The pairs under each candidate shift, most pairs first.
struct Tried {
    tolerance_ns: i64,
    by_shift: Vec<(i64, Vec<(u32, u32)>)>,
}

impl Tried {
    fn n_pairs(&self) -> usize {
        self.by_shift.first().map_or(0, |(_, pairs)| pairs.len())
    }
}

fn tried(one: &[Item], other: &[Item], tolerance_ns: i64) -> Tried {
    let shifts = shifts(one, other, tolerance_ns).into_iter();
    let mut by_shift: Vec<_> =
        shifts.map(|shift| (shift, paired(one, other, shift, tolerance_ns))).collect();
    by_shift.sort_by_key(|(shift, pairs)| (std::cmp::Reverse(pairs.len()), shift.abs()));
    Tried { tolerance_ns, by_shift }
}

#[allow(clippy::cast_precision_loss)] // counts
fn is_nearly(count: usize, best: usize) -> bool {
    count > 0 && count as f64 >= NEARLY * best as f64
}

fn may_be_one(one: &Item, other: &Item) -> bool {
    let same_step = one.step.get().zip(other.step.get()).is_none_or(|(one, other)| one == other);
    let both_ways = one.way.is_none() || one.way != other.way;
    one.likeness == other.likeness && same_step && both_ways
}

/// Returns the shifts on which most ends of a sample agree, best first, and the best of those that
/// are small enough for clocks that agree.
fn shifts(one: &[Item], other: &[Item], tolerance_ns: i64) -> Vec<i64> {
    let first = one.len().saturating_sub(SAMPLE) / 2;
    let sample = &one[first..(first + SAMPLE).min(one.len())];
    let mut differences: Vec<_> = sample
        .iter()
        .flat_map(|a| {
            let alike = other.iter().filter(move |b| may_be_one(a, b));
            alike.map(move |b| a.end_ns - b.end_ns)
        })
        .collect();
    differences.sort_unstable();
    let clusters = clusters(&differences, tolerance_ns);
    let agreeing = clusters.iter().find(|(_, shift)| shift.abs() <= CLOCKS_AGREE_NS);
    let mut chosen: Vec<i64> = agreeing.iter().map(|(_, shift)| *shift).collect();
    for &(_, shift) in &clusters {
        if chosen.len() > MOST_SHIFTS {
            break;
        }
        if chosen.iter().all(|known| (known - shift).abs() > tolerance_ns) {
            chosen.push(shift);
        }
    }
    chosen
}

/// For each of the sorted differences, returns the number of differences within the tolerance from
/// there, and their median; largest number first.
fn clusters(differences: &[i64], tolerance_ns: i64) -> Vec<(usize, i64)> {
    let mut found: Vec<(usize, i64)> = Vec::new();
    let mut behind = 0;
    for (place, &difference) in differences.iter().enumerate() {
        behind = behind.max(place);
        while behind < differences.len() && differences[behind] - difference <= tolerance_ns {
            behind += 1;
        }
        found.push((behind - place, differences[(place + behind - 1) / 2]));
    }
    found.sort_by_key(|&(n, shift)| (std::cmp::Reverse(n), shift.abs(), shift));
    found
}

/// Returns the pairs under a shift that follows clock drift: from the middle forward, then
/// backward.
fn paired(one: &[Item], other: &[Item], shift_ns: i64, tolerance_ns: i64) -> Vec<(u32, u32)> {
    let mut by_end: Vec<_> = (0..other.len()).collect();
    by_end.sort_by_key(|&it| other[it].end_ns);
    let middle = one.len() / 2;
    let mut is_taken = vec![false; other.len()];
    let mut found = Vec::new();
    let onward: Vec<_> = (middle..one.len()).collect();
    let back: Vec<_> = (0..middle).rev().collect();
    for places in [onward, back] {
        let mut shift = shift_ns;
        for place in places {
            let within = Within { shift, tolerance_ns };
            if let Some(near) = nearest(one, place, other, &by_end, within, &is_taken) {
                is_taken[near] = true;
                shift += (one[place].end_ns - other[near].end_ns - shift) / 4;
                found.push((one[place].member, other[near].member));
            }
        }
    }
    found.sort_unstable();
    in_order(&found)
}

/// The clock shift, and the tolerance for the ends of calls after it.
#[derive(Clone, Copy)]
struct Within {
    shift: i64,
    tolerance_ns: i64,
}

/// Returns the unpaired call with the nearest end, if the ends agree and the calls overlap.
fn nearest(
    one: &[Item],
    place: usize,
    other: &[Item],
    by_end: &[usize],
    within: Within,
    is_taken: &[bool],
) -> Option<usize> {
    let Within { shift, tolerance_ns } = within;
    let item = &one[place];
    let end_ns = item.end_ns - shift;
    let first = by_end.partition_point(|&it| other[it].end_ns < end_ns - tolerance_ns);
    let near = by_end[first..].iter().copied();
    let near = near.take_while(|&it| other[it].end_ns <= end_ns + tolerance_ns);
    let overlaps = |it: &usize| {
        other[*it].start_ns + shift <= item.end_ns && item.start_ns <= other[*it].end_ns + shift
    };
    let fits = near.filter(|&it| !is_taken[it] && may_be_one(item, &other[it])).filter(overlaps);
    let best = fits.min_by_key(|&it| ((other[it].end_ns - end_ns).abs(), it))?;
    // Another call of this rank may be nearer to that call.
    let distance = |it: &Item| (it.end_ns - shift - other[best].end_ns).abs();
    let beside = [place.checked_sub(1), Some(place + 1)].into_iter().flatten();
    let is_nearer = beside
        .filter_map(|it| one.get(it))
        .any(|it| may_be_one(it, &other[best]) && distance(it) < distance(item));
    (!is_nearer).then_some(best)
}

/// Returns the largest set of pairs that keeps the order of both sides.
fn in_order(pairs: &[(u32, u32)]) -> Vec<(u32, u32)> {
    let mut tails: Vec<usize> = Vec::new();
    let mut before = vec![usize::MAX; pairs.len()];
    for (place, pair) in pairs.iter().enumerate() {
        let length = tails.partition_point(|&it| pairs[it].1 < pair.1);
        if length > 0 {
            before[place] = tails[length - 1];
        }
        if length == tails.len() {
            tails.push(place);
        } else {
            tails[length] = place;
        }
    }
    let mut kept = Vec::new();
    let mut next = tails.last().copied().unwrap_or(usize::MAX);
    while next != usize::MAX {
        kept.push(pairs[next]);
        next = before[next];
    }
    kept.reverse();
    kept
}
