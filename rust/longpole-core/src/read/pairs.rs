//! Begin and end events, which belong together by where and when they stand.

use std::collections::HashMap;
use std::hash::Hash;

use crate::diagnostics::Code;
use crate::ids::{EventId, StringId};
use crate::tables::EventTable;

/// A process and a thread: an end event need not say more of where it stands.
pub(super) type Track = (StringId, StringId);

/// The begin and end events of a trace, by track, until they are paired.
pub(super) struct Brackets<T = Track> {
    brackets: Vec<Bracket<T>>,
}

impl<T> Default for Brackets<T> {
    fn default() -> Self {
        Self { brackets: Vec::new() }
    }
}

#[derive(Clone, Copy)]
struct Bracket<T> {
    track: T,
    time_ns: i64,
    position: u32,
    offset: u64,
    /// The row of a begin; none for an end.
    begin: Option<EventId>,
}

impl<T: Copy + Ord> Brackets<T> {
    /// Adds a begin, with its row, or an end.
    pub(super) fn push(
        &mut self,
        begin: Option<EventId>,
        track: T,
        time_ns: i64,
        (position, offset): (u32, u64),
    ) {
        self.brackets.push(Bracket { track, time_ns, position, offset, begin });
    }

    /// Leaves none, and the room for as many.
    pub(super) fn clear(&mut self) {
        self.brackets.clear();
    }

    /// Closes each begin with the end that belongs to it: on each track, in order
    /// of time, an end closes the last begin that is open.
    pub(super) fn pair(mut self, events: &mut EventTable, findings: &mut Vec<(Code, u64)>) {
        let unmatched = |begin: &Bracket<T>| (Code::UnmatchedBegin, begin.offset);
        self.brackets.sort_by_key(|bracket| (bracket.track, bracket.time_ns, bracket.position));
        for track in self.brackets.chunk_by(|one, two| one.track == two.track) {
            let mut open: Vec<&Bracket<T>> = Vec::new();
            for bracket in track {
                if bracket.begin.is_some() {
                    open.push(bracket);
                } else if let Some(begin) = open.pop().and_then(|begin| begin.begin) {
                    events.close(begin, bracket.time_ns);
                } else {
                    findings.push((Code::UnmatchedEnd, bracket.offset));
                }
            }
            findings.extend(open.into_iter().map(unmatched));
        }
    }
}

impl<T: Copy + Eq + Hash> Brackets<T> {
    /// Closes and leaves out blocks of begins behind which their ends stand in the same order.
    ///
    /// PyTorch writes its Perfetto traces so. Paired in order of time, a slice that begins when another
    /// ends would take that end. A block is only told from slices within each other where the times of a
    /// track go back in it.
    pub(super) fn close_blocks(&mut self, events: &mut EventTable) {
        let brackets = std::mem::take(&mut self.brackets);
        let mut rest = &brackets[..];
        while !rest.is_empty() {
            let ends = rest.iter().position(|it| it.begin.is_none()).unwrap_or(rest.len());
            let n_ends = rest[ends..].iter().take_while(|it| it.begin.is_none()).count();
            let (block, behind) = rest.split_at(ends + n_ends);
            let (begins, ends) = block.split_at(ends);
            if is_block(begins, ends) {
                for (begin, end) in begins.iter().zip(ends) {
                    begin.begin.into_iter().for_each(|event| events.close(event, end.time_ns));
                }
            } else {
                self.brackets.extend_from_slice(block);
            }
            rest = behind;
        }
    }
}

/// Whether ends stand in the order of their begins, and not in that of time.
fn is_block<T: Copy + Eq + Hash>(begins: &[Bracket<T>], ends: &[Bracket<T>]) -> bool {
    let is_pair = |(begin, end): (&Bracket<T>, &Bracket<T>)| {
        begin.track == end.track && begin.time_ns <= end.time_ns
    };
    if begins.len() != ends.len() || !begins.iter().zip(ends).all(is_pair) {
        return false;
    }
    let mut last_ns = HashMap::new();
    let mut goes_back = |it: &Bracket<T>| {
        last_ns.insert(it.track, it.time_ns).is_some_and(|last| last > it.time_ns)
    };
    begins.iter().chain(ends).any(&mut goes_back)
}

impl Brackets {
    /// Appends those of a later part of the file, whose texts have these numbers here, and whose
    /// elements and events stand behind so many others.
    pub(super) fn append(&mut self, later: &Self, texts: &[u32], position: u32, row: usize) {
        let text = |id: StringId| StringId::from_row(texts[id.row()] as usize);
        self.brackets.extend(later.brackets.iter().map(|&bracket| Bracket {
            track: (text(bracket.track.0), text(bracket.track.1)),
            position: bracket.position + position,
            begin: bracket.begin.map(|begin| EventId::from_row(begin.row() + row)),
            ..bracket
        }));
    }
}
