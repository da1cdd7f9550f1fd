//! Aligns two sequences, such as the launches of two runs.
//!
//! Two runs of a program launch similar work in a similar order. Inserted, removed and replaced
//! elements lie between equal ones, so the order shows which element replaced which. Elements are
//! compared in rounds: first by a strict key (stack, shape and name), then by looser ones (the
//! stack alone) within the remaining gaps.
//!
//! Each round computes a shortest edit script (Myers, "An O(ND) difference algorithm and its
//! variations", 1986). Its cost is n times the number of differences, so a range with more than a
//! thousand differences is first divided where a key occurs equally often on both sides. Ranges
//! that remain too different after a number of divisions are left unaligned.

use std::collections::HashMap;

/// A range with more differences is divided before it is aligned.
const MOST_DIFFERENCES: usize = 1_000;

/// Maximum depth of divisions.
const MOST_CUTS: usize = 24;

/// A pair of equal elements, and the round that found it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pair {
    /// Index in the first sequence.
    pub base: usize,
    /// Index in the second sequence.
    pub new: usize,
    /// Index of the key that they share.
    pub round: usize,
}

/// Aligns two sequences. `base[r]` and `new[r]` are the keys of round `r`, one for each element.
///
/// The pairs are in ascending order in both sequences.
///
/// ```
/// use longpole_core::alignment::align;
/// let names = [vec![1, 2, 3, 4]].to_vec();
/// let places: Vec<_> = align(&names, &[vec![1, 9, 3, 4]]).iter().map(|p| (p.base, p.new)).collect();
/// assert_eq!(places, [(0, 0), (2, 2), (3, 3)]);
/// ```
pub fn align(base: &[Vec<u64>], new: &[Vec<u64>]) -> Vec<Pair> {
    let mut pairs: Vec<Pair> = Vec::new();
    let (n_base, n_new) = (base.first().map_or(0, Vec::len), new.first().map_or(0, Vec::len));
    for (round, (base_keys, new_keys)) in base.iter().zip(new).enumerate() {
        let mut found = Vec::new();
        for region in gaps(&pairs, n_base, n_new) {
            fill(base_keys, new_keys, region, &mut found);
        }
        pairs.extend(found.into_iter().map(|(base, new)| Pair { base, new, round }));
        pairs.sort_unstable();
    }
    pairs
}

/// A range of each sequence: start and end in the first, start and end in the second.
#[derive(Debug, Clone, Copy)]
struct Region {
    base: (usize, usize),
    new: (usize, usize),
}

impl Region {
    fn is_empty(&self) -> bool {
        self.base.0 == self.base.1 || self.new.0 == self.new.1
    }
}

/// Returns the ranges between pairs that are non-empty on both sides.
fn gaps(pairs: &[Pair], n_base: usize, n_new: usize) -> Vec<Region> {
    let places = pairs.iter().map(|pair| (pair.base, pair.new));
    between(places, Region { base: (0, n_base), new: (0, n_new) })
}

fn between(places: impl Iterator<Item = (usize, usize)>, whole: Region) -> Vec<Region> {
    let mut from = (whole.base.0, whole.new.0);
    let mut found = Vec::new();
    for (base, new) in places.chain([(whole.base.1, whole.new.1)]) {
        found.push(Region { base: (from.0, base), new: (from.1, new) });
        from = (base + 1, new + 1);
    }
    found.retain(|region| !region.is_empty());
    found
}

/// Aligns a range, dividing it if it is too different as a whole.
fn fill(base: &[u64], new: &[u64], whole: Region, pairs: &mut Vec<(usize, usize)>) {
    let mut open = vec![(whole, 0)];
    while let Some((region, depth)) = open.pop() {
        let region = trim(base, new, region, pairs);
        if region.is_empty() {
            continue;
        }
        if let Some(found) = shortest_edit(base, new, region) {
            pairs.extend(found);
        } else if depth < MOST_CUTS {
            let cuts = cuts(base, new, region);
            if !cuts.is_empty() {
                let parts = between(cuts.iter().copied(), region);
                open.extend(parts.into_iter().map(|part| (part, depth + 1)));
                pairs.extend(cuts);
            }
        }
    }
}

/// Pairs the equal elements at both ends of a range.
fn trim(base: &[u64], new: &[u64], mut region: Region, pairs: &mut Vec<(usize, usize)>) -> Region {
    while !region.is_empty() && base[region.base.0] == new[region.new.0] {
        pairs.push((region.base.0, region.new.0));
        region.base.0 += 1;
        region.new.0 += 1;
    }
    while !region.is_empty() && base[region.base.1 - 1] == new[region.new.1 - 1] {
        region.base.1 -= 1;
        region.new.1 -= 1;
        pairs.push((region.base.1, region.new.1));
    }
    region
}

/// Pairs the occurrences of keys that occur equally often on both sides, in order. Of these pairs,
/// returns the longest sequence that ascends on both sides.
fn cuts(base: &[u64], new: &[u64], region: Region) -> Vec<(usize, usize)> {
    let old = places(base, region.base);
    let now = places(new, region.new);
    let mut candidates = Vec::new();
    for (place, key) in base.iter().enumerate().take(region.base.1).skip(region.base.0) {
        let (Some(here), Some(there)) = (old.get(key), now.get(key)) else {
            continue;
        };
        if here.len() == there.len() {
            let nth = here.partition_point(|&earlier| earlier < place);
            candidates.push((place, there[nth]));
        }
    }
    rising(&candidates)
}

fn places(keys: &[u64], (from, to): (usize, usize)) -> HashMap<u64, Vec<usize>> {
    let mut found: HashMap<u64, Vec<usize>> = HashMap::new();
    for (place, &key) in keys.iter().enumerate().take(to).skip(from) {
        found.entry(key).or_default().push(place);
    }
    found
}

/// Returns the longest sequence of pairs that ascends in both elements.
fn rising(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let mut ends: Vec<usize> = Vec::new(); // lowest last element of a sequence of each length
    let mut before: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (at, &(_, new)) in pairs.iter().enumerate() {
        let length = ends.partition_point(|&end| pairs[end].1 < new);
        before.push(length.checked_sub(1).map(|shorter| ends[shorter]));
        ends.truncate(ends.len().max(length + 1));
        if length == ends.len() {
            ends.push(at);
        } else {
            ends[length] = at;
        }
    }
    let mut row = Vec::with_capacity(ends.len());
    let mut at = ends.last().copied();
    while let Some(pair) = at {
        row.push(pairs[pair]);
        at = before[pair];
    }
    row.reverse();
    row
}

/// Returns the pairs of a shortest edit script; `None` if it has too many differences.
fn shortest_edit(base: &[u64], new: &[u64], region: Region) -> Option<Vec<(usize, usize)>> {
    let old = &base[region.base.0..region.base.1];
    let now = &new[region.new.0..region.new.1];
    let found = furthest(old, now)?;
    let offset = |(base, new): (usize, usize)| (base + region.base.0, new + region.new.0);
    Some(walk_back(old.len(), now.len(), &found).into_iter().map(offset).collect())
}

/// The furthest position in the first sequence with d differences, for each d up to the one that
/// reaches both ends. Slot s of row d has s removals, so that y = x + d - 2 s.
type Reach = Vec<Vec<Option<usize>>>;

fn furthest(old: &[u64], now: &[u64]) -> Option<Reach> {
    let most = (old.len() + now.len()).min(MOST_DIFFERENCES);
    let mut rows: Reach = Vec::new();
    for differences in 0..=most {
        let row: Vec<_> = (0..=differences)
            .map(|slot| {
                let (x, _) = enter(&rows, differences, slot, (old.len(), now.len()))?;
                Some(x + same_from(old, now, x, x + differences - 2 * slot))
            })
            .collect();
        let is_done = row.iter().enumerate().any(|(slot, &x)| {
            x == Some(old.len()) && old.len() + differences == now.len() + 2 * slot
        });
        rows.push(row);
        if is_done {
            return Some(rows);
        }
    }
    None
}

/// Returns the position at which a slot is entered, and whether by a removal; `None` if it cannot
/// be reached.
fn enter(
    rows: &Reach,
    differences: usize,
    slot: usize,
    (n_old, n_now): (usize, usize),
) -> Option<(usize, bool)> {
    let Some(last) = differences.checked_sub(1).map(|before| &rows[before]) else {
        return Some((0, false));
    };
    let removed = slot.checked_sub(1).and_then(|below| last[below]).map(|x| x + 1);
    let removed = removed.filter(|&x| x <= n_old);
    let inserted = last.get(slot).copied().flatten();
    let inserted = inserted.filter(|x| x + differences - 2 * slot <= n_now);
    match (removed, inserted) {
        (Some(x), other) if other.is_none_or(|kept| x > kept) => Some((x, true)),
        (_, other) => other.map(|x| (x, false)),
    }
}

fn same_from(old: &[u64], now: &[u64], x: usize, y: usize) -> usize {
    old[x..].iter().zip(&now[y..]).take_while(|(one, other)| one == other).count()
}

/// Follows the furthest positions back to the start and collects the equal elements.
fn walk_back(n_old: usize, n_now: usize, rows: &Reach) -> Vec<(usize, usize)> {
    let (mut x, mut y) = (n_old, n_now);
    let mut pairs = Vec::new();
    for differences in (0..rows.len()).rev() {
        let slot = (x + differences - y) / 2;
        let Some((start, is_removal)) = enter(rows, differences, slot, (n_old, n_now)) else {
            break;
        };
        while x > start {
            (x, y) = (x - 1, y - 1);
            pairs.push((x, y));
        }
        match (differences, is_removal) {
            (0, _) => {}
            (_, true) => x -= 1,
            (_, false) => y -= 1,
        }
    }
    pairs.reverse();
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(base: &[u64], new: &[u64]) -> Vec<(usize, usize)> {
        align(&[base.to_vec()], &[new.to_vec()]).iter().map(|p| (p.base, p.new)).collect()
    }

    /// Returns pseudo-random numbers, determined by the seed.
    fn numbers(seed: u64, length: usize, below: u64) -> Vec<u64> {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        (0..length)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 33) % below
            })
            .collect()
    }

    /// Returns the length of a longest common subsequence, by dynamic programming over all
    /// prefixes.
    fn longest_common(base: &[u64], new: &[u64]) -> usize {
        let mut row = vec![0; new.len() + 1];
        for one in base {
            let mut diagonal = 0;
            for (at, other) in new.iter().enumerate() {
                let above = row[at + 1];
                row[at + 1] = if one == other { diagonal + 1 } else { above.max(row[at]) };
                diagonal = above;
            }
        }
        row[new.len()]
    }

    #[test]
    fn short_sequences_get_a_longest_common_subsequence() {
        for seed in 0..600 {
            let below = 2 + seed % 7;
            let base = numbers(seed, usize::try_from(seed % 23).unwrap(), below);
            let new = numbers(seed + 1_000, usize::try_from(seed % 17).unwrap(), below);
            let found = places(&base, &new);
            assert_eq!(found.len(), longest_common(&base, &new), "{base:?} {new:?}");
            assert!(found.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 < two[1].1));
            assert!(found.iter().all(|&(one, other)| base[one] == new[other]));
        }
    }

    #[test]
    fn what_has_too_many_differences_is_cut_where_keys_occur_equally_often() {
        let mut base = Vec::new();
        let mut new = Vec::new();
        for block in 0..40 {
            let mark = 1_000_000 + block;
            base.extend(numbers(block, 100, 1_000).into_iter().chain([mark]));
            let other = numbers(block + 77, 100, 1_000).into_iter().map(|number| number + 5_000);
            new.extend(other.chain([mark]));
        }
        let found = places(&base, &new);
        assert_eq!(
            found,
            (0..40).map(|block| (101 * block + 100, 101 * block + 100)).collect::<Vec<_>>()
        );
    }

    #[test]
    fn later_rounds_fill_the_gaps_of_earlier_ones() {
        let base = [vec![1, 2, 3, 4], vec![1, 7, 7, 4]];
        let new = [vec![1, 9, 8, 4], vec![1, 7, 7, 4]];
        let rounds: Vec<_> = align(&base, &new).iter().map(|pair| pair.round).collect();
        assert_eq!(rounds, [0, 1, 1, 0]);
    }

    #[test]
    fn nothing_is_aligned_with_nothing() {
        assert!(align(&[], &[]).is_empty());
        assert!(places(&[], &[1, 2]).is_empty());
        assert_eq!(rising(&[(0, 4), (1, 1), (2, 2), (3, 0)]), [(1, 1), (2, 2)]);
    }
}
