//! An open database: its tables, and protection against malicious content.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::pages::{Damaged, Tree};
use super::scan::{End, Source, Take};
use super::table::{Finder, Table};
use super::{pages, table};
use crate::diagnostics::Code;
use crate::error::{Error, ErrorKind, Result};
use crate::progress::Progress;
use crate::read::records::Records;
use crate::read::source;
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, MAIN_DB, OpenFlags};

/// Maximum size of a value read from a row.
const MOST_VALUE_BYTES: i32 = 64 << 20;

/// Maximum size of an in-memory database in SQLite.
const MOST_COPIED_BYTES: usize = 2_147_483_391;

/// A table with at least this many rows is read in a separate thread.
const ROWS_FOR_A_THREAD: u64 = 20_000;

/// The table that lists the others.
const SCHEMA: &str = "sqlite_schema";

/// An open database.
pub(in crate::read) struct Database {
    source: Source,
    path: PathBuf,
    /// Whether a separate thread may read rows while this one processes them.
    has_threads: bool,
    /// Whether it was written with a write-ahead log that is missing now.
    pub(in crate::read) is_without_log: bool,
    /// The size of the file in bytes.
    pub(in crate::read) n_bytes: u64,
    /// The names of its tables, sorted.
    names: Vec<String>,
    /// The tables whose rows were read.
    read: RefCell<BTreeSet<String>>,
}

impl Database {
    /// Opens the database in a file, for reading with up to `threads` threads.
    pub(in crate::read) fn open(path: &Path, threads: usize) -> Result<Self> {
        let path = path.canonicalize().map_err(|error| source::io_error(&error, 0))?;
        refuse_unfinished(&path)?;
        let n_bytes = path.metadata().map_or(0, |facts| facts.len());
        let is_without_log = has_log(&path);
        let said = |error| cut(&path, n_bytes).unwrap_or(error);
        let connected = opened(&path).map_err(said)?;
        let names = names(&connected.connection).map_err(|error| said(failure(&error)))?;
        // A second connection would need a second in-memory copy.
        let (has_threads, read) = (threads > 1 && !source::is_confined(), RefCell::default());
        Ok(Self { source: connected, path, has_threads, is_without_log, n_bytes, names, read })
    }

    /// Returns the names of its tables, sorted.
    pub(in crate::read) fn names(&self) -> &[String] {
        &self.names
    }

    /// Whether it has a table.
    pub(in crate::read) fn has(&self, name: &str) -> bool {
        self.names.binary_search_by(|known| known.as_str().cmp(name)).is_ok()
    }

    /// Reads some columns of all rows of a table in row id order, until `take` breaks. `a|b` means
    /// the first of two columns that the table has; missing columns are null.
    pub(in crate::read) fn each(
        &self,
        name: &str,
        columns: &[&str],
        take: Take<'_>,
    ) -> Result<End> {
        if !self.has(name) {
            return Ok(End::default());
        }
        self.read.borrow_mut().insert(name.to_owned());
        let connection = &self.source.connection;
        let Ok(table) = Table::of(name, connection) else { return Ok(End::DAMAGED) };
        let scan = table.scan(columns);
        let is_long = || table::largest_row(name, connection) > Some(ROWS_FOR_A_THREAD);
        if self.has_threads && is_long() {
            return scan.run_beside(&self.path, opened, take);
        }
        scan.run(&self.source, take)
    }

    /// Returns the columns of a table; empty if there is no table of that name.
    pub(in crate::read) fn columns(&self, name: &str) -> Vec<String> {
        let table = Table::of(name, &self.source.connection);
        table.map_or_else(|_| Vec::new(), |table| table.columns)
    }

    /// Returns a finder for rows by number, if the number is the row id. Otherwise each search
    /// would read the whole table.
    pub(in crate::read) fn finder(
        &self,
        name: &str,
        key: &str,
        columns: &[&str],
    ) -> Option<Finder<'_>> {
        self.read.borrow_mut().insert(name.to_owned());
        Table::of(name, &self.source.connection).ok()?.finder(key, columns)
    }

    /// Reports damaged pages, unless the caller requested only some of the records.
    pub(in crate::read) fn note_damaged_pages(
        &self,
        records: &mut Records<'_>,
        progress: Progress<'_>,
    ) -> Result<()> {
        if records.diagnostics.count(Code::LimitReached) == 0 {
            let Damaged { n_pages, first_offset } = match self.trees() {
                Ok(trees) => pages::damaged(&self.path, &trees, progress)?,
                Err(_) => Damaged::SCHEMA,
            };
            records.diagnostics.add_many(Code::DamagedPage, first_offset, n_pages);
        }
        Ok(())
    }

    /// Returns the trees of the tables and their indexes; the tree of the schema comes first.
    fn trees(&self) -> rusqlite::Result<Vec<Tree>> {
        let text = "SELECT name, rootpage FROM sqlite_schema WHERE rootpage > 0";
        let mut statement = self.source.connection.prepare(text)?;
        let trees =
            statement.query_map([], |row| self.tree(&row.get::<_, String>(0)?, row.get(1)?))?;
        std::iter::once(self.tree(SCHEMA, 1)).chain(trees).collect()
    }

    fn tree(&self, name: &str, root: u32) -> rusqlite::Result<Tree> {
        let is_read = name == SCHEMA || self.read.borrow().contains(name);
        let n_values = is_read.then(|| table::n_values(name, &self.source.connection));
        Ok(Tree { root, n_values: n_values.transpose()? })
    }

    /// Returns the sum of the largest row ids of some tables, which approximates the number of
    /// rows.
    pub(in crate::read) fn n_rows<'a>(&self, names: impl Iterator<Item = &'a str>) -> u64 {
        let largest = |name| table::largest_row(name, &self.source.connection).unwrap_or(0);
        names.map(largest).fold(0, u64::saturating_add)
    }
}

/// Opens a connection to the database in a file as it is.
fn opened(path: &Path) -> Result<Source> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = if source::is_confined() {
        copied(path)?
    } else {
        Connection::open_with_flags(immutable(path)?, flags)
    };
    connection.and_then(guarded).and_then(Source::new).map_err(|error| failure(&error))
}

/// Opens a connection to an in-memory copy of the database. SQLite opens files by name and follows
/// links, which is not safe if others can replace a folder by a link.
fn copied(path: &Path) -> Result<rusqlite::Result<Connection>> {
    const VERSIONS: std::ops::Range<usize> = 18..20;
    const WITHOUT_LOG: u8 = 1; // a database in memory has no write-ahead log
    let failed = |error| source::io_error(&error, 0);
    let mut file = source::open_regular(path)?;
    let n_bytes = file.metadata().map_err(failed)?.len();
    let n_bytes = usize::try_from(n_bytes).ok().filter(|size| *size <= MOST_COPIED_BYTES);
    let Some(n_bytes) = n_bytes else {
        let why = "a database over 2 GB is not read for the server of agents";
        return Err(Error::new(ErrorKind::Database(why.to_owned()), 0));
    };
    let mut header = [0; VERSIONS.end];
    let n_read = source::read_fully(&mut file, &mut header).map_err(failed)?;
    header[VERSIONS].fill(WITHOUT_LOG);
    let whole = header[..n_read].chain(file);
    Ok(Connection::open_in_memory().and_then(|mut connection| {
        connection.deserialize_read_exact(MAIN_DB, whole, n_bytes, true)?;
        Ok(connection)
    }))
}

/// Restricts the schema of the file so that it can only describe tables.
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

/// Returns the ordinary tables: neither views nor virtual tables.
fn names(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let text = "SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0 ORDER BY name";
    let mut statement = connection.prepare(text)?;
    let names = statement.query_map([], |row| row.get(0))?;
    names.collect()
}

/// Returns the error of a file that is shorter than its header says.
fn cut(path: &Path, n_bytes: u64) -> Option<Error> {
    let mut header = [0; 100];
    let mut file = source::open_regular(path).ok()?;
    source::read_fully(&mut file, &mut header).ok().filter(|&read| read == header.len())?;
    let number =
        |at: usize| Some(u64::from(u32::from_be_bytes(header[at..at + 4].try_into().ok()?)));
    let page = match u64::from(u16::from_be_bytes([header[16], header[17]])) {
        1 => 1 << 16,
        bytes => bytes,
    };
    // The number of pages holds if it was written with the last change.
    let expected = page * number(28).filter(|_| number(24) == number(92))?;
    let why = format!("{n_bytes} of {expected} bytes are in the file, so it was cut");
    (n_bytes < expected).then(|| Error::new(ErrorKind::Database(why), n_bytes))
}

/// Returns the error for a database that cannot be read at all.
pub(in crate::read) fn failure(error: &rusqlite::Error) -> Error {
    Error::new(ErrorKind::Database(error.to_string()), 0)
}

// The URI that opens a database as it is, without locks, logs or journals.

/// The suffixes of files with changes that are not in the database yet.
const UNFINISHED: &[&str] = &["-wal", "-journal"];

const DIGITS: &[u8; 16] = b"0123456789ABCDEF";

/// Rejects a database with unapplied changes in a file next to it.
fn refuse_unfinished(path: &Path) -> Result<()> {
    let is_there = |ending: &&&str| beside(path, ending).metadata().is_ok_and(|it| it.len() > 0);
    match UNFINISHED.iter().find(is_there) {
        Some(ending) => Err(Error::new(ErrorKind::UnfinishedDatabase(ending), 0)),
        None => Ok(()),
    }
}

/// Whether the last writer of a database used a write-ahead log.
fn has_log(path: &Path) -> bool {
    const VERSIONS: usize = 18;
    const WITH_LOG: u8 = 2;
    let mut header = [0; VERSIONS + 2];
    let is_read = source::open_regular(path).is_ok_and(|mut it| it.read_exact(&mut header).is_ok());
    is_read && header[VERSIONS..].contains(&WITH_LOG)
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// Returns the URI of a database that no other process writes.
fn immutable(path: &Path) -> Result<String> {
    let bytes = bytes_of(path)?;
    let mut address = "file:".to_owned();
    if !bytes.starts_with(b"/") {
        address.push('/');
    }
    for byte in bytes {
        if byte.is_ascii_alphanumeric() || b"/.-_~:".contains(&byte) {
            address.push(char::from(byte));
        } else {
            address.push('%');
            address
                .extend([byte >> 4, byte & 15].map(|digit| char::from(DIGITS[usize::from(digit)])));
        }
    }
    address.push_str("?immutable=1");
    Ok(address)
}

#[cfg(unix)]
#[allow(clippy::unnecessary_wraps)] // elsewhere a path may have no address
fn bytes_of(path: &Path) -> Result<Vec<u8>> {
    use std::os::unix::ffi::OsStrExt;
    Ok(path.as_os_str().as_bytes().to_vec())
}

#[cfg(not(unix))]
fn bytes_of(path: &Path) -> Result<Vec<u8>> {
    let text = path.to_str().map(|text| text.trim_start_matches(r"\\?\").replace('\\', "/"));
    let no_address = || ErrorKind::Database("its path is not Unicode".to_owned());
    text.map(String::into_bytes).ok_or_else(|| Error::new(no_address(), 0))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_meaning_in_an_address_is_escaped() {
        let address = immutable(Path::new("/a b/c?mode=rw#d%41.sqlite")).unwrap();
        assert_eq!(address, "file:/a%20b/c%3Fmode%3Drw%23d%2541.sqlite?immutable=1");
    }
}
