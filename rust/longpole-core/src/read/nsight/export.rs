//! The state of reading an export, and the arguments of its events.

use std::ops::ControlFlow;

use super::places::Places;
use crate::error::Result;
use crate::ids::StringId;
use crate::read::recent::ByNumber;
use crate::read::sqlite::{Reading, Row};

/// The arguments of events, with Kineto's names; the constants are their indices.
pub(super) const ARGUMENTS: &[&str] = &[
    "context",
    "graph node id",
    "grid",
    "block",
    "registers per thread",
    "shared memory",
    "bytes",
    "cuda_sync_kind",
    "wait_on_stream",
    "wait_on_cuda_event_record_corr_id",
    "wait_on_cuda_event_id",
    "Record function id",
    "Sequence number",
    "Input Dims",
];
pub(super) const CONTEXT: usize = 0;
pub(super) const GRAPH_NODE: usize = 1;
pub(super) const GRID: usize = 2;
pub(super) const BLOCK: usize = 3;
pub(super) const REGISTERS: usize = 4;
pub(super) const SHARED_MEMORY: usize = 5;
pub(super) const BYTES: usize = 6;
pub(super) const SYNC_KIND: usize = 7;
pub(super) const WAIT_ON_STREAM: usize = 8;
pub(super) const WAIT_ON_RECORD: usize = 9;
pub(super) const WAIT_ON_EVENT: usize = 10;
pub(super) const RECORD_FUNCTION: usize = 11;
pub(super) const SEQUENCE: usize = 12;
pub(super) const INPUT_DIMS: usize = 13;

/// The state of reading an export.
pub(super) struct Export<'a> {
    pub(super) reading: Reading<'a>,
    pub(super) places: Places,
    pub(super) call_names: ByNumber<Option<StringId>>,
}

impl Export<'_> {
    /// Calls `take` with every row of a table.
    pub(super) fn each(
        &mut self,
        table: &str,
        columns: &[&str],
        mut take: impl FnMut(&mut Self, &Row<'_>),
    ) -> Result<()> {
        let database = self.reading.database;
        let end = database.each(table, columns, &mut |row| {
            if self.reading.is_full()? {
                return Ok(ControlFlow::Break(()));
            }
            take(self, row);
            Ok(ControlFlow::Continue(()))
        })?;
        self.reading.note_end(end);
        Ok(())
    }
}
