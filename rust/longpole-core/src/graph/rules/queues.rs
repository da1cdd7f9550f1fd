//! Queues between host threads: a thread that waits again and again until others have
//! finished something of one name.
//!
//! Nothing records who fills a queue. But where nearly every long gap of a thread ends
//! just after an operator or function of one name has ended on other threads, far more
//! often than chance would have it, the gaps are waiting for it. All threads are taken
//! together: of three loaders each fills only a third of the gaps.

#![allow(clippy::cast_precision_loss)] // a chance needs no 64 bits

use std::collections::{BTreeMap, HashSet};

use crate::graph::facts::Facts;
use crate::graph::model::{limits, Edge, Evidence, Kind, Role};
use crate::ids::{NodeId, Order, StringId};
use crate::tables::EventKind;

/// The edges from what fills queues to the gaps that it ends. `chains` are the edges of
/// threads, `explained` the ends of gaps that need no reason.
pub(super) fn edges(chains: &[Edge], explained: &HashSet<NodeId>, facts: &Facts<'_>) -> Vec<Edge> {
    let gaps = gaps_by_thread(chains, explained, facts);
    if gaps.is_empty() {
        return Vec::new();
    }
    let ends = ends_by_process(facts);
    let mut found = Vec::new();
    for (thread, gaps) in gaps {
        let process = facts.tables.lanes.places()[thread].process;
        if let Some(ends) = ends.get(&process) {
            found.extend(Waiter { thread, gaps: &gaps, ends, facts }.edges());
        }
    }
    found
}

/// The long gaps of each thread that has enough of them.
fn gaps_by_thread(
    chains: &[Edge],
    explained: &HashSet<NodeId>,
    facts: &Facts<'_>,
) -> BTreeMap<usize, Vec<Edge>> {
    let mut gaps: BTreeMap<usize, Vec<Edge>> = BTreeMap::new();
    let is_long = |edge: &&Edge| {
        edge.kind == Kind::HostGap
            && edge.gap_ns(facts.nodes) >= limits::QUEUE_GAP_NS
            && !explained.contains(&edge.target)
    };
    for edge in chains.iter().filter(is_long) {
        let thread = facts.timeline.lane(facts.nodes.event(edge.source));
        gaps.entry(thread).or_default().push(*edge);
    }
    gaps.retain(|_, gaps| gaps.len() >= limits::LEAST_QUEUE_GAPS);
    gaps
}

/// The ends of all operators and functions of a process, in order of time.
fn ends_by_process(facts: &Facts<'_>) -> BTreeMap<StringId, Vec<(i64, Order)>> {
    let mut ends: BTreeMap<StringId, Vec<(i64, Order)>> = BTreeMap::new();
    for event in facts.timeline.orders() {
        if matches!(facts.timeline.kind(event), EventKind::Operator | EventKind::Python) {
            let process = facts.tables.lanes.places()[facts.timeline.lane(event)].process;
            ends.entry(process).or_default().push((facts.timeline.end_ns(event), event));
        }
    }
    for ends in ends.values_mut() {
        ends.sort_unstable();
    }
    ends
}

/// A thread with gaps, and all that ended in its process.
struct Waiter<'a> {
    thread: usize,
    gaps: &'a [Edge],
    ends: &'a [(i64, Order)],
    facts: &'a Facts<'a>,
}

/// For each gap that something of a name ended in last, the place of the gap, what it was
/// and how long before the end of the gap.
type Hits = Vec<(usize, Order, i64)>;

impl Waiter<'_> {
    fn edges(&self) -> Vec<Edge> {
        let by_name = self.last_ends();
        let found = limits::QUEUE_REACHES_NS
            .into_iter()
            .find_map(|reach_ns| self.best_name(&by_name, reach_ns));
        found.into_iter().flatten().map(|(gap, event, _)| self.edge(gap, event)).collect()
    }

    fn edge(&self, gap: usize, event: Order) -> Edge {
        let nodes = (self.facts.nodes.end(event), self.gaps[gap].target);
        let label = self.gaps[gap].event();
        Edge::new(nodes, (Kind::Handover, Role::Handover), label, Evidence::Inferred)
    }

    fn span_ns(&self, gap: &Edge) -> (i64, i64) {
        let nodes = self.facts.nodes;
        (nodes.time_ns(gap.source), nodes.time_ns(gap.target))
    }

    /// What ended last of each name in each gap, shortly before its end.
    fn last_ends(&self) -> BTreeMap<StringId, Hits> {
        let farthest_ns = limits::QUEUE_REACHES_NS[limits::QUEUE_REACHES_NS.len() - 1];
        let mut by_name: BTreeMap<StringId, Hits> = BTreeMap::new();
        for (place, gap) in self.gaps.iter().enumerate() {
            let (start_ns, end_ns) = self.span_ns(gap);
            let after_ns = start_ns.max(end_ns - farthest_ns);
            let behind = self.ends.partition_point(|end| end.0 <= end_ns);
            for &(ended_ns, event) in self.ends[..behind].iter().rev() {
                if ended_ns <= after_ns {
                    break;
                }
                let name = self.facts.timeline.name(event);
                let Some(name) = name.filter(|_| self.is_elsewhere(event)) else { continue };
                let hits = by_name.entry(name).or_default();
                if hits.last().is_none_or(|&(last, _, _)| last != place) {
                    hits.push((place, event, end_ns - ended_ns));
                }
            }
        }
        by_name
    }

    fn is_elsewhere(&self, event: Order) -> bool {
        self.facts.timeline.lane(event) != self.thread
    }

    /// The hits of the name that most gaps wait for, if that can be no chance.
    fn best_name(&self, by_name: &BTreeMap<StringId, Hits>, reach_ns: i64) -> Option<Hits> {
        let within = |hits: &Hits| -> Hits {
            hits.iter().copied().filter(|&(_, _, lag_ns)| lag_ns <= reach_ns).collect()
        };
        let is_common = |hits: &Hits| hits.len() * 100 >= self.gaps.len() * limits::QUEUE_PERCENT;
        let common = by_name.iter().map(|(&name, hits)| (name, within(hits)));
        let common = common.filter(|(_, hits)| is_common(hits));
        let accepted = common.filter(|(name, hits)| self.is_no_chance(*name, hits.len(), reach_ns));
        let strength = |(_, hits): &(StringId, Hits)| {
            let lag_ns: i64 = hits.iter().map(|&(_, _, lag_ns)| lag_ns).sum();
            (hits.len(), std::cmp::Reverse(lag_ns))
        };
        accepted.max_by_key(strength).map(|(_, hits)| hits)
    }

    /// Whether so many gaps would hardly end by chance this soon after an end of the name.
    fn is_no_chance(&self, name: StringId, n_hits: usize, reach_ns: i64) -> bool {
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
            1.0 - (-rate * reach_ns.min(end_ns - start_ns) as f64).exp()
        };
        let mean = spans.iter().map(chance).sum::<f64>() / spans.len() as f64;
        chance_of(n_hits, spans.len(), mean) < limits::QUEUE_CHANCE
    }
}

/// How often a name ends: over the whole time, or in the gaps, whichever is more.
fn rate_per_ns(ends_ns: &[i64], gaps: &[(i64, i64)], all: &[(i64, Order)]) -> f64 {
    let whole_ns = all[all.len() - 1].0 - all[0].0;
    let before = |time_ns: i64| ends_ns.partition_point(|&end_ns| end_ns <= time_ns);
    let in_gaps: usize = gaps.iter().map(|gap| before(gap.1) - before(gap.0)).sum();
    let gaps_ns: i64 = gaps.iter().map(|gap| gap.1 - gap.0).sum();
    let per_ns = |count: usize, ns: i64| count as f64 / ns.max(1) as f64;
    per_ns(ends_ns.len(), whole_ns).max(per_ns(in_gaps, gaps_ns))
}

/// The chance of at least so many hits in so many trials (the tail of the binomial).
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
