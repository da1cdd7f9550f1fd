//! One table of a database: its columns, and its rows in order.

use std::ops::ControlFlow;

use rusqlite::{Connection, OptionalExtension, Statement};

use super::rows::Row;
use crate::error::Result;

/// A table, and what its schema says of it.
pub(super) struct Table<'a> {
    connection: &'a Connection,
    name: String,
    pub(super) columns: Vec<String>,
    /// The column that holds the row id itself.
    key: Option<String>,
}

/// How the reading of a table ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::read) enum End {
    /// There is no such table.
    Missing,
    /// With its last row, or as whoever read it wished.
    Whole,
    /// At a damaged page.
    Damaged,
}

impl<'a> Table<'a> {
    pub(super) fn of(name: &str, connection: &'a Connection) -> rusqlite::Result<Self> {
        let text = "SELECT name, upper(type), pk FROM pragma_table_xinfo(?1) WHERE hidden = 0";
        let mut statement = connection.prepare(text)?;
        let columns: Vec<(String, String, i64)> = statement
            .query_map([name], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
            .collect::<rusqlite::Result<_>>()?;
        let is_key = |(_, kind, place): &&(String, String, i64)| kind == "INTEGER" && *place == 1;
        let n_keys = columns.iter().filter(|(.., place)| *place > 0).count();
        let key =
            columns.iter().find(is_key).filter(|_| n_keys == 1).map(|(name, ..)| name.clone());
        let columns = columns.into_iter().map(|(name, ..)| name).collect();
        Ok(Self { connection, name: name.to_owned(), columns, key })
    }

    /// Reads some columns of all rows, in the order of their ids, until `take` breaks. Ids that
    /// do not grow come from a damaged page, which could give any number of rows.
    pub(super) fn each(
        &self,
        columns: &[&str],
        take: &mut dyn FnMut(&Row<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<End> {
        let listed: Vec<_> = columns.iter().map(|name| self.expression(name)).collect();
        let (listed, name) = (listed.join(", "), quoted(&self.name));
        let text = format!("SELECT _rowid_, {listed} FROM {name} NOT INDEXED");
        let Ok(mut statement) = self.connection.prepare(&text) else { return Ok(End::Damaged) };
        let Ok(mut rows) = statement.query([]) else { return Ok(End::Damaged) };
        let mut last = None;
        loop {
            let Ok(row) = rows.next() else { return Ok(End::Damaged) };
            let Some(row) = row else { return Ok(End::Whole) };
            let id = row.get::<_, i64>(0).ok();
            if id <= last {
                return Ok(End::Damaged);
            }
            last = id;
            if take(&Row::new(row, 1))?.is_break() {
                return Ok(End::Whole);
            }
        }
    }

    /// Finds columns of a row by another column, where that is the row id.
    pub(super) fn finder(&self, key: &str, columns: &[&str]) -> Option<Finder<'a>> {
        if self.key.as_deref() != Some(key) {
            return None;
        }
        let listed: Vec<_> = columns.iter().map(|name| self.expression(name)).collect();
        let (listed, [key, name]) = (listed.join(", "), [key, &self.name].map(quoted));
        let text = format!("SELECT {listed} FROM {name} WHERE _rowid_ = ?1 AND {key} = ?1");
        self.connection.prepare(&text).ok().map(Finder)
    }

    /// The first of the names with `|` between them that is a column, else null.
    fn expression(&self, names: &str) -> String {
        let mut known = names.split('|').filter(|name| self.columns.iter().any(|it| it == name));
        known.next().map_or_else(|| "NULL".to_owned(), quoted)
    }
}

/// The largest row id of a table.
pub(super) fn largest_row(name: &str, connection: &Connection) -> Option<u64> {
    let text = format!("SELECT max(_rowid_) FROM {}", quoted(name));
    let largest: Option<i64> = connection.query_row(&text, [], |row| row.get(0)).ok()?;
    u64::try_from(largest?).ok()
}

/// Finds rows by their number.
pub(in crate::read) struct Finder<'a>(Statement<'a>);

impl Finder<'_> {
    /// Gives the row with a number to `take`; none where there is no such row.
    pub(in crate::read) fn find<T>(
        &mut self,
        number: i64,
        take: impl FnOnce(&Row<'_>) -> T,
    ) -> Option<T> {
        let found = self.0.query_row([number], |row| Ok(take(&Row::new(row, 0))));
        found.optional().ok().flatten()
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
