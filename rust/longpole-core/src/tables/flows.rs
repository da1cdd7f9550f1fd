//! The flow arrows of a trace (`s`, `t`, `f` events): the position of each end, and which ends
//! belong together.
//!
//! There are millions of ends, so their common properties are stored once in a table of sources.

use std::collections::HashMap;

use super::Packed;
use super::args::{ArgValue, Values};
use super::columns::columns;
use crate::ids::{InColumn, NO_INTEGER, StringId, row_in_column};
use crate::strings::Strings;

/// The common properties of several arrow ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FlowSource {
    /// The category.
    pub category: Option<StringId>,
    /// The name.
    pub name: Option<StringId>,
    /// The process.
    pub process: StringId,
    /// The thread.
    pub thread: StringId,
}

/// The arrows of one trace: a row for each end (`s`, `t`, `f`), in file order. Ends with the same
/// category and id belong together.
#[derive(Debug, Clone, Default)]
pub struct FlowTable {
    /// The phase letter: `s` start, `t` step, `f` finish.
    pub phase: Vec<u8>,
    /// The ids.
    pub id: Values,
    /// The times.
    pub time_ns: Packed,
    /// The indices in the event list.
    pub position: Packed,
    source: Packed,
    sources: Vec<FlowSource>,
    source_rows: HashMap<FlowSource, u32>,
    /// Whether the rows are left unpacked, because they are appended to another table.
    is_part: bool,
}

/// Number of rows that are packed together.
const BATCH: usize = 1024;

columns! {
    FlowTable:
    phase Bytes,
    time_ns PackedIntegers,
    position PackedRows,
    source PackedRows,
}

impl FlowTable {
    /// Returns the sources, as numbered by [`source_row`](Self::source_row).
    pub(crate) fn sources(&self) -> &[FlowSource] {
        &self.sources
    }

    /// Whether all columns have the same length, and all sources exist.
    pub(crate) fn is_even(&self) -> bool {
        let length = self.len();
        self.columns().iter().all(|(_, column)| column.len() == length)
            && self.id.len() == length
            && self.source.rows().all(|row| (row as usize) < self.sources.len())
    }

    /// Creates a table for a part of the file, whose rows are left unpacked.
    pub(crate) fn of_part() -> Self {
        Self { is_part: true, ..Self::default() }
    }

    /// Returns the number of a source, for [`push`](Self::push).
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
        if !self.is_part && self.len().is_multiple_of(BATCH) {
            self.seal();
        }
        self.id.push(id, strings);
        self.phase.push(phase);
        self.time_ns.push(time_ns);
        self.position.push(position.into());
        self.source.push(source.into());
    }

    /// Packs the rows so far.
    fn seal(&mut self) {
        self.packed_mut().into_iter().for_each(Packed::seal);
    }

    /// Finishes the table and frees unused capacity. Nothing can be added afterwards.
    pub(crate) fn finish(&mut self) {
        self.packed_mut().into_iter().for_each(Packed::finish);
        self.phase.shrink_to_fit();
    }

    fn packed_mut(&mut self) -> [&mut Packed; 4] {
        [self.id.packed_mut(), &mut self.time_ns, &mut self.position, &mut self.source]
    }

    /// Swaps the rows with those of another table; the sources stay here.
    pub(crate) fn swap_rows(&mut self, other: &mut Self) {
        std::mem::swap(&mut self.phase, &mut other.phase);
        std::mem::swap(&mut self.id, &mut other.id);
        std::mem::swap(&mut self.time_ns, &mut other.time_ns);
        std::mem::swap(&mut self.position, &mut other.position);
        std::mem::swap(&mut self.source, &mut other.source);
    }

    /// Removes the ends that are not kept.
    pub(crate) fn retain(&mut self, is_kept: &[bool]) {
        self.id.packed_mut().retain(is_kept);
        for column in self.columns_mut() {
            column.1.retain(is_kept);
        }
    }

    /// Removes all rows but keeps the capacity.
    pub(crate) fn clear(&mut self) {
        self.phase.clear();
        self.packed_mut().into_iter().for_each(Packed::clear);
        self.id = Values::Integers(std::mem::take(self.id.packed_mut()));
    }

    /// Whether appending `later` gives the same result as pushing its rows.
    pub(crate) fn takes(&self, later: &Self) -> bool {
        self.id.takes(&later.id)
    }

    /// Appends the rows of a later part of the file. `texts` and `sources` are the numbers of its
    /// strings and sources in this table; `position` elements precede it.
    pub(crate) fn append(&mut self, later: &Self, texts: &[u32], sources: &[u32], position: u32) {
        self.phase.extend_from_slice(&later.phase);
        self.id.append(&later.id, texts);
        self.time_ns.append(&later.time_ns);
        self.position.append_shifted(&later.position, position);
        self.source.append_renumbered(&later.source, sources);
        self.seal();
    }

    /// Returns the source number of the last row.
    pub(crate) fn last_source_row(&self) -> Option<u32> {
        self.source.last().and_then(|row| u32::try_from(row).ok())
    }

    /// Returns the number of ends.
    pub fn len(&self) -> usize {
        self.phase.len()
    }

    /// Whether there are no ends.
    pub fn is_empty(&self) -> bool {
        self.phase.is_empty()
    }

    /// Returns the time of a row.
    pub fn time_ns(&self, row: usize) -> i64 {
        self.time_ns.get(row).unwrap_or(NO_INTEGER)
    }

    /// Returns category, name, process and thread of a row.
    pub fn source(&self, row: usize) -> FlowSource {
        self.sources[self.source.row(row) as usize]
    }

    /// Returns a column with one property of the sources.
    pub fn column<'a>(
        &'a self,
        part: impl Fn(&FlowSource) -> Option<StringId> + 'a,
    ) -> impl Iterator<Item = u32> + 'a {
        let values: Vec<_> = self.sources.iter().map(|source| part(source).in_column()).collect();
        self.source.rows().map(move |row| values[row as usize])
    }
}
