//! Reads the tables of a database into records, with what all such formats have in common.

use super::database::Database;
use super::table::End;
use super::texts::Texts;
use crate::diagnostics::Code;
use crate::error::Result;
use crate::ids::StringId;
use crate::progress::{Progress, report};
use crate::read::records::Records;

/// A database on its way into tables.
pub(in crate::read) struct Reading<'a> {
    pub(in crate::read) database: &'a Database,
    pub(in crate::read) records: Records<'a>,
    pub(in crate::read) texts: Texts<'a>,
    progress: Progress<'a>,
    n_rows: u64,
    n_rows_expected: u64,
}

/// So many rows are read between two reports.
const ROWS_A_REPORT: u64 = 4096;

impl<'a> Reading<'a> {
    /// `tables` are those that will be read.
    pub(in crate::read) fn new(
        database: &'a Database,
        records: Records<'a>,
        texts: Texts<'a>,
        tables: &[&str],
        progress: Progress<'a>,
    ) -> Self {
        let n_rows_expected = database.n_rows(tables.iter().copied()).max(1);
        Self { database, records, texts, progress, n_rows: 0, n_rows_expected }
    }

    /// Counts one more row; says whether no more records may be taken.
    #[inline]
    pub(in crate::read) fn is_full(&mut self) -> Result<bool> {
        if self.n_rows.is_multiple_of(ROWS_A_REPORT) {
            report(self.progress, self.n_bytes())?;
        }
        self.n_rows += 1;
        Ok(self.records.is_full())
    }

    /// Notes how the reading of a table ended.
    pub(in crate::read) fn note_end(&mut self, end: End) {
        if end == End::Damaged {
            self.records.note(Code::DamagedTable);
        }
    }

    /// About how much of the file was read.
    #[allow(clippy::cast_possible_truncation)] // not above the size of the file
    fn n_bytes(&self) -> u64 {
        let n_rows = u128::from(self.n_rows.min(self.n_rows_expected));
        (u128::from(self.database.n_bytes) * n_rows / u128::from(self.n_rows_expected)) as u64
    }

    /// The text with a number, where the file has it.
    pub(in crate::read) fn text(&mut self, number: Option<i64>) -> Option<StringId> {
        self.texts.get(number?, &mut self.records)
    }
}
