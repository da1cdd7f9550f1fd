//! Keys that identify members of several ranks as one call.

use super::model::{Channel, Member, Rank};
use crate::vocabulary::Collective;

/// A process group, identified across ranks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum GroupKey {
    /// By its name, and its ranks or at least its size, because names are reused on different
    /// ranks.
    Named { name: String, ranks: Option<Vec<i64>>, size: Option<i64> },
    /// By the index of the stream among those without named groups.
    Stream(u32),
    /// All calls of a library on the CPU.
    Cpu,
}

/// The key of a call within its group, if the trace numbers calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    /// The call id that all ranks record.
    Id(u64),
    /// The sequence number within the group.
    Numbered(i64),
    /// Sender and receiver, with the number or index within the pair.
    Pair(i64, i64, i64),
}

impl GroupKey {
    pub(super) fn of(member: &Member, rank: &Rank) -> Self {
        match member.channel {
            Channel::Group(group) => {
                let group = &rank.groups[group as usize];
                let size = group.size.filter(|_| group.ranks.is_none());
                Self::Named { name: group.name.clone(), ranks: group.ranks.clone(), size }
            }
            Channel::Stream(stream) => Self::Stream(stream),
            Channel::Cpu => Self::Cpu,
        }
    }

    /// Returns the name of the group; `None` if the trace has none.
    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Self::Named { name, .. } => Some(name),
            Self::Stream(_) | Self::Cpu => None,
        }
    }

    /// Returns the ranks of the group, if listed.
    pub(super) fn ranks(&self) -> Option<&[i64]> {
        match self {
            Self::Named { ranks, .. } => ranks.as_deref(),
            Self::Stream(_) | Self::Cpu => None,
        }
    }
}

/// Returns the sender and the receiver of a member, if its peer is recorded.
pub(super) fn pair(member: &Member, own: Option<i64>) -> Option<(i64, i64)> {
    match member.operation {
        Some(Collective::Send) => Some((own?, member.peer.get()?)),
        Some(Collective::Receive) => Some((member.peer.get()?, own?)),
        _ => None,
    }
}

/// Returns the key of a member within its group; `None` if only order identifies it.
pub(super) fn key(member: &Member, own: Option<i64>) -> Option<Key> {
    if member.id != 0 {
        return Some(Key::Id(member.id));
    }
    if let Some((from, to)) = pair(member, own) {
        return Some(Key::Pair(from, to, member.sequence.get().unwrap_or(-1)));
    }
    Some(Key::Numbered(member.sequence.get()?))
}
