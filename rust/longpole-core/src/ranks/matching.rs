//! Matches the members of several ranks that belong to one call.
//!
//! A call id that all ranks record decides, then the sequence number within the group, then the
//! pair of ranks. Without these, order decides; `alignment` checks and repairs it, and such matches
//! are marked as inferred. Disagreements between ranks, and calls that a rank lacks, are reported
//! as findings.
//!
//! Limits: groups with different names on different ranks are not recognized. Streams without named
//! groups are matched by their order of first use.

use std::collections::{BTreeMap, BTreeSet};

use super::alignment::{Item, Way, align};
use super::calls;
use super::calls::{Finding, FindingKind, disagreements, operation_name, sizes_agree};
use super::model::{Call, Channel, Member, Method, Rank};
use crate::ids::row_in_column;
use crate::vocabulary::{Collective, DataType};

/// The calls of several ranks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Matching {
    /// Calls of at least two ranks, or of one whose partners have no trace, in order of their end.
    pub calls: Vec<Call>,
    /// Disagreements between ranks.
    pub findings: Vec<Finding>,
}

/// Matches the calls of ranks, given in order of their numbers.
pub fn matching(ranks: &[&Rank]) -> Matching {
    let matcher = Matcher::new(ranks);
    let mut found = Matching::default();
    for &group in matcher.places.values() {
        let group = &matcher.groups[group];
        matcher.numbered(group, &mut found);
        matcher.ordered(group, &mut found);
    }
    found.calls.sort_by_key(|call| {
        let end = |&(rank, member): &(u32, u32)| {
            let rank = ranks[rank as usize];
            rank.base_ns + rank.members[member as usize].end_ns
        };
        (call.members.iter().map(end).max(), call.members.clone())
    });
    found.findings.sort_by_key(|finding| (finding.kind, finding.group.clone(), finding.sequence));
    found
}

/// The calls of a group: numbered ones by key, others by rank in order.
struct GroupCalls {
    key: GroupKey,
    numbered: BTreeMap<(Key, u32), Vec<(u32, u32)>>,
    ordered: BTreeMap<u32, Vec<u32>>,
    /// The ranks with any call of the group, with the smallest and largest sequence number.
    users: BTreeMap<u32, Option<(i64, i64)>>,
}

struct Matcher<'a> {
    ranks: &'a [&'a Rank],
    place_of: BTreeMap<i64, u32>,
    world_size: Option<i64>,
    groups: Vec<GroupCalls>,
    /// Index of each group.
    places: BTreeMap<GroupKey, usize>,
}

impl<'a> Matcher<'a> {
    fn new(ranks: &'a [&'a Rank]) -> Self {
        let places = ranks.iter().enumerate();
        let place_of =
            places.filter_map(|(place, it)| Some((it.rank?, row_in_column(place)))).collect();
        let world_size = ranks.iter().find_map(|it| it.world_size);
        let (groups, places) = (Vec::new(), BTreeMap::new());
        let mut matcher = Self { ranks, place_of, world_size, groups, places };
        for place in 0..ranks.len() {
            matcher.sort_members(place);
        }
        matcher
    }

    fn sort_members(&mut self, place: usize) {
        let rank = self.ranks[place];
        let mut seen: BTreeMap<(usize, Key), u32> = BTreeMap::new();
        // The key of a group may list thousands of ranks, so it is built once.
        let mut known: BTreeMap<Channel, usize> = BTreeMap::new();
        for (member, row) in rank.members.iter().enumerate() {
            let group = *known.entry(row.channel).or_insert_with(|| self.group(row, rank));
            let calls = &mut self.groups[group];
            let (place, member) = (row_in_column(place), row_in_column(member));
            let numbers = calls.users.entry(place).or_default();
            if let Some(number) = row.sequence.get() {
                let (least, greatest) = numbers.unwrap_or((number, number));
                *numbers = Some((least.min(number), greatest.max(number)));
            }
            match key(row, rank.rank) {
                Some(key) => {
                    let nth = seen.entry((group, key)).or_default();
                    calls.numbered.entry((key, *nth)).or_default().push((place, member));
                    *nth += 1;
                }
                None => calls.ordered.entry(place).or_default().push(member),
            }
        }
    }

    /// Returns the index of the group of a member.
    fn group(&mut self, member: &Member, rank: &Rank) -> usize {
        let key = GroupKey::of(member, rank);
        *self.places.entry(key).or_insert_with_key(|key| {
            self.groups.push(GroupCalls {
                key: key.clone(),
                numbered: BTreeMap::new(),
                ordered: BTreeMap::new(),
                users: BTreeMap::new(),
            });
            self.groups.len() - 1
        })
    }

    fn member(&self, (rank, member): (u32, u32)) -> &'a Member {
        &self.ranks[rank as usize].members[member as usize]
    }

    fn numbered(&self, group: &GroupCalls, found: &mut Matching) {
        for ((key, _), members) in &group.numbered {
            let method = match key {
                Key::Id(_) => Method::CallId,
                Key::Numbered(_) => Method::Sequence,
                Key::Pair(..) => Method::Pair,
            };
            let call = self.call(members.clone(), method, group);
            disagreements(self.ranks, &call, &mut found.findings);
            self.note_missing(&call, group, found);
            found.calls.push(call);
        }
    }

    /// Matches calls without numbers by their order.
    fn ordered(&self, group: &GroupCalls, found: &mut Matching) {
        let items = |(&rank, members): (&u32, &Vec<u32>)| {
            (rank, members.iter().map(|&member| self.item(rank, member)).collect::<Vec<_>>())
        };
        let sequences: Vec<_> = group.ordered.iter().map(items).collect();
        let aligned = align(sequences);
        let has_call = |&rank: &u32| vec![false; self.ranks[rank as usize].members.len()];
        let mut has_call: BTreeMap<u32, Vec<bool>> =
            group.ordered.keys().map(|rank| (*rank, has_call(rank))).collect();
        for mut members in aligned.calls {
            members.sort_unstable();
            for (rank, member) in &members {
                has_call.entry(*rank).and_modify(|it| it[*member as usize] = true);
            }
            found.calls.push(self.call(members, Method::Order, group));
        }
        for (one, other) in aligned.ambiguous {
            found.findings.push(finding(
                calls::FindingKind::AmbiguousAlignment,
                group,
                &[one],
                &[other],
            ));
        }
        self.alone(group, &has_call, found);
    }

    fn item(&self, rank: u32, member: u32) -> Item {
        let row = self.member((rank, member));
        let base_ns = self.ranks[rank as usize].base_ns;
        Item {
            member,
            step: row.step,
            likeness: likeness(row),
            way: way(row),
            start_ns: base_ns + row.start_ns,
            end_ns: base_ns + row.end_ns,
        }
    }

    /// Adds calls without a partner whose other ranks have no trace.
    fn alone(&self, group: &GroupCalls, has_call: &BTreeMap<u32, Vec<bool>>, found: &mut Matching) {
        for (&rank, members) in &group.ordered {
            let is_alone = |member: &u32| !has_call[&rank][*member as usize];
            let members: Vec<u32> = members.iter().copied().filter(is_alone).collect();
            if members.is_empty() {
                continue;
            }
            if self.expected(group).0 == 1 || self.ranks.len() == 1 {
                let calls =
                    members.iter().map(|&it| self.call(vec![(rank, it)], Method::Order, group));
                found.calls.extend(calls);
                continue;
            }
            let mut finding = finding(calls::FindingKind::Unmatched, group, &[rank], &[]);
            finding.n_calls = i64::try_from(members.len()).unwrap_or(i64::MAX);
            finding.events = members.iter().map(|&it| self.member((rank, it)).event).collect();
            found.findings.push(finding);
        }
    }

    /// Returns the number of ranks with a trace that use a group, and the size of the group.
    fn expected(&self, group: &GroupCalls) -> (usize, Option<i64>) {
        let listed = group.key.ranks().and_then(|ranks| i64::try_from(ranks.len()).ok());
        let size = match &group.key {
            GroupKey::Named { size, .. } => listed.or(*size),
            GroupKey::Stream(_) | GroupKey::Cpu => self.world_size,
        };
        (group.users.len(), size)
    }

    fn call(&self, mut members: Vec<(u32, u32)>, method: Method, group: &GroupCalls) -> Call {
        members.sort_unstable();
        let first = self.member(members[0]);
        let own = self.ranks[members[0].0 as usize].rank;
        let between = pair(first, own).filter(|_| method != Method::Order);
        let is_message = way(first).is_some() && members.len() == 2;
        let (listed, size) = match between {
            Some((from, to)) => (Some(vec![from, to]), Some(2)),
            None if is_message => (None, Some(2)),
            None => (group.key.ranks().map(<[i64]>::to_vec), self.expected(group).1),
        };
        let present: BTreeSet<u32> = members.iter().map(|member| member.0).collect();
        let listed = listed.unwrap_or_default();
        let absent: Vec<i64> =
            listed.iter().copied().filter(|rank| !self.place_of.contains_key(rank)).collect();
        let in_group = listed.iter().filter_map(|rank| self.place_of.get(rank)).copied();
        let is_for_all = listed.is_empty() && between.is_none() && !is_message;
        let users = group.users.keys().copied().filter(|_| is_for_all);
        let missing: BTreeSet<u32> =
            in_group.chain(users).filter(|it| !present.contains(it)).collect();
        let known = i64::try_from(present.len() + missing.len()).unwrap_or(i64::MAX);
        let n_absent = size.map_or(0, |size| size.saturating_sub(known).max(0));
        Call {
            method,
            group: group.key.name().map(str::to_owned),
            sequence: first.sequence.get(),
            is_pair: between.is_some() || is_message,
            absent,
            n_absent,
            missing: missing.into_iter().collect(),
            members,
        }
    }

    fn note_missing(&self, call: &Call, group: &GroupCalls, found: &mut Matching) {
        if call.missing.is_empty() {
            return;
        }
        let present: Vec<u32> = call.members.iter().map(|member| member.0).collect();
        let last = found.findings.last_mut().filter(|last| {
            last.kind == calls::FindingKind::MissingCall
                && last.group == call.group
                && (&last.ranks, &last.others) == (&call.missing, &present)
                && last.sequence.map(|first| first.saturating_add(last.n_calls)) == call.sequence
        });
        if let Some(last) = last {
            last.n_calls += 1;
            last.is_at_edge |= is_at_edge(call, group);
            return;
        }
        let mut finding = finding(calls::FindingKind::MissingCall, group, &call.missing, &present);
        finding.sequence = call.sequence;
        finding.values = vec![operation_name(self.member(call.members[0])).to_owned()];
        finding.events = call.members.iter().map(|&member| self.member(member).event).collect();
        finding.is_at_edge = is_at_edge(call, group);
        found.findings.push(finding);
    }
}

/// Whether a rank that lacks a call has no call of the group before it, or none after it.
fn is_at_edge(call: &Call, group: &GroupCalls) -> bool {
    let Some(sequence) = call.sequence else { return true };
    call.missing.iter().any(|rank| {
        let numbers = group.users.get(rank).copied().flatten();
        !numbers.is_some_and(|(least, greatest)| least < sequence && sequence < greatest)
    })
}

/// Returns the direction of a member, if it is a message.
fn way(member: &Member) -> Option<Way> {
    match member.operation? {
        Collective::Send => Some(Way::Out),
        Collective::Receive => Some(Way::In),
        _ => None,
    }
}

/// Returns a hash of the properties that members of one call have in common.
fn likeness(member: &Member) -> u64 {
    // A send and a receive belong to one call.
    let operation = match member.operation {
        Some(Collective::Receive) => Some(Collective::Send),
        known => known,
    };
    let operation = operation.map_or(0, |it| it as u64 + 1);
    let size = member.operation.filter(|&it| sizes_agree(it)).and(member.in_elements.get());
    let text = member.data_type.map_or("", DataType::name);
    let mut hash =
        operation.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ size.unwrap_or(-1).cast_unsigned();
    for byte in text.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash
}

fn finding(kind: FindingKind, group: &GroupCalls, ranks: &[u32], others: &[u32]) -> Finding {
    Finding {
        kind,
        group: group.key.name().map(str::to_owned),
        sequence: None,
        n_calls: 1,
        ranks: ranks.to_vec(),
        others: others.to_vec(),
        values: Vec::new(),
        events: Vec::new(),
        is_at_edge: false,
    }
}

// Keys that identify members of several ranks as one call.

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
