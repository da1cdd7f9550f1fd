//! The values of one row, by the places of the columns that were asked for.

use rusqlite::types::ValueRef;

/// A row of a table. A value of another type than the one that is asked for counts as missing.
pub(in crate::read) struct Row<'a> {
    row: &'a rusqlite::Row<'a>,
    /// How many columns stand before those that were asked for.
    n_before: usize,
}

impl<'a> Row<'a> {
    pub(super) fn new(row: &'a rusqlite::Row<'a>, n_before: usize) -> Self {
        Self { row, n_before }
    }

    /// The value of a column; null where it has none.
    pub(in crate::read) fn value(&self, column: usize) -> ValueRef<'a> {
        self.row.get_ref(self.n_before + column).unwrap_or(ValueRef::Null)
    }

    /// The integer in a column.
    #[inline]
    pub(in crate::read) fn integer(&self, column: usize) -> Option<i64> {
        match self.value(column) {
            ValueRef::Integer(value) if value != i64::MIN => Some(value),
            _ => None,
        }
    }

    /// The integers in the columns from one on.
    #[inline]
    pub(in crate::read) fn integers<const N: usize>(&self, first: usize) -> [Option<i64>; N] {
        std::array::from_fn(|place| self.integer(first + place))
    }

    /// The number in a column.
    #[allow(clippy::cast_precision_loss)] // counters are floats
    pub(in crate::read) fn number(&self, column: usize) -> Option<f64> {
        match self.value(column) {
            ValueRef::Integer(value) => Some(value as f64),
            ValueRef::Real(value) => Some(value),
            _ => None,
        }
    }

    /// The bytes of the text in a column, which may be no UTF-8.
    #[inline]
    pub(in crate::read) fn text(&self, column: usize) -> Option<&'a [u8]> {
        match self.value(column) {
            ValueRef::Text(text) => Some(text),
            _ => None,
        }
    }
}
