//! An open database: its tables, and guards against what the file may hold.

use std::ops::ControlFlow;
use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags};

use super::address;
use super::rows::Row;
use super::table::{self, End, Finder, Table};
use crate::error::{Error, ErrorKind, Result};

/// The longest value that is read from a row.
const MOST_VALUE_BYTES: i32 = 64 << 20;

/// An open database.
pub(in crate::read) struct Database {
    connection: Connection,
    /// The size of the file.
    pub(in crate::read) n_bytes: u64,
    /// The names of its tables, in order.
    names: Vec<String>,
}

impl Database {
    /// Opens the database in a file.
    pub(in crate::read) fn open(path: &Path) -> Result<Self> {
        let path = path.canonicalize().map_err(|error| crate::read::source::io_error(&error, 0))?;
        address::refuse_unfinished(&path)?;
        let n_bytes = path.metadata().map_or(0, |facts| facts.len());
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_URI
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(address::immutable(&path)?, flags)
            .and_then(guarded)
            .map_err(|error| failure(&error))?;
        let names = names(&connection).map_err(|error| failure(&error))?;
        Ok(Self { connection, n_bytes, names })
    }

    /// The names of its tables, in order.
    pub(in crate::read) fn names(&self) -> &[String] {
        &self.names
    }

    /// Whether it has a table.
    pub(in crate::read) fn has(&self, name: &str) -> bool {
        self.names.iter().any(|known| known == name)
    }

    /// Reads some columns of all rows of a table, in the order of their ids, until `take` breaks.
    /// `a|b` is the first of two columns that the table has; one that it lacks is null.
    pub(in crate::read) fn each(
        &self,
        name: &str,
        columns: &[&str],
        take: &mut dyn FnMut(&Row<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<End> {
        if !self.has(name) {
            return Ok(End::Missing);
        }
        Table::of(name, &self.connection)
            .map_or(Ok(End::Damaged), |table| table.each(columns, take))
    }

    /// The columns of a table; none where it has no table of that name.
    pub(in crate::read) fn columns(&self, name: &str) -> Vec<String> {
        let table = Table::of(name, &self.connection);
        table.map_or_else(|_| Vec::new(), |table| table.columns)
    }

    /// Finds columns of rows by a number, where the number is the row id: else each search would
    /// read the whole table.
    pub(in crate::read) fn finder(
        &self,
        name: &str,
        key: &str,
        columns: &[&str],
    ) -> Option<Finder<'_>> {
        Table::of(name, &self.connection).ok()?.finder(key, columns)
    }

    /// The largest row ids of all tables together, which is about the number of rows.
    pub(in crate::read) fn n_rows<'a>(&self, names: impl Iterator<Item = &'a str>) -> u64 {
        let largest = |name| table::largest_row(name, &self.connection).unwrap_or(0);
        names.map(largest).fold(0, u64::saturating_add)
    }
}

/// Lets the schema of the file do nothing but describe tables.
fn guarded(connection: Connection) -> rusqlite::Result<Connection> {
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, MOST_VALUE_BYTES)?;
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    connection.set_limit(Limit::SQLITE_LIMIT_EXPR_DEPTH, 50)?;
    connection.set_limit(Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 1)?;
    connection.set_limit(Limit::SQLITE_LIMIT_WORKER_THREADS, 0)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "mmap_size", 0)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

/// The tables with pages of their own: neither views nor virtual tables.
fn names(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let text = "SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0 ORDER BY name";
    let mut statement = connection.prepare(text)?;
    let names = statement.query_map([], |row| row.get(0))?;
    names.collect()
}

/// The error for a database that cannot be read at all.
pub(in crate::read) fn failure(error: &rusqlite::Error) -> Error {
    Error::new(ErrorKind::Database(error.to_string()), 0)
}
