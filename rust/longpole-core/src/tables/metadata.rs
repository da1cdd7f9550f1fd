//! Names and labels of processes and threads (`M` events), each distinct one once.

use std::collections::HashMap;

use super::columns::columns;
use crate::ids::{InColumn, StringId};

/// Metadata statements about processes and threads (`M`), each distinct one once, in order of first
/// use. Some writers repeat them for every event.
#[derive(Debug, Clone, Default)]
pub struct MetadataTable {
    /// The type of statement: `process_name`, `thread_name`, `process_labels`, ...
    pub name: Vec<u32>,
    /// The process.
    pub process: Vec<u32>,
    /// The thread.
    pub thread: Vec<u32>,
    /// The value.
    pub value: Vec<u32>,
    /// Number of occurrences in the file.
    pub count: Vec<u64>,
    /// Index of the last occurrence in the event list.
    pub last_position: Vec<u32>,
    rows: HashMap<[u32; 4], usize>,
}

columns! {
    MetadataTable:
    name Rows,
    process Rows,
    thread Rows,
    value Rows,
    count Counts,
    last_position Rows,
}

impl MetadataTable {
    /// Adds an occurrence of a statement. Returns its row.
    pub(crate) fn push(
        &mut self,
        name: Option<StringId>,
        process: StringId,
        thread: StringId,
        value: Option<StringId>,
        position: u32,
    ) -> usize {
        let row = self.row(name, process, thread, value);
        self.repeat(row, position);
        row
    }

    /// Returns the row of a statement, which is added without an occurrence if it is new.
    pub(crate) fn row(
        &mut self,
        name: Option<StringId>,
        process: StringId,
        thread: StringId,
        value: Option<StringId>,
    ) -> usize {
        let (process, thread) = (Some(process).in_column(), Some(thread).in_column());
        let key = [name.in_column(), process, thread, value.in_column()];
        let row = *self.rows.entry(key).or_insert(self.name.len());
        if row == self.name.len() {
            self.name.push(key[0]);
            self.process.push(process);
            self.thread.push(thread);
            self.value.push(key[3]);
            self.count.push(0);
            self.last_position.push(0);
        }
        row
    }

    /// Counts another occurrence of the statement in `row`.
    pub(crate) fn repeat(&mut self, row: usize, position: u32) {
        self.count[row] += 1;
        self.last_position[row] = position;
    }

    /// Returns name, process, thread and value of the statement in `row`.
    pub(crate) fn statement(&self, row: usize) -> [u32; 4] {
        [self.name[row], self.process[row], self.thread[row], self.value[row]]
    }

    /// Returns the number of distinct statements.
    pub fn len(&self) -> usize {
        self.name.len()
    }

    /// Whether there are no statements.
    pub fn is_empty(&self) -> bool {
        self.name.is_empty()
    }
}
