//! Rows of a table, copied from the database in batches of several hundred.
//!
//! Passing on a batch costs one step of the statement. Each value costs one function call less than
//! reading it from the statement.

use rusqlite::types::ValueRef;

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
