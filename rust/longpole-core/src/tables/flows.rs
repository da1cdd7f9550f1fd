//! The arrows of a trace (`s`, `t`, `f` events): where each end lies, and which belong together.
//!
//! There are millions of ends, so what they share stands once in a table of sources.

use std::collections::HashMap;

use super::args::{renamed, ArgValue, Values};
use super::columns::columns;
use crate::ids::{row_in_column, InColumn, StringId};
use crate::strings::Strings;

/// What ends of arrows have in common: there are millions of ends and a few of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FlowSource {
    /// The category.
    pub category: Option<StringId>,
    /// The name.
    pub name: Option<StringId>,
    /// The process it stands in.
    pub process: StringId,
    /// The thread it stands in.
    pub thread: StringId,
}

/// The arrows of one trace: a row for each end (`s`, `t`, `f`), in the order of
/// the file. Ends with the same category and id belong together.
#[derive(Debug, Clone, Default)]
pub struct FlowTable {
    /// The letter of the phase: `s` start, `t` step, `f` finish.
    pub phase: Vec<u8>,
    /// The ids.
    pub id: Values,
    /// When.
    pub time_ns: Vec<i64>,
    /// Its place among the elements of the event list.
    pub position: Vec<u32>,
    source: Vec<u32>,
    sources: Vec<FlowSource>,
    source_rows: HashMap<FlowSource, u32>,
}

columns! {
    FlowTable:
    phase Bytes,
    time_ns Integers,
    position Rows,
    source Rows,
}

impl FlowTable {
    /// What the ends have in common, as [`source_row`](Self::source_row) numbers it.
    pub(crate) fn sources(&self) -> &[FlowSource] {
        &self.sources
    }

    /// Whether every row has every value, and a source.
    pub(crate) fn is_even(&self) -> bool {
        let length = self.len();
        self.columns().iter().all(|(_, column)| column.len() == length)
            && self.id.len() == length
            && self.source.iter().all(|&row| (row as usize) < self.sources.len())
    }

    /// The number of a source, for [`push`](Self::push).
    pub(crate) fn source_row(&mut self, source: FlowSource) -> u32 {
        *self.source_rows.entry(source).or_insert_with(|| {
            self.sources.push(source);
            row_in_column(self.sources.len() - 1)
        })
    }

    pub(crate) fn push(
        &mut self,
        phase: u8,
        id: Option<ArgValue>,
        source: u32,
        time_ns: i64,
        position: u32,
        strings: &mut Strings,
    ) {
        self.id.push(id, strings);
        self.phase.push(phase);
        self.time_ns.push(time_ns);
        self.position.push(position);
        self.source.push(source);
    }

    /// The rows so far, without their sources, which stay known here.
    pub(crate) fn take_rows(&mut self) -> Self {
        Self {
            phase: std::mem::take(&mut self.phase),
            id: std::mem::take(&mut self.id),
            time_ns: std::mem::take(&mut self.time_ns),
            position: std::mem::take(&mut self.position),
            source: std::mem::take(&mut self.source),
            ..Self::default()
        }
    }

    /// Whether appending `later` gives what pushing its rows would give.
    pub(crate) fn takes(&self, later: &Self) -> bool {
        self.id.takes(&later.id)
    }

    /// Appends the rows of a later part of the file, whose texts and sources have these numbers
    /// here, and whose elements stand behind `position` others.
    pub(crate) fn append(&mut self, later: &Self, texts: &[u32], sources: &[u32], position: u32) {
        self.phase.extend_from_slice(&later.phase);
        self.id.append(&later.id, texts);
        self.time_ns.extend_from_slice(&later.time_ns);
        self.position.extend(later.position.iter().map(|&place| place + position));
        self.source.extend(later.source.iter().map(|&source| renamed(source, sources)));
    }

    /// The number of the source of the last row.
    pub(crate) fn last_source_row(&self) -> Option<u32> {
        self.source.last().copied()
    }

    /// How many ends there are.
    pub fn len(&self) -> usize {
        self.phase.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.phase.is_empty()
    }

    /// Category, name, process and thread of a row.
    pub fn source(&self, row: usize) -> FlowSource {
        self.sources[self.source[row] as usize]
    }

    /// A column of what the ends have in common.
    pub fn column<'a>(
        &'a self,
        part: impl Fn(&FlowSource) -> Option<StringId> + 'a,
    ) -> impl Iterator<Item = u32> + 'a {
        let values: Vec<_> = self.sources.iter().map(|source| part(source).in_column()).collect();
        self.source.iter().map(move |&row| values[row as usize])
    }
}
