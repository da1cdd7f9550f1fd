//! Reads all rows of a table in batches, in this thread or in another.
//!
//! The rows are filtered by a function that copies their values and rejects all of them, except the
//! one that fills a batch. SQLite then iterates over the table itself, which takes half the time of
//! requesting each value of each row.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::Result;
use rusqlite::functions::FunctionFlags;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OptionalExtension};

/// The function that copies a row.
const COPY: &str = "longpole_copy";

/// Maximum number of batches in the queue.
const MOST_WAITING: usize = 8;

/// A connection, and the rows that were copied through it.
pub(super) struct Source {
    pub(super) connection: Connection,
    batch: Arc<Mutex<Batch>>,
}

impl Source {
    pub(super) fn new(connection: Connection) -> rusqlite::Result<Self> {
        let batch = Arc::new(Mutex::new(Batch::default()));
        let copied = Arc::clone(&batch);
        // The schema of the file must not call it.
        let flags = FunctionFlags::SQLITE_DIRECTONLY;
        connection.create_scalar_function(COPY, -1, flags, move |row| {
            let mut batch = copied.lock().unwrap_or_else(PoisonError::into_inner);
            (0..row.len()).for_each(|column| batch.push(row.get_raw(column)));
            Ok(batch.is_full())
        })?;
        Ok(Self { connection, batch })
    }

    fn taken(&self) -> Batch {
        std::mem::take(&mut *self.batch.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// How the reading of a table ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::read) struct End {
    /// Whether it ended at a damaged page, so that the remaining rows are missing.
    pub(in crate::read) is_damaged: bool,
    /// Number of rows left out because of a value that is too long.
    pub(in crate::read) n_too_long: u64,
    /// Number of row ids that SQLite assigned and that are missing.
    pub(in crate::read) n_missing: u64,
}

impl End {
    pub(super) const DAMAGED: Self = Self { is_damaged: true, n_too_long: 0, n_missing: 0 };
}

/// What to read from a table.
pub(super) struct Scan {
    /// The name of the table and the columns, as SQL.
    pub(super) table: String,
    pub(super) columns: String,
    pub(super) n_columns: usize,
    /// Whether the writer assigned the row ids, which may then have gaps.
    pub(super) has_gaps: bool,
}

/// The function called for each row.
pub(super) type Take<'t> = &'t mut dyn FnMut(&Row<'_>) -> Result<ControlFlow<()>>;

impl Scan {
    /// Reads the rows through a connection.
    pub(super) fn run(&self, source: &Source, take: Take<'_>) -> Result<End> {
        let mut taker = Taker::new(self, take);
        let mut outcome = Ok(ControlFlow::Continue(()));
        let end = self.copy(source, &mut |batch| {
            outcome = taker.batch(&batch);
            if matches!(outcome, Ok(ControlFlow::Continue(()))) {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        });
        let _ = outcome?;
        Ok(taker.end(end))
    }

    /// Reads the rows in a separate thread, which opens the database again.
    pub(super) fn run_beside(
        &self,
        path: &Path,
        open: fn(&Path) -> Result<Source>,
        take: Take<'_>,
    ) -> Result<End> {
        let mut taker = Taker::new(self, take);
        std::thread::scope(|scope| {
            let (sender, batches) = sync_channel(MOST_WAITING);
            let copying = scope.spawn(move || {
                let send = |batch| match sender.send(batch) {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(_) => ControlFlow::Break(()),
                };
                open(path).map(|source| self.copy(&source, &mut { send }))
            });
            for batch in &batches {
                if taker.batch(&batch)?.is_break() {
                    break;
                }
            }
            drop(batches);
            let joined = copying.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            Ok(taker.end(joined?))
        })
    }

    /// Passes the rows in batches to `give`, until it breaks.
    fn copy(&self, source: &Source, give: &mut dyn FnMut(Batch) -> ControlFlow<()>) -> End {
        let mut end = End::default();
        let mut from = Some(i64::MIN);
        while let Some(first) = from {
            let mut last = first;
            let mut keep_last = |batch: Batch| {
                last = batch.rows(self.n_columns).next_back().and_then(|it| it.0).unwrap_or(last);
                give(batch)
            };
            let Err(error) = self.copy_from(first, source, &mut keep_last) else { return end };
            // A row with a value above the limit ends the statement, which is restarted after it.
            if error.sqlite_error_code() != Some(ErrorCode::TooBig) {
                return End { is_damaged: true, ..end };
            }
            end.n_too_long += 1;
            from = self.row_behind(last, source).and_then(|row| row.checked_add(1));
        }
        end
    }

    fn copy_from(
        &self,
        first: i64,
        source: &Source,
        give: &mut dyn FnMut(Batch) -> ControlFlow<()>,
    ) -> rusqlite::Result<()> {
        let Self { table, columns, .. } = self;
        let text = format!(
            "SELECT NULL FROM {table} NOT INDEXED WHERE _rowid_ >= ?1 AND {COPY}(_rowid_, {columns})"
        );
        let mut statement = source.connection.prepare(&text)?;
        let mut rows = statement.query([first])?;
        loop {
            let outcome = rows.next().map(|row| row.is_some());
            let batch = source.taken();
            if !batch.is_empty() && give(batch).is_break() {
                return Ok(());
            }
            if !outcome? {
                return Ok(());
            }
        }
    }

    /// Returns the first row after one that was read.
    fn row_behind(&self, row: i64, source: &Source) -> Option<i64> {
        let table = &self.table;
        let text = format!(
            "SELECT _rowid_ FROM {table} NOT INDEXED WHERE _rowid_ > ?1 ORDER BY _rowid_ LIMIT 1"
        );
        let found = source.connection.query_row(&text, [row], |row| row.get(0));
        found.optional().ok().flatten()
    }
}

/// Passes on the rows one by one. Row ids that do not increase come from a damaged page, which
/// could contain any number of rows.
struct Taker<'t> {
    n_columns: usize,
    has_gaps: bool,
    last: Option<i64>,
    n_missing: u64,
    is_damaged: bool,
    take: Take<'t>,
}

impl<'t> Taker<'t> {
    fn new(scan: &Scan, take: Take<'t>) -> Self {
        let Scan { n_columns, has_gaps, .. } = *scan;
        Self { n_columns, has_gaps, last: None, n_missing: 0, is_damaged: false, take }
    }

    /// Returns how the reading ended, combined with what was seen in the rows.
    fn end(&self, copied: End) -> End {
        let is_damaged = copied.is_damaged || self.is_damaged;
        let n_missing = self.n_missing.saturating_sub(copied.n_too_long);
        End { is_damaged, n_missing, ..copied }
    }

    fn batch(&mut self, batch: &Batch) -> Result<ControlFlow<()>> {
        for (id, row) in batch.rows(self.n_columns) {
            self.is_damaged = id <= self.last;
            if let (Some(id), false) = (id, self.is_damaged || self.has_gaps) {
                let expected = self.last.map_or(1, |last| last.saturating_add(1));
                self.n_missing = self.n_missing.saturating_add(id.abs_diff(expected));
            }
            self.last = id;
            if self.is_damaged || (self.take)(&row)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
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
