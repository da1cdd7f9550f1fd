//! Determines for which members of a call the end of a member waits.

use super::calls::Call;
use super::model::Rank;
use crate::ids::row_in_column;
use crate::vocabulary::Collective;

/// Larger sends wait for their receiver. An assumption about how much libraries buffer.
const LARGEST_BUFFERED_BYTES: i64 = 4 << 20;

/// Returns the members of a call for whose arrival the end of one member waits; `None` for all
/// members.
pub(super) fn waits_for(
    call: &Call,
    at: usize,
    observed: &[&Rank],
    arrived_ns: &[i64],
    end_ns: i64,
) -> Option<Vec<u32>> {
    let own = row_in_column(at);
    let (rank, member) = call.members[at];
    let member = &observed[rank as usize].members[member as usize];
    let is_buffered = member.bytes.get().is_none_or(|bytes| bytes <= LARGEST_BUFFERED_BYTES);
    if call.is_pair && member.operation == Some(Collective::Send) && is_buffered {
        return Some(vec![own]);
    }
    if arrived_ns.iter().all(|&time_ns| time_ns <= end_ns) {
        return None;
    }
    let before = (0..arrived_ns.len()).filter(|&it| arrived_ns[it] <= end_ns);
    let last = before.max_by_key(|&it| (arrived_ns[it], std::cmp::Reverse(it)));
    let mut only: Vec<_> = last.map(row_in_column).into_iter().chain([own]).collect();
    only.dedup();
    Some(only)
}
