//! Queues between host threads: a thread repeatedly waits until other threads have finished an
//! event of one name.
//!
//! The producer of a queue is not recorded. If nearly every long gap of a thread ends just after an
//! operator or function of one name ended on other threads, far more often than by chance, the gaps
//! are waits for it. All threads are considered together: with three loaders, each fills only a
//! third of the gaps.

#![allow(clippy::cast_precision_loss)] // a chance needs no 64 bits

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::ops::RangeInclusive;

use crate::graph::facts::Facts;
use crate::graph::model::{Edge, Evidence, Kind, Role, limits};
use crate::ids::{NodeId, Order, RowSet, StringId};
use crate::tables::EventKind;

/// Returns the edges from producers to the gaps that they end. `chains` are the edges of threads,
/// `explained` the ends of gaps that already have a reason.
pub(super) fn edges(chains: &[Edge], explained: &RowSet<NodeId>, facts: &Facts<'_>) -> Vec<Edge> {
    let gaps = gaps_by_thread(chains, explained, facts);
    let ends = if gaps.is_empty() { BTreeMap::new() } else { ends_by_process(facts) };
    let mut found = Vec::new();
    for (&thread, gaps) in &gaps {
        let process = facts.tables.lanes.places()[thread].process;
        let Some(ends) = ends.get(&process) else { continue };
        let long: Vec<_> = gaps.iter().copied().filter(|gap| is_long(gap, facts)).collect();
        let awaited = Waiter { thread, gaps: &long, ends, facts }.awaits();
        found.extend(awaited.map(|(name, latencies)| (thread, (process, name), latencies)));
    }
    found.sort_by_key(|(thread, _, latencies)| (*latencies.end(), *thread));
    let mut queues: BTreeMap<(StringId, StringId), Vec<Turn>> = BTreeMap::new();
    let mut fillers: HashSet<usize> = HashSet::new();
    for (thread, (process, name), latencies) in found {
        // A regular producer also seems to wait for its regular consumer.
        if *latencies.end() > limits::QUEUE_REACHES_NS[0] && fillers.contains(&thread) {
            continue;
        }
        let of_name = ends[&process].iter().filter(|end| facts.timeline.name(end.1) == Some(name));
        fillers.extend(of_name.map(|end| facts.timeline.lane(end.1)).filter(|&it| it != thread));
        let turns =
            gaps[&thread].iter().map(|&gap| Turn { thread, gap, latencies: latencies.clone() });
        queues.entry((process, name)).or_default().extend(turns);
    }
    let serve = |((process, name), turns)| serve(turns, name, &ends[&process], facts);
    queues.into_iter().flat_map(serve).collect()
}

/// Maximum number of latency ranges tried for one name.
const MOST_STRETCHES: usize = 64;

/// The range of times from the end of a producer to the end of a gap.
type Latencies = RangeInclusive<i64>;

/// A gap of a thread that waits for a queue.
#[derive(Clone)]
struct Turn {
    thread: usize,
    gap: Edge,
    latencies: Latencies,
}

/// Matches the ends of a name with the long gaps, which show how soon threads continue, and then
/// with gaps of any length.
fn serve(
    mut turns: Vec<Turn>,
    name: StringId,
    ends: &[(i64, Order)],
    facts: &Facts<'_>,
) -> Vec<Edge> {
    let ends: Vec<_> =
        ends.iter().copied().filter(|end| facts.timeline.name(end.1) == Some(name)).collect();
    turns.sort_by_key(|turn| (facts.nodes.time_ns(turn.gap.source), turn.gap.target));
    let long = turns.iter().filter(|turn| is_long(&turn.gap, facts));
    let served = served(long, &ends, facts);
    let latencies = || served.iter().map(|edge| edge.gap_ns(facts.nodes));
    let (Some(least), Some(most)) = (latencies().min(), latencies().max()) else {
        return Vec::new();
    };
    for turn in &mut turns {
        turn.latencies = least..=most + most / 2; // a few take longer than the others
    }
    self::served(turns.iter(), &ends, facts)
}

/// Matches each end with the longest-waiting thread that it may have woken.
fn served<'t>(
    turns: impl Iterator<Item = &'t Turn>,
    ends: &[(i64, Order)],
    facts: &Facts<'_>,
) -> Vec<Edge> {
    let time_ns = |node| facts.nodes.time_ns(node);
    let mut turns = turns.peekable();
    let mut waiting: Vec<&Turn> = Vec::new();
    let mut found = Vec::new();
    for &(end_ns, event) in ends {
        waiting
            .extend(std::iter::from_fn(|| turns.next_if(|turn| time_ns(turn.gap.source) < end_ns)));
        waiting.retain(|turn| time_ns(turn.gap.target) >= end_ns);
        let is_woken = |turn: &&Turn| {
            turn.thread != facts.timeline.lane(event)
                && turn.latencies.contains(&(time_ns(turn.gap.target) - end_ns))
        };
        if let Some(place) = waiting.iter().position(is_woken) {
            let gap = waiting.remove(place).gap;
            let nodes = (facts.nodes.end(event), gap.target);
            let named = (Kind::Handover, Role::Handover);
            found.push(Edge::new(nodes, named, gap.event(), Evidence::Inferred));
        }
    }
    found
}

fn is_long(gap: &Edge, facts: &Facts<'_>) -> bool {
    gap.gap_ns(facts.nodes) >= limits::QUEUE_GAP_NS
}

/// Returns the gaps of each thread that has enough long ones.
fn gaps_by_thread(
    chains: &[Edge],
    explained: &RowSet<NodeId>,
    facts: &Facts<'_>,
) -> BTreeMap<usize, Vec<Edge>> {
    let mut n_long: BTreeMap<usize, usize> = BTreeMap::new();
    let thread = |gap: &Edge| facts.thread_of(gap);
    let gaps = || chains.iter().filter(|edge| edge.kind == Kind::HostGap);
    let is_open = |gap: &&Edge| !explained.contains(&gap.target);
    for gap in gaps().filter(|gap| is_long(gap, facts)).filter(is_open) {
        *n_long.entry(thread(gap)).or_default() += 1;
    }
    n_long.retain(|_, count| *count >= limits::LEAST_QUEUE_GAPS);
    let mut of_thread: BTreeMap<usize, Vec<Edge>> = BTreeMap::new();
    if n_long.is_empty() {
        return of_thread;
    }
    for gap in gaps().filter(|gap| n_long.contains_key(&thread(gap))).filter(is_open) {
        of_thread.entry(thread(gap)).or_default().push(*gap);
    }
    of_thread
}

/// Returns the ends of all operators and functions of a process, in order of time.
fn ends_by_process(facts: &Facts<'_>) -> BTreeMap<StringId, Vec<(i64, Order)>> {
    let mut ends: BTreeMap<StringId, Vec<(i64, Order)>> = BTreeMap::new();
    for node in facts.nodes.ids().filter(|&node| facts.nodes.is_end(node)) {
        let event = facts.nodes.event(node);
        if matches!(facts.timeline.kind(event), EventKind::Operator | EventKind::Python) {
            let process = facts.tables.lanes.places()[facts.timeline.lane(event)].process;
            ends.entry(process).or_default().push((facts.nodes.time_ns(node), event));
        }
    }
    for ends in ends.values_mut() {
        for of_instant in ends.chunk_by_mut(|one, other| one.0 == other.0) {
            of_instant.sort_unstable();
        }
    }
    ends
}

/// A thread with gaps, and everything that ended in its process.
struct Waiter<'a> {
    thread: usize,
    gaps: &'a [Edge],
    ends: &'a [(i64, Order)],
    facts: &'a Facts<'a>,
}

/// Index of each gap in which an event of a name ended, and the time from that end to the end of
/// the gap.
type Hits = Vec<(usize, i64)>;

impl Waiter<'_> {
    /// Returns the name whose ends the gaps wait for, and the time from that end to the end of the
    /// gap. Tried in turn: soon, always after a similar time, or at most the largest maximum.
    fn awaits(&self) -> Option<(StringId, Latencies)> {
        let mut by_name = self.latencies_by_name();
        by_name.retain(|_, hits| self.is_common(n_gaps(hits.iter().copied())));
        let [near, farther, far] = limits::QUEUE_REACHES_NS.map(|reach_ns| {
            let by_name = &by_name;
            move || self.best_name(by_name, |_| Some(0..=reach_ns))
        });
        near()
            .or_else(farther)
            .or_else(|| self.best_name(&by_name, |hits| self.usual_latencies(hits)))
            .or_else(far)
    }

    /// Of the latencies of a name, returns the narrow range that contains those of the most gaps.
    fn usual_latencies(&self, hits: &Hits) -> Option<Latencies> {
        let mut latencies_ns: Vec<_> = hits.iter().map(|&(_, latency_ns)| latency_ns).collect();
        latencies_ns.sort_unstable();
        latencies_ns.dedup();
        let close =
            |least_ns: i64| least_ns..=least_ns + least_ns * limits::QUEUE_SPREAD_PERCENT / 100;
        let n_served = |latencies: &Latencies| n_gaps(within(hits, latencies));
        let step = latencies_ns.len().div_ceil(MOST_STRETCHES);
        let usual = latencies_ns.into_iter().step_by(step).map(close).max_by_key(n_served)?;
        self.is_common(n_served(&usual)).then_some(usual)
    }

    fn is_common(&self, n_hits: usize) -> bool {
        n_hits * 100 >= self.gaps.len() * limits::QUEUE_PERCENT
    }

    fn span_ns(&self, gap: &Edge) -> (i64, i64) {
        let nodes = self.facts.nodes;
        (nodes.time_ns(gap.source), nodes.time_ns(gap.target))
    }

    /// Returns the events that ended in each gap shortly before its end, by name; gaps are in
    /// order.
    fn latencies_by_name(&self) -> BTreeMap<StringId, Hits> {
        let farthest_ns = limits::QUEUE_REACHES_NS[limits::QUEUE_REACHES_NS.len() - 1];
        let mut by_name: BTreeMap<StringId, Hits> = BTreeMap::new();
        for (place, gap) in self.gaps.iter().enumerate() {
            let (start_ns, end_ns) = self.span_ns(gap);
            let after_ns = start_ns.max(end_ns - farthest_ns - 1);
            let behind = self.ends.partition_point(|end| end.0 <= end_ns);
            let ended = self.ends[..behind].iter().rev().take_while(|end| end.0 > after_ns);
            for &(ended_ns, event) in ended.filter(|end| self.is_elsewhere(end.1)) {
                if let Some(name) = self.facts.timeline.name(event) {
                    by_name.entry(name).or_default().push((place, end_ns - ended_ns));
                }
            }
        }
        by_name
    }

    fn is_elsewhere(&self, event: Order) -> bool {
        self.facts.timeline.lane(event) != self.thread
    }

    /// Returns the name that most gaps wait for, within the given latencies, if it cannot be
    /// chance.
    fn best_name(
        &self,
        by_name: &BTreeMap<StringId, Hits>,
        latencies_of: impl Fn(&Hits) -> Option<Latencies>,
    ) -> Option<(StringId, Latencies)> {
        let found = by_name.iter().filter_map(|(&name, hits)| {
            let latencies = latencies_of(hits)?;
            let n_hits = n_gaps(within(hits, &latencies));
            let latency_ns: i64 = within(hits, &latencies).map(|(_, latency_ns)| latency_ns).sum();
            Some((name, latencies, n_hits, latency_ns / i64::try_from(n_hits.max(1)).unwrap_or(1)))
        });
        let accepted = found.filter(|(name, latencies, n_hits, _)| {
            let hits = || within(&by_name[name], latencies);
            self.is_common(*n_hits) && self.is_no_chance(*name, *n_hits, latencies, hits())
        });
        let best = accepted.max_by_key(|&(_, _, n_hits, latency_ns)| (n_hits, Reverse(latency_ns)));
        best.map(|(name, latencies, _, _)| (name, latencies))
    }

    /// Whether chance alone is unlikely to end this number of gaps this soon after an end of the
    /// name.
    fn is_no_chance(
        &self,
        name: StringId,
        n_hits: usize,
        latencies: &Latencies,
        hits: impl Iterator<Item = (usize, i64)>,
    ) -> bool {
        let is_of_name = |&&(_, event): &&(i64, Order)| {
            self.facts.timeline.name(event) == Some(name) && self.is_elsewhere(event)
        };
        let ends_ns: Vec<_> = self.ends.iter().filter(is_of_name).map(|end| end.0).collect();
        if ends_ns.len() < limits::LEAST_QUEUE_GAPS {
            return false;
        }
        let spans: Vec<_> = self.gaps.iter().map(|gap| self.span_ns(gap)).collect();
        let rate = rate_per_ns(&ends_ns, &spans, self.ends);
        let chance = |&(start_ns, end_ns): &(i64, i64)| {
            let reach_ns = (end_ns - start_ns).min(*latencies.end()) - latencies.start();
            1.0 - (-rate * reach_ns.max(0) as f64).exp()
        };
        let mean = spans.iter().map(chance).sum::<f64>() / spans.len() as f64;
        let trials = if *latencies.start() == 0 { 1.0 } else { limits::QUEUE_STRETCHES };
        let found = trials * chance_of(n_hits, spans.len(), mean);
        found < limits::QUEUE_CHANCE
            || (found < limits::COUNTED_QUEUE_CHANCE && self.counts_alike(hits, &ends_ns))
    }

    /// Whether, in nearly every gap, the name had ended once more for each time that the thread had
    /// continued with what follows its gaps. `hits` are the ends that may have ended a gap.
    fn counts_alike(&self, hits: impl Iterator<Item = (usize, i64)>, ends_ns: &[i64]) -> bool {
        let timeline = self.facts.timeline;
        let next = |gap: &Edge| timeline.name(self.facts.nodes.event(gap.target));
        let Some(name) = self.gaps.first().and_then(next) else { return false };
        let is_turn = |&event: &Order| {
            timeline.name(event) == Some(name) && timeline.lane(event) == self.thread
        };
        let turns_ns: Vec<_> =
            timeline.orders().filter(is_turn).map(|event| timeline.start_ns(event)).collect();
        let mut gaps_of: BTreeMap<usize, HashSet<usize>> = BTreeMap::new();
        for (place, latency_ns) in hits {
            let (_, until_ns) = self.span_ns(&self.gaps[place]);
            let n_turns = turns_ns.partition_point(|&turn_ns| turn_ns <= until_ns);
            let n_ended = ends_ns.partition_point(|&it| it <= until_ns - latency_ns);
            gaps_of.entry(n_ended.wrapping_sub(n_turns)).or_default().insert(place);
        }
        gaps_of.values().any(|gaps| self.is_common(gaps.len()))
    }
}

fn within<'h>(hits: &'h Hits, latencies: &'h Latencies) -> impl Iterator<Item = (usize, i64)> + 'h {
    hits.iter().copied().filter(|hit| latencies.contains(&hit.1))
}

/// Returns the number of gaps with a hit; hits are in the order of gaps.
fn n_gaps(hits: impl Iterator<Item = (usize, i64)>) -> usize {
    let mut last = None;
    hits.filter(|&(gap, _)| last.replace(gap) != Some(gap)).count()
}

/// Returns the rate at which a name ends: over the whole time or within the gaps, whichever is
/// higher.
fn rate_per_ns(ends_ns: &[i64], gaps: &[(i64, i64)], all: &[(i64, Order)]) -> f64 {
    let whole_ns = all[all.len() - 1].0 - all[0].0;
    let before = |time_ns: i64| ends_ns.partition_point(|&end_ns| end_ns <= time_ns);
    let in_gaps: usize = gaps.iter().map(|gap| before(gap.1) - before(gap.0)).sum();
    let gaps_ns: i64 = gaps.iter().map(|gap| gap.1 - gap.0).sum();
    let per_ns = |count: usize, ns: i64| count as f64 / ns.max(1) as f64;
    per_ns(ends_ns.len(), whole_ns).max(per_ns(in_gaps, gaps_ns))
}

/// Returns the probability of at least this many hits (the upper tail of the binomial
/// distribution).
fn chance_of(n_hits: usize, n_trials: usize, chance: f64) -> f64 {
    if chance >= 1.0 {
        return 1.0;
    }
    let (log_hit, log_miss) = (chance.ln(), (1.0 - chance).ln());
    let mut log_ways = 0.0;
    let mut sum = 0.0;
    for count in 0..=n_trials {
        if count > 0 {
            log_ways += ((n_trials - count + 1) as f64 / count as f64).ln();
        }
        if count >= n_hits {
            sum += (log_ways + count as f64 * log_hit + (n_trials - count) as f64 * log_miss).exp();
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_of_the_binomial_is_summed() {
        assert!((chance_of(0, 5, 0.3) - 1.0).abs() < 1e-12);
        assert!((chance_of(5, 5, 0.5) - 1.0 / 32.0).abs() < 1e-12);
        assert!((chance_of(1, 2, 0.5) - 0.75).abs() < 1e-12);
        assert!(chance_of(8_000, 10_000, 0.5) < 1e-100);
    }
}
