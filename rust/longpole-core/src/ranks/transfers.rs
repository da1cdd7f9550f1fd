//! Splits the time in each call into waiting for the last rank and transfer.
//!
//! The sum of waiting is no cost: in a pipeline it is part of the design. What lateness costs
//! is for the joint graph to say.

use super::calls::Call;
use super::clock::Clock;
use super::model::Rank;
use crate::names::named;

/// Waiting of this part of the time in a call makes it late, ...
const LATE_PERCENT: i64 = 70;

/// ... and of no more than this, a matter of transfer.
const TRANSFER_PERCENT: i64 = 30;

/// Clocks must be this many times better than what they are to measure.
const CLOCK_PART: i64 = 5;

named! {
    /// What the time in a call is spent on.
    Cause {
        /// Moving data.
        Transfer "transfer",
        /// Waiting for the last rank.
        LateArrival "late arrival",
        /// Both.
        Mixed "mixed",
        /// It cannot be told.
        Inconclusive "inconclusive",
    }
}

/// The share of each member in a call, by the common clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shares {
    /// When each member arrived.
    pub arrivals_ns: Vec<i64>,
    /// When it ended.
    pub ends_ns: Vec<i64>,
    /// How long it waited for the last one.
    pub waits_ns: Vec<i64>,
    /// How long it moved data.
    pub transfers_ns: Vec<i64>,
}

/// What the time of one call was spent on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transfer {
    /// The place of the member that came last; none where ranks are absent.
    pub last: Option<usize>,
    /// By how much that was later than the median.
    pub late_ns: i64,
    /// What the time was spent on.
    pub cause: Cause,
    /// Whether a member ended before another arrived by more than clocks may be off.
    pub is_impossible: bool,
}

/// Waiting and transfer of each call.
pub fn transfers(ranks: &[&Rank], calls: &[Call], clocks: &[Clock]) -> Vec<Transfer> {
    calls.iter().map(|call| transfer(call, ranks, clocks)).collect()
}

/// Waiting and transfer of each member of a call.
pub fn shares(call: &Call, ranks: &[&Rank], clocks: &[Clock]) -> Shares {
    let stamp = |time: fn(&super::model::Member) -> i64| -> Vec<i64> {
        let common = |&(rank, member): &(u32, u32)| {
            let rank = rank as usize;
            clocks[rank].common_ns(time(&ranks[rank].members[member as usize]))
        };
        call.members.iter().map(common).collect()
    };
    let (arrivals_ns, ends_ns) = (stamp(|it| it.start_ns), stamp(|it| it.end_ns));
    let last_ns = arrivals_ns.iter().copied().max().unwrap_or_default();
    let waits_ns = arrivals_ns.iter().map(|it| last_ns - it).collect();
    let transfers_ns = ends_ns.iter().map(|end| (end - last_ns).max(0)).collect();
    Shares { arrivals_ns, ends_ns, waits_ns, transfers_ns }
}

fn transfer(call: &Call, ranks: &[&Rank], clocks: &[Clock]) -> Transfer {
    let Shares { arrivals_ns, ends_ns, waits_ns, transfers_ns } = shares(call, ranks, clocks);
    let last_ns = arrivals_ns.iter().copied().max().unwrap_or_default();
    let last = arrivals_ns.iter().position(|&it| it == last_ns);
    let bound_ns = call.members.iter().map(|it| clocks[it.0 as usize].bound_ns).max().unwrap_or(0);
    let is_connected =
        call.members.iter().all(|it| clocks[it.0 as usize].is_connected) || call.members.len() == 1;
    let first_end_ns = ends_ns.iter().copied().min().unwrap_or_default();
    let is_alone = call.members.len() < 2
        || call.n_absent > 0
        || !call.absent.is_empty()
        || !call.missing.is_empty();
    let longest_ns = ends_ns.iter().zip(&arrivals_ns).map(|(end, start)| end - start).max();
    let is_vague = bound_ns * CLOCK_PART > longest_ns.unwrap_or(0) && call.members.len() > 1;
    // The last one cannot have waited: only the time of the others tells.
    let others = |of: &[i64]| -> i64 {
        of.iter().enumerate().filter(|&(place, _)| Some(place) != last).map(|(_, ns)| ns).sum()
    };
    let cause = if is_alone || is_vague || !is_connected {
        Cause::Inconclusive
    } else {
        Cause::of(others(&waits_ns), others(&transfers_ns))
    };
    Transfer {
        late_ns: last_ns - median(&arrivals_ns),
        last: last.filter(|_| !is_alone),
        is_impossible: first_end_ns < last_ns - bound_ns,
        cause,
    }
}

impl Cause {
    /// What most of the time is, of the time in which ranks waited and data moved.
    fn of(waited_ns: i64, moved_ns: i64) -> Self {
        let total_ns = waited_ns + moved_ns;
        if waited_ns * 100 >= LATE_PERCENT * total_ns {
            Self::LateArrival
        } else if waited_ns * 100 <= TRANSFER_PERCENT * total_ns {
            Self::Transfer
        } else {
            Self::Mixed
        }
    }
}

fn median(values: &[i64]) -> i64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len().saturating_sub(1) / 2).copied().unwrap_or_default()
}
