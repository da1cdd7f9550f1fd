//! Maps processes to planes, and tracks to lines of a plane.

use std::collections::{HashMap, HashSet};

use crate::ids::StringId;
use crate::read::statements::statements;
use crate::strings::Strings;
use crate::tables::{MetadataTable, Place};
use crate::vocabulary::{Line, Plane};

/// The planes of one profile.
pub(super) struct Planes {
    of_process: HashMap<StringId, Plane>,
    lines: HashMap<(StringId, StringId), Line>,
    /// The planes with streams, whose activities are repeated on other lines.
    with_streams: HashSet<StringId>,
}

impl Planes {
    /// Finds the planes; `None` if no process is a plane.
    pub(super) fn of(metadata: &MetadataTable, strings: &Strings) -> Option<Self> {
        let of_process: HashMap<_, _> = statements(metadata, strings, "process_name")
            .filter_map(|statement| Some((statement.process, Plane::of_name(statement.value)?)))
            .collect();
        if of_process.is_empty() {
            return None;
        }
        let lines: HashMap<_, _> = statements(metadata, strings, "thread_name")
            .map(|it| ((it.process, it.thread), Line::of_name(it.value)))
            .collect();
        let is_stream = |line: &Line| matches!(line, Line::Stream(_));
        let streams = lines.iter().filter(|(_, line)| is_stream(line));
        let with_streams = streams.map(|(&(process, _), _)| process).collect();
        Some(Self { of_process, lines, with_streams })
    }

    pub(super) fn of_process(&self, process: StringId) -> Option<Plane> {
        self.of_process.get(&process).copied()
    }

    /// Returns the device line of a track.
    pub(super) fn line(&self, place: Place) -> Line {
        let line = self.lines.get(&(place.process, place.thread)).copied();
        match line.unwrap_or(Line::Unknown) {
            Line::Operations if self.with_streams.contains(&place.process) => Line::Repeated,
            line => line,
        }
    }
}
