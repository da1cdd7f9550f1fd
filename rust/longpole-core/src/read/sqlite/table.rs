//! One table of a database: its columns, and its rows by number.

use std::ops::RangeInclusive;

use super::scan::{Batch, Row, Scan};
use rusqlite::{Connection, OptionalExtension, Statement};

/// A table and its schema.
pub(super) struct Table<'a> {
    connection: &'a Connection,
    name: String,
    pub(super) columns: Vec<String>,
    /// The column that is an alias of the row id.
    key: Option<String>,
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

    /// Creates a scan of some columns of all rows.
    pub(super) fn scan(&self, columns: &[&str]) -> Scan {
        let (table, n_columns) = (quoted(&self.name), columns.len());
        let has_gaps = self.key.is_some();
        Scan { table, columns: self.listed(columns), n_columns, has_gaps }
    }

    /// Creates a finder for columns of a row by another column, if that is the row id.
    pub(super) fn finder(&self, key: &str, columns: &[&str]) -> Option<Finder<'a>> {
        if self.key.as_deref() != Some(key) {
            return None;
        }
        let (listed, [key, name]) = (self.listed(columns), [key, &self.name].map(quoted));
        let text = format!("SELECT {listed} FROM {name} WHERE _rowid_ = ?1 AND {key} = ?1");
        let statement = self.connection.prepare(&text).ok()?;
        Some(Finder {
            statement,
            n_columns: columns.len(),
            found: Batch::default(),
            is_damaged: false,
        })
    }

    fn listed(&self, columns: &[&str]) -> String {
        let listed: Vec<_> = columns.iter().map(|name| self.expression(name)).collect();
        listed.join(", ")
    }

    /// Returns the first of the names separated by `|` that is a column, otherwise null.
    fn expression(&self, names: &str) -> String {
        let mut known = names.split('|').filter(|name| self.columns.iter().any(|it| it == name));
        known.next().map_or_else(|| "NULL".to_owned(), quoted)
    }
}

/// Returns the largest row id of a table.
pub(super) fn largest_row(name: &str, connection: &Connection) -> Option<u64> {
    let text = format!("SELECT max(_rowid_) FROM {}", quoted(name));
    let largest: Option<i64> = connection.query_row(&text, [], |row| row.get(0)).ok()?;
    u64::try_from(largest?).ok()
}

/// Returns the possible numbers of values in a row of a table. `ALTER TABLE` cannot add a `NOT
/// NULL` column without a default, so that rows have at least those.
pub(super) fn n_values(
    name: &str,
    connection: &Connection,
) -> rusqlite::Result<RangeInclusive<i64>> {
    let text = "SELECT max(0, max(iif(\"notnull\" AND dflt_value IS NULL, cid + 1, 0))
        - sum(hidden > 0)), count(*) FROM pragma_table_xinfo(?1)";
    connection.query_row(text, [name], |row| Ok(row.get(0)?..=row.get(1)?))
}

/// Finds rows by number.
pub(in crate::read) struct Finder<'a> {
    statement: Statement<'a>,
    n_columns: usize,
    found: Batch,
    /// Whether a row could not be read.
    pub(super) is_damaged: bool,
}

impl Finder<'_> {
    /// Calls `take` with the row of a number; `None` if there is no such row.
    pub(in crate::read) fn find<T>(
        &mut self,
        number: i64,
        take: impl FnOnce(&Row<'_>) -> T,
    ) -> Option<T> {
        let Self { statement, n_columns, found, is_damaged } = self;
        found.clear();
        let copied = statement.query_row([number], |row| {
            for column in 0..*n_columns {
                found.push(row.get_ref(column)?);
            }
            Ok(())
        });
        let copied = copied.optional();
        *is_damaged |= copied.is_err();
        copied.ok().flatten().map(|()| take(&found.row()))
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
