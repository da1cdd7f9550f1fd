use super::NO_INTEGER;
use crate::ids::{InColumn, StringId};

/// One end of an arrow, as the reader appends it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FlowRow {
    pub(crate) phase: u8,
    pub(crate) id: Option<i64>,
    pub(crate) category: Option<StringId>,
    pub(crate) name: Option<StringId>,
    pub(crate) process: StringId,
    pub(crate) thread: StringId,
    pub(crate) time_ns: i64,
    pub(crate) position: u32,
}

/// The arrows of one trace: a row for each end (`s`, `t`, `f`), in the order of
/// the file. Ends with the same category and id belong together.
#[derive(Debug, Clone, Default)]
pub struct FlowTable {
    /// The letter of the phase: `s` start, `t` step, `f` finish.
    pub phase: Vec<u8>,
    /// The id, [`NO_INTEGER`] for none.
    pub id: Vec<i64>,
    /// The category.
    pub category: Vec<u32>,
    /// The name.
    pub name: Vec<u32>,
    /// The process it stands in.
    pub process: Vec<u32>,
    /// The thread it stands in.
    pub thread: Vec<u32>,
    /// When.
    pub time_ns: Vec<i64>,
    /// Its place among the elements of the event list.
    pub position: Vec<u32>,
}

impl FlowTable {
    pub(crate) fn push(&mut self, row: &FlowRow) {
        self.phase.push(row.phase);
        self.id.push(row.id.unwrap_or(NO_INTEGER));
        self.category.push(row.category.in_column());
        self.name.push(row.name.in_column());
        self.process.push(Some(row.process).in_column());
        self.thread.push(Some(row.thread).in_column());
        self.time_ns.push(row.time_ns);
        self.position.push(row.position);
    }

    /// How many ends there are.
    pub fn len(&self) -> usize {
        self.phase.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.phase.is_empty()
    }
}
