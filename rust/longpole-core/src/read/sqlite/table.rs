//! One table of a database: its columns, and its rows by number.

use std::ops::RangeInclusive;

use super::scan::Scan;
use rusqlite::types::ValueRef;
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

// Rows of a table, copied from the database in batches of several hundred.
//
// Passing on a batch costs one step of the statement. Each value costs one function call less than
// reading it from the statement.

/// A batch is passed on when it has this many values, or this many bytes of text.
const MOST_CELLS: usize = 4096;

const MOST_BYTES: usize = 1 << 20;

/// A value. Blobs are read as null.
#[derive(Clone, Copy)]
enum Cell {
    Null,
    Integer(i64),
    Real(f64),
    Text { begin: u32, end: u32 },
}

/// A batch of rows, stored one after the other.
#[derive(Default)]
pub(super) struct Batch {
    cells: Vec<Cell>,
    bytes: Vec<u8>,
}

impl Batch {
    #[inline]
    pub(super) fn push(&mut self, value: ValueRef<'_>) {
        let cell = match value {
            ValueRef::Integer(value) => Cell::Integer(value),
            ValueRef::Real(value) => Cell::Real(value),
            ValueRef::Text(text) => self.text(text),
            ValueRef::Null | ValueRef::Blob(_) => Cell::Null,
        };
        self.cells.push(cell);
    }

    fn text(&mut self, text: &[u8]) -> Cell {
        let begin = u32::try_from(self.bytes.len());
        self.bytes.extend_from_slice(text);
        match (begin, u32::try_from(self.bytes.len())) {
            (Ok(begin), Ok(end)) => Cell::Text { begin, end },
            _ => Cell::Null,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.cells.len() >= MOST_CELLS || self.bytes.len() >= MOST_BYTES
    }

    pub(super) fn clear(&mut self) {
        self.cells.clear();
        self.bytes.clear();
    }

    /// Returns all values as one row.
    pub(super) fn row(&self) -> Row<'_> {
        Row { cells: &self.cells, bytes: &self.bytes }
    }

    /// Returns the rows, each with its row id, which is stored before its columns.
    pub(super) fn rows(
        &self,
        n_columns: usize,
    ) -> impl DoubleEndedIterator<Item = (Option<i64>, Row<'_>)> {
        self.cells.chunks_exact(1 + n_columns).map(|cells| {
            let row = |cells| Row { cells, bytes: &self.bytes };
            (row(&cells[..1]).integer(0), row(&cells[1..]))
        })
    }
}

/// A row of a table. A value of another type than requested counts as missing.
pub(in crate::read) struct Row<'a> {
    cells: &'a [Cell],
    bytes: &'a [u8],
}

impl<'a> Row<'a> {
    /// Returns the integer in a column.
    #[inline]
    pub(in crate::read) fn integer(&self, column: usize) -> Option<i64> {
        match self.cells[column] {
            Cell::Integer(value) if value != i64::MIN => Some(value),
            _ => None,
        }
    }

    /// Returns the integers in consecutive columns, starting at `first`.
    #[inline]
    pub(in crate::read) fn integers<const N: usize>(&self, first: usize) -> [Option<i64>; N] {
        std::array::from_fn(|place| self.integer(first + place))
    }

    /// Returns the number in a column.
    #[allow(clippy::cast_precision_loss)] // counters are floats
    pub(in crate::read) fn number(&self, column: usize) -> Option<f64> {
        match self.cells[column] {
            Cell::Integer(value) => Some(value as f64),
            Cell::Real(value) => Some(value),
            _ => None,
        }
    }

    /// Returns the bytes of the text in a column, which may be invalid UTF-8.
    #[inline]
    pub(in crate::read) fn text(&self, column: usize) -> Option<&'a [u8]> {
        match self.cells[column] {
            Cell::Text { begin, end } => Some(&self.bytes[begin as usize..end as usize]),
            _ => None,
        }
    }
}
