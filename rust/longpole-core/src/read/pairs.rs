//! Pairs begin and end events, by track and time.

use std::collections::HashMap;
use std::hash::Hash;

use crate::diagnostics::Code;
use crate::ids::{EventId, StringId};
use crate::tables::EventTable;

/// A process and a thread, by which begin and end events are paired.
pub(super) type Track = (StringId, StringId);

/// The unpaired begin and end events of a trace, by track.
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
    /// The row of a begin event; `None` for an end event.
    begin: Option<EventId>,
}

impl<T: Copy + Ord> Brackets<T> {
    /// Adds a begin event with its row, or an end event.
    pub(super) fn push(
        &mut self,
        begin: Option<EventId>,
        track: T,
        time_ns: i64,
        (position, offset): (u32, u64),
    ) {
        self.brackets.push(Bracket { track, time_ns, position, offset, begin });
    }

    /// Removes all events but keeps the capacity.
    pub(super) fn clear(&mut self) {
        self.brackets.clear();
    }

    /// Closes each begin event with its end event: on each track, in order of time, an end closes
    /// the last open begin.
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
    /// Closes and removes blocks of begin events that are followed by their end events in the same
    /// order.
    ///
    /// PyTorch writes its Perfetto traces this way. Paired in order of time, a slice that begins
    /// when another ends would get that end. A block is only distinguished from nested slices if
    /// the times of a track go backward within it.
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

/// Whether end events are in the order of their begin events, and not in order of time.
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
    /// Appends the events of a later part of the file. `texts` are the joined numbers of its
    /// strings; its elements and events follow the given numbers of others.
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
