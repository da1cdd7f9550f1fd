//! Strings that a database stores once, in a separate table.

use std::ops::ControlFlow;

use super::database::Database;
use super::rows::Row;
use super::table::Finder;
use crate::diagnostics::Code;
use crate::error::Result;
use crate::ids::StringId;
use crate::read::recent::ByNumber;
use crate::read::records::Records;

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
