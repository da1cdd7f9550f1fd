//! Aligns the clocks of ranks, assuming that calls end on all ranks at the same time.
//!
//! An offset is the median difference between a rank's ends and the median end of each call,
//! computed iteratively. A drift is fitted only if it is visible. The fact that no member can end
//! before the last one arrives leaves a range of milliseconds, and is only used as a check.
//!
//! Limits: a constant difference of ends, such as one caused by the position in a ring, cannot be
//! distinguished from an offset.

use std::collections::BTreeMap;

use super::model::Call;
use super::model::Rank;
use super::model::{Clock, float, rounded};
use crate::vocabulary::Collective;

/// Number of iterations for the offsets; they converge within half of them.
const ROUNDS: usize = 12;

/// First iteration in which a drift may be fitted.
const ROUNDS_WITHOUT_DRIFT: usize = 4;

/// Minimum number of calls to fit a drift.
const LEAST_CALLS_FOR_DRIFT: usize = 20;

/// Maximum plausible drift of a clock.
const LARGEST_DRIFT: f64 = 100e-6;

/// Usual drift of a clock. A drift is fitted only if this much of it, over the time between the
/// first and the last call, exceeds the residual by a factor of four.
const USUAL_DRIFT: f64 = 20e-6;

/// A drift is kept if the residual with it is below this fraction of the residual without it.
const DRIFT_IMPROVES: f64 = 0.8;

/// Maximum number of calls used to fit a slope.
const MOST_CALLS_OF_SLOPE: usize = 200;

/// Smallest error bound that is reported, in ns.
const LEAST_BOUND_NS: f64 = 3_000.0;

/// Ranks of one host share a clock: offsets below this are ignored.
const LEAST_SHIFT_WITHIN_HOST_NS: f64 = 20_000.0;

/// The clocks of all ranks.
pub type Clocks = Vec<Clock>;

/// Computes the clocks of ranks from the ends of their calls.
pub fn clocks(ranks: &[&Rank], calls: &[Call]) -> Clocks {
    let fit = Fit::new(ranks, calls);
    fit.run(ranks)
}

/// The ends of usable calls, relative to the first end of each rank.
struct Fit {
    /// The ends of each usable call as (rank, time).
    ends: Vec<Vec<(usize, f64)>>,
    /// The offsets recorded in the files, and the origin of times.
    base_ns: Vec<i64>,
    origin_ns: Vec<i64>,
    offset: Vec<f64>,
    drift: Vec<f64>,
    connected: Vec<bool>,
    /// Number of usable calls of each rank, with the first and the last end.
    spans: Vec<Span>,
    /// The time range in which all ranks have calls.
    common: (f64, f64),
}

#[derive(Clone, Copy)]
struct Span {
    n: usize,
    first: f64,
    last: f64,
}

impl Span {
    fn of_ranks(n_ranks: usize, ends: &[Vec<(usize, f64)>]) -> Vec<Self> {
        let mut spans = vec![Self { n: 0, first: f64::MAX, last: f64::MIN }; n_ranks];
        for &(rank, time) in ends.iter().flatten() {
            let span = &mut spans[rank];
            *span = Self { n: span.n + 1, first: span.first.min(time), last: span.last.max(time) };
        }
        spans
    }

    fn length(self) -> f64 {
        if self.n == 0 { 0.0 } else { self.last - self.first }
    }
}

/// Returns the ends of calls usable for clocks: of calls that end together, and of calls that may
/// end apart only if no other calls connect their ranks.
fn usable_ends(
    ranks: &[&Rank],
    calls: &[Call],
    ends: impl Fn(&Call) -> Vec<(usize, f64)>,
) -> Vec<Vec<(usize, f64)>> {
    let (together, apart): (Vec<_>, Vec<_>) = calls
        .iter()
        .filter(|call| call.members.len() > 1)
        .partition(|call| ends_together(call, ranks));
    let mut found: Vec<_> = together.into_iter().map(&ends).collect();
    let mut parts: Vec<usize> = (0..ranks.len()).collect();
    for call in &found {
        join(&mut parts, call);
    }
    let joins_parts = |call: &&Call| {
        let part = |member: &(u32, u32)| parts[member.0 as usize];
        call.members.iter().any(|member| part(member) != part(&call.members[0]))
    };
    found.extend(apart.into_iter().filter(joins_parts).map(&ends));
    found
}

impl Fit {
    fn new(ranks: &[&Rank], calls: &[Call]) -> Self {
        let first_base_ns = ranks.first().map_or(0, |rank| rank.base_ns);
        let base_ns: Vec<_> = ranks.iter().map(|rank| rank.base_ns - first_base_ns).collect();
        let origin_ns: Vec<_> = ranks.iter().map(|rank| rank.window_ns.0).collect();
        let zero_ns = origin_ns.first().copied().unwrap_or(0);
        let ends = |call: &Call| {
            let stamp = |&(rank, member): &(u32, u32)| {
                let place = rank as usize;
                let end_ns = ranks[place].members[member as usize].end_ns;
                (place, float(end_ns + base_ns[place] - zero_ns))
            };
            call.members.iter().map(stamp).collect::<Vec<_>>()
        };
        let ends = usable_ends(ranks, calls, ends);
        let spans = Span::of_ranks(ranks.len(), &ends);
        let n = ranks.len();
        Self {
            ends,
            base_ns,
            origin_ns,
            offset: vec![0.0; n],
            drift: vec![0.0; n],
            connected: vec![false; n],
            spans,
            common: (f64::MIN, f64::MAX),
        }
    }

    fn run(mut self, ranks: &[&Rank]) -> Clocks {
        self.span_tree();
        for _ in 0..ROUNDS {
            self.round();
        }
        let plain: Vec<_> = self.residuals();
        let offsets = self.offset.clone();
        if (0..ranks.len()).any(|rank| self.may_drift(rank, &plain)) {
            self.offset.clone_from(&offsets);
            for round in 0..ROUNDS {
                if round >= ROUNDS_WITHOUT_DRIFT {
                    self.fit_drifts(&plain);
                }
                self.round();
            }
            self.keep_drifts_that_show(&plain, &offsets);
        }
        self.common = self.common_span();
        let residuals = self.residuals();
        (0..ranks.len()).map(|rank| self.clock(rank, ranks, &residuals)).collect()
    }

    /// Sets initial offsets from the medians of pairs, outward from the first rank of each
    /// connected component.
    fn span_tree(&mut self) {
        let n = self.offset.len();
        let mut differences: BTreeMap<(usize, usize), Vec<f64>> = BTreeMap::new();
        for call in &self.ends {
            for &(rank, time) in &call[1..] {
                differences.entry((call[0].0, rank)).or_default().push(call[0].1 - time);
            }
        }
        let mut near: Vec<Vec<(usize, f64)>> = vec![Vec::new(); n];
        for ((one, other), mut values) in differences {
            let difference = median(&mut values);
            near[one].push((other, difference));
            near[other].push((one, -difference));
        }
        let mut is_known = vec![false; n];
        for start in 0..n {
            let mut open = if is_known[start] { vec![] } else { vec![start] };
            while let Some(rank) = open.pop() {
                is_known[rank] = true;
                self.connected[rank] |= start == 0;
                for &(other, difference) in &near[rank] {
                    if !is_known[other] {
                        is_known[other] = true;
                        self.offset[other] = self.offset[rank] + difference;
                        open.push(other);
                    }
                }
            }
        }
    }

    fn shifted(&self, rank: usize, time: f64) -> f64 {
        let since = time - float(self.origin_ns[rank] + self.base_ns[rank] - self.origin_ns[0]);
        time + self.offset[rank] + self.drift[rank] * since
    }

    /// For each rank, returns the time of each of its calls and the difference of its end from the
    /// median.
    fn differences(&self) -> Vec<Vec<(f64, f64)>> {
        let mut found = vec![Vec::new(); self.offset.len()];
        for call in &self.ends {
            let mut times: Vec<_> =
                call.iter().map(|&(rank, time)| self.shifted(rank, time)).collect();
            let consensus = median(&mut times);
            for &(rank, time) in call {
                found[rank].push((time, consensus - self.shifted(rank, time)));
            }
        }
        found
    }

    fn round(&mut self) {
        let differences = self.differences();
        for (rank, rows) in differences.iter().enumerate() {
            let mut values: Vec<_> = rows.iter().map(|&(_, difference)| difference).collect();
            if !values.is_empty() {
                self.offset[rank] += median(&mut values);
            }
        }
        let first = self.offset[0];
        for (rank, offset) in self.offset.iter_mut().enumerate() {
            if self.connected[rank] {
                *offset -= first;
            }
        }
    }

    fn fit_drifts(&mut self, plain: &[(f64, f64)]) {
        let differences = self.differences();
        for (rank, rows) in differences.iter().enumerate() {
            if rank > 0 && self.may_drift(rank, plain) {
                let drift = self.drift[rank] + slope(rows);
                self.drift[rank] = drift.clamp(-LARGEST_DRIFT, LARGEST_DRIFT);
            }
        }
    }

    /// Whether a rank has enough calls, over enough time, to reveal a drift.
    fn may_drift(&self, rank: usize, plain: &[(f64, f64)]) -> bool {
        let span = self.spans[rank];
        span.n >= LEAST_CALLS_FOR_DRIFT
            && span.length() * USUAL_DRIFT > 4.0 * plain[rank].0.min(LEAST_BOUND_NS)
    }

    fn keep_drifts_that_show(&mut self, plain: &[(f64, f64)], offsets: &[f64]) {
        let residuals = self.residuals();
        let total = |of: &[(f64, f64)]| of.iter().map(|residual| residual.0).sum::<f64>();
        let spans = (0..self.offset.len()).all(|rank| {
            let drifts = self.drift[rank].abs();
            drifts == 0.0 || self.spans[rank].length() * USUAL_DRIFT > 4.0 * residuals[rank].0
        });
        if !spans || total(&residuals) > DRIFT_IMPROVES * total(plain) {
            self.drift.fill(0.0);
            self.offset.copy_from_slice(offsets);
        }
    }

    /// For each rank, returns the median and the largest absolute difference of its ends.
    fn residuals(&self) -> Vec<(f64, f64)> {
        let of_rank = |rows: &Vec<(f64, f64)>| {
            let mut values: Vec<_> = rows.iter().map(|row| row.1.abs()).collect();
            let worst = values.iter().copied().fold(0.0, f64::max);
            (if values.is_empty() { 0.0 } else { median(&mut values) }, worst)
        };
        self.differences().iter().map(of_rank).collect()
    }

    fn clock(&self, rank: usize, ranks: &[&Rank], residuals: &[(f64, f64)]) -> Clock {
        let (residual, worst) = residuals[rank];
        // The ends of either rank may differ by a constant that cannot be observed.
        let own = |rank: usize| (4.0 * residuals[rank].0).max(LEAST_BOUND_NS);
        let bound = if rank == 0 { own(0) } else { own(rank).hypot(own(0)) };
        let host = ranks[rank].host.as_ref();
        let shares_host = host.is_some() && host == ranks[0].host.as_ref();
        let offset = self.offset[rank];
        let is_still = offset.abs() <= bound && self.drift[rank] == 0.0
            || shares_host && offset.abs() <= LEAST_SHIFT_WITHIN_HOST_NS;
        let (offset, drift) = if is_still { (0.0, 0.0) } else { (offset, self.drift[rank]) };
        let span = self.spans[rank];
        let calls = (self.shifted(rank, span.first), self.shifted(rank, span.last));
        let shown = |time_ns: i64| float(time_ns + self.base_ns[rank] - self.origin_ns[0]);
        let window = ranks[rank].window_ns;
        let window = (self.shifted(rank, shown(window.0)), self.shifted(rank, shown(window.1)));
        Clock {
            offset_ns: rounded(offset) + self.base_ns[rank],
            drift,
            origin_ns: self.origin_ns[rank],
            base_ns: self.base_ns[rank],
            residual_ns: rounded(residual),
            worst_residual_ns: rounded(worst),
            bound_ns: rounded(bound + self.drift_outside(rank, calls, bound)),
            edge_bound_ns: rounded(bound + self.drift_outside(rank, window, bound)),
            n_calls: self.spans[rank].n,
            is_connected: self.connected[rank],
        }
    }
}

impl Fit {
    /// Returns a bound of the drift of a clock between two times outside the common range: another
    /// rank that connects it to the first may begin later.
    fn drift_outside(&self, rank: usize, (start, end): (f64, f64), bound: f64) -> f64 {
        let span = self.spans[rank];
        if rank == 0 || span.n == 0 {
            return 0.0;
        }
        let outside = (self.common.0 - start).max(end - self.common.1).max(0.0);
        let is_fitted = self.drift[rank] != 0.0;
        let rate = if is_fitted { bound / span.length().max(1.0) } else { USUAL_DRIFT };
        outside * rate.min(USUAL_DRIFT)
    }

    /// Returns the time range in which all ranks connected to the first rank have calls.
    fn common_span(&self) -> (f64, f64) {
        let joined = || {
            let known = |&(rank, span): &(usize, &Span)| self.connected[rank] && span.n > 0;
            self.spans.iter().enumerate().filter(known)
        };
        let first = joined().map(|(rank, span)| self.shifted(rank, span.first));
        let last = joined().map(|(rank, span)| self.shifted(rank, span.last));
        (first.fold(f64::MIN, f64::max), last.fold(f64::MAX, f64::min))
    }
}

/// Merges the components of the ranks of a call; connected ranks have the same number.
fn join(parts: &mut [usize], call: &[(usize, f64)]) {
    let into = parts[call[0].0];
    for &(rank, _) in &call[1..] {
        let from = parts[rank];
        if from != into {
            parts.iter_mut().filter(|part| **part == from).for_each(|part| *part = into);
        }
    }
}

/// Whether a call ends on all ranks at the same time.
fn ends_together(call: &Call, ranks: &[&Rank]) -> bool {
    call.members.iter().all(|&(rank, member)| {
        let operation = ranks[rank as usize].members[member as usize].operation;
        matches!(
            operation,
            Some(
                Collective::AllReduce
                    | Collective::AllGather
                    | Collective::ReduceScatter
                    | Collective::AllToAll
                    | Collective::Barrier
            )
        )
    })
}

/// Returns the median; for an even number of values, the mean of the middle two.
fn median(values: &mut [f64]) -> f64 {
    let middle = values.len() / 2;
    let upper = *values.select_nth_unstable_by(middle, f64::total_cmp).1;
    if values.len() % 2 == 1 {
        return upper;
    }
    let lower = values[..middle].iter().copied().fold(f64::MIN, f64::max);
    f64::midpoint(lower, upper)
}

/// Returns the median slope between pairs of a sample of calls (Theil-Sen estimator).
fn slope(rows: &[(f64, f64)]) -> f64 {
    let every = rows.len().div_ceil(MOST_CALLS_OF_SLOPE).max(1);
    let sample: Vec<_> = rows.iter().step_by(every).collect();
    let mut slopes = Vec::new();
    for (place, one) in sample.iter().enumerate() {
        for other in &sample[place + 1..] {
            if (other.0 - one.0).abs() > 1.0 {
                slopes.push((other.1 - one.1) / (other.0 - one.0));
            }
        }
    }
    if slopes.is_empty() { 0.0 } else { median(&mut slopes) }
}
