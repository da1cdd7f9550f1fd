//! Reads the tables of a database into records; shared by all database formats.

use std::ops::ControlFlow;

use super::database::Database;
use super::scan::{End, Row};
use super::table::Finder;
use crate::diagnostics::Code;
use crate::error::Result;
use crate::ids::StringId;
use crate::progress::{Progress, report};
use crate::read::recent::ByNumber;
use crate::read::records::Records;

/// The state of reading a database.
pub(in crate::read) struct Reading<'a> {
    pub(in crate::read) database: &'a Database,
    pub(in crate::read) records: Records<'a>,
    pub(in crate::read) texts: Texts<'a>,
    pub(in crate::read) rows: Rows,
    progress: Progress<'a>,
}

/// The number of rows read, and the approximate total.
#[derive(Clone, Copy)]
pub(in crate::read) struct Rows {
    n_read: u64,
    n_expected: u64,
}

impl Rows {
    /// Returns the rows of the tables to be read.
    pub(in crate::read) fn of<'t>(
        tables: impl Iterator<Item = &'t str>,
        database: &Database,
    ) -> Self {
        Self { n_read: 0, n_expected: database.n_rows(tables).max(1) }
    }
}

/// Number of rows between two progress reports.
const ROWS_A_REPORT: u64 = 4096;

impl<'a> Reading<'a> {
    pub(in crate::read) fn new(
        database: &'a Database,
        records: Records<'a>,
        texts: Texts<'a>,
        rows: Rows,
        progress: Progress<'a>,
    ) -> Self {
        Self { database, records, texts, rows, progress }
    }

    /// Counts a row. Returns whether the maximum number of records is reached.
    #[inline]
    pub(in crate::read) fn is_full(&mut self) -> Result<bool> {
        if self.rows.n_read.is_multiple_of(ROWS_A_REPORT) {
            report(self.progress, self.n_bytes())?;
        }
        self.rows.n_read += 1;
        Ok(self.records.is_full())
    }

    /// Reports how the reading of a table ended.
    pub(in crate::read) fn note_end(&mut self, end: End) {
        if end.is_damaged {
            self.records.note(Code::DamagedTable);
        }
        self.records.note_many(Code::ValueTooLong, end.n_too_long);
        self.records.note_many(Code::MissingRows, end.n_missing);
    }

    /// Reports rows that others refer to and that could not be read, because their page is damaged.
    pub(in crate::read) fn note_lookups(&mut self, others: &[&Option<Finder<'_>>]) {
        let finders = others.iter().copied().flatten().chain(&self.texts.finder);
        let n_damaged = finders.filter(|it| it.is_damaged).count();
        self.records.note_many(Code::DamagedTable, n_damaged as u64);
    }

    /// Returns the approximate number of bytes read.
    #[allow(clippy::cast_possible_truncation)] // not above the size of the file
    fn n_bytes(&self) -> u64 {
        let Rows { n_read, n_expected } = self.rows;
        let n_bytes = u128::from(self.database.n_bytes) * u128::from(n_read.min(n_expected));
        (n_bytes / u128::from(n_expected)) as u64
    }

    /// Returns the string with an id, if the file contains it.
    pub(in crate::read) fn text(&mut self, number: Option<i64>) -> Option<StringId> {
        self.texts.get(number?, &mut self.records)
    }
}

// Strings that a database stores once, in a separate table.

/// The strings of a database by id. Only those that records refer to are read.
pub(in crate::read) struct Texts<'a> {
    known: ByNumber<Option<StringId>>,
    pub(super) finder: Option<Finder<'a>>,
}

impl<'a> Texts<'a> {
    /// Returns the strings in one column of a table, keyed by another column.
    pub(in crate::read) fn of(
        database: &'a Database,
        [table, key, column]: [&str; 3],
        records: &mut Records<'_>,
    ) -> Result<Self> {
        let finder = database.finder(table, key, &[column]);
        let mut known = ByNumber::default();
        if finder.is_none() {
            let end = database.each(table, &[key, column], &mut |row| {
                if let (Some(number), Some(text)) = (row.integer(0), row.text(1)) {
                    known.insert(number, Some(records.text(text)));
                }
                Ok(ControlFlow::Continue(()))
            })?;
            records.note_many(Code::DamagedTable, end.is_damaged.into());
        }
        Ok(Self { known, finder })
    }

    /// Returns the string with an id; `None` if there is none.
    #[inline]
    pub(super) fn get(&mut self, number: i64, records: &mut Records<'_>) -> Option<StringId> {
        if let Some(known) = self.known.get(number) {
            return known;
        }
        let text = |row: &Row<'_>| Some(records.text(row.text(0)?));
        let found = self.finder.as_mut()?.find(number, text).flatten();
        self.known.insert(number, found);
        found
    }
}
