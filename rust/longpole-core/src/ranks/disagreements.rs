//! Disagreements between the ranks of a call.

use std::collections::BTreeMap;

use super::model::Call;
use super::model::{Member, Rank};
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
    /// The event of each of these in its trace.
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
