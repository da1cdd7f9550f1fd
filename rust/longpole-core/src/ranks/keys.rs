//! What tells that members of several ranks are one call.

use super::model::{Channel, Member, Rank};
use crate::vocabulary::Collective;

/// A process group as all ranks know it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum GroupKey {
    /// By its name, and its ranks or at least its size: names are given anew on each rank.
    Named { name: String, ranks: Option<Vec<i64>>, size: Option<i64> },
    /// By the place of the stream among those without names.
    Stream(u32),
    /// All calls of a library on the CPU.
    Cpu,
}

/// What a call of a group is found by, if the trace numbers calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    /// The number that all ranks give to it.
    Id(u64),
    /// Its number within the group.
    Numbered(i64),
    /// From one rank to another, with its number or its place among those of the pair.
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

    /// Its name; none where the trace names no group.
    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Self::Named { name, .. } => Some(name),
            Self::Stream(_) | Self::Cpu => None,
        }
    }

    /// Its ranks, where they are listed.
    pub(super) fn ranks(&self) -> Option<&[i64]> {
        match self {
            Self::Named { ranks, .. } => ranks.as_deref(),
            Self::Stream(_) | Self::Cpu => None,
        }
    }
}

/// The sender and the receiver of a member, where it names its peer.
pub(super) fn pair(member: &Member, own: Option<i64>) -> Option<(i64, i64)> {
    match member.operation {
        Some(Collective::Send) => Some((own?, member.peer.get()?)),
        Some(Collective::Receive) => Some((member.peer.get()?, own?)),
        _ => None,
    }
}

/// The key of a member within its group. None where only its place tells.
pub(super) fn key(member: &Member, own: Option<i64>) -> Option<Key> {
    if member.id != 0 {
        return Some(Key::Id(member.id));
    }
    if let Some((from, to)) = pair(member, own) {
        return Some(Key::Pair(from, to, member.sequence.get().unwrap_or(-1)));
    }
    Some(Key::Numbered(member.sequence.get()?))
}
