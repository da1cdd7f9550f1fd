//! The calls of several ranks: how much of each is waiting for the last rank and how much is
//! transfer, and what the ranks report differently.

use std::collections::BTreeMap;

use super::model::{Call, Clock, Member, Rank};
use crate::names::{Names, named};
use crate::vocabulary::Collective;

/// A disagreement between ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Its kind.
    pub kind: FindingKind,
    /// The name of the group, if it has one.
    pub group: Option<String>,
    /// The sequence number of the first call.
    pub sequence: Option<i64>,
    /// Number of calls.
    pub n_calls: i64,
    /// Indices of the ranks on one side: those that lack the call, or differ.
    pub ranks: Vec<u32>,
    /// Indices of the ranks on the other side.
    pub others: Vec<u32>,
    /// The value of each of `ranks` and then `others`, as text.
    pub values: Vec<String>,
    /// The event of each of `ranks` and then `others`, in its trace.
    pub events: Vec<u32>,
    /// Whether a rank has no call of the group before this one, or none after: it may not have been
    /// recording.
    pub is_at_edge: bool,
}

named! {
    /// Kinds of disagreement.
    FindingKind {
        /// A rank of the group has a trace but no such call.
        MissingCall "missing call",
        /// Ranks have different operations.
        OtherOperation "other operation",
        /// Ranks have different sizes where sizes must be equal.
        OtherSize "other size",
        /// Ranks have different data types.
        OtherDataType "other data type",
        /// Several alignments explain the calls of two ranks.
        AmbiguousAlignment "ambiguous alignment",
        /// Calls without a number and without a partner.
        Unmatched "unmatched call",
    }
}

/// Adds the disagreements of the members of a call.
pub(super) fn disagreements(ranks: &[&Rank], call: &Call, found: &mut Vec<Finding>) {
    let member = |&(rank, member): &(u32, u32)| &ranks[rank as usize].members[member as usize];
    let rows: Vec<_> = call.members.iter().map(member).collect();
    let operation = rows.iter().find_map(|row| row.operation.filter(|_| row.is_recorded));
    let must_agree = operation.is_some_and(sizes_agree) && !call.is_pair;
    let size = |row: &Member| row.in_elements.get().map(|it| it.to_string());
    let data_type = |row: &Member| row.data_type.map(|it| it.name().to_owned());
    let named = |row: &Member| row.is_recorded.then(|| operation_name(row).to_owned());
    if !call.is_pair {
        disagree(FindingKind::OtherOperation, call, &rows, &named, found);
    }
    disagree(FindingKind::OtherDataType, call, &rows, &data_type, found);
    if must_agree {
        disagree(FindingKind::OtherSize, call, &rows, &size, found);
    }
}

fn disagree(
    kind: FindingKind,
    call: &Call,
    rows: &[&Member],
    value: &dyn Fn(&Member) -> Option<String>,
    found: &mut Vec<Finding>,
) {
    let values: Vec<_> = rows.iter().map(|row| value(row)).collect();
    let mut counts: BTreeMap<&String, usize> = BTreeMap::new();
    values.iter().flatten().for_each(|it| *counts.entry(it).or_default() += 1);
    if counts.len() < 2 {
        return;
    }
    let usual = counts.iter().max_by_key(|&(_, &n)| n).map(|(it, _)| (*it).clone());
    let differs = |place: &usize| values[*place].is_some() && values[*place] != usual;
    let ranks = (0..values.len()).filter(differs).map(|it| call.members[it].0).collect();
    let others = (0..values.len()).filter(|it| !differs(it)).map(|it| call.members[it].0).collect();
    found.push(Finding {
        kind,
        group: call.group.clone(),
        sequence: call.sequence,
        n_calls: 1,
        ranks,
        others,
        values: values.into_iter().map(Option::unwrap_or_default).collect(),
        events: rows.iter().map(|row| row.event).collect(),
        is_at_edge: false,
    });
}

pub(super) fn operation_name(member: &Member) -> &'static str {
    member.operation.map_or("unknown", Names::name)
}

/// Whether all ranks must have the same size.
pub(super) fn sizes_agree(operation: Collective) -> bool {
    matches!(
        operation,
        Collective::AllReduce
            | Collective::Broadcast
            | Collective::Reduce
            | Collective::AllGather
            | Collective::ReduceScatter
    )
}

// Splits the time in each call into waiting for the last rank and transfer.
//
// The sum of waiting is not a cost: in a pipeline, waiting is part of the design. The joint graph
// determines what lateness costs.

/// If at least this percentage of the time in a call is waiting, the cause is late arrival.
const LATE_PERCENT: i64 = 70;

/// If at most this percentage is waiting, the cause is transfer.
const TRANSFER_PERCENT: i64 = 30;

/// The clock error must be smaller than the measured time by this factor.
const CLOCK_PART: i64 = 5;

named! {
    /// The cause of the time in a call.
    Cause {
        /// Moving data.
        Transfer "transfer",
        /// Waiting for the last rank.
        LateArrival "late arrival",
        /// Both.
        Mixed "mixed",
        /// Not known.
        Inconclusive "inconclusive",
    }
}

/// Times of each member of a call, in common time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shares {
    /// Arrival of each member.
    pub arrivals_ns: Vec<i64>,
    /// End of each member.
    pub ends_ns: Vec<i64>,
    /// Time waited for the last member.
    pub waits_ns: Vec<i64>,
    /// Time spent moving data.
    pub transfers_ns: Vec<i64>,
}

/// The time of one call by cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transfer {
    /// Index of the member that came last; `None` if ranks are absent.
    pub last: Option<usize>,
    /// How much later it came than the median.
    pub late_ns: i64,
    /// The cause of the time.
    pub cause: Cause,
    /// Whether a member ended before another arrived, by more than the clock error.
    pub is_impossible: bool,
}

/// Returns waiting and transfer of each call.
pub fn transfers(ranks: &[&Rank], calls: &[Call], clocks: &[Clock]) -> Vec<Transfer> {
    calls.iter().map(|call| transfer(call, ranks, clocks)).collect()
}

/// Returns waiting and transfer of each member of a call.
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
    // The last member cannot have waited, so only the time of the others counts.
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
    /// Returns the cause, from the time that ranks waited and the time that data moved.
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
