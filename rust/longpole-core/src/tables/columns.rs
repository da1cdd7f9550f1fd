//! The columns of a table by name, for writing and reading whole tables.

use super::Packed;
use crate::ids::NO_INTEGER;

/// Represents null in columns of short integers.
const NO_SHORT: i32 = i32::MIN;

/// A column to be written.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Column<'a> {
    Bytes(&'a [u8]),
    Rows(&'a [u32]),
    Shorts(&'a [i32]),
    Integers(&'a [i64]),
    Counts(&'a [u64]),
    Floats(&'a [f64]),
    /// Written as [`Rows`](Self::Rows).
    PackedRows(&'a Packed),
    /// Written as [`Integers`](Self::Integers).
    PackedIntegers(&'a Packed),
    /// Written as [`Shorts`](Self::Shorts) if all values fit, otherwise as integers.
    PackedNumbers(&'a Packed),
    /// Written as [`Floats`](Self::Floats).
    PackedFloats(&'a Packed),
}

/// A column to be filled.
#[derive(Debug)]
pub(crate) enum ColumnMut<'a> {
    Bytes(&'a mut Vec<u8>),
    Rows(&'a mut Vec<u32>),
    Shorts(&'a mut Vec<i32>),
    Integers(&'a mut Vec<i64>),
    Counts(&'a mut Vec<u64>),
    Floats(&'a mut Vec<f64>),
    PackedRows(&'a mut Packed),
    PackedIntegers(&'a mut Packed),
}

/// The unpacked values of a column.
#[derive(Debug)]
pub(crate) enum Unpacked {
    Rows(Vec<u32>),
    Shorts(Vec<i32>),
    Integers(Vec<i64>),
    Floats(Vec<f64>),
}

/// Declares the columns of a table and their types, for writing and for filling.
macro_rules! columns {
    ($table:ident: $($field:ident $kind:ident,)*) => {
        impl $table {
            /// Returns every column with its name.
            pub(crate) fn columns(&self) -> Vec<(&'static str, $crate::tables::Column<'_>)> {
                vec![$((stringify!($field), $crate::tables::Column::$kind(&self.$field)),)*]
            }

            /// Returns every column with its name, for filling.
            pub(crate) fn columns_mut(
                &mut self,
            ) -> Vec<(&'static str, $crate::tables::ColumnMut<'_>)> {
                vec![$((stringify!($field), $crate::tables::ColumnMut::$kind(&mut self.$field)),)*]
            }
        }
    };
}

pub(super) use columns;

impl Column<'_> {
    /// Returns the number of values.
    pub(crate) fn len(self) -> usize {
        match self {
            Self::Bytes(values) => values.len(),
            Self::Rows(values) => values.len(),
            Self::Shorts(values) => values.len(),
            Self::Integers(values) => values.len(),
            Self::Counts(values) => values.len(),
            Self::Floats(values) => values.len(),
            Self::PackedRows(values)
            | Self::PackedIntegers(values)
            | Self::PackedNumbers(values)
            | Self::PackedFloats(values) => values.len(),
        }
    }

    /// Returns the values of a packed column.
    pub(crate) fn unpacked(self) -> Option<Unpacked> {
        Some(match self {
            Self::PackedRows(values) => Unpacked::Rows(values.rows().collect()),
            Self::PackedIntegers(values) => Unpacked::Integers(values.iter().collect()),
            Self::PackedNumbers(values) => match values.iter().map(short).collect() {
                Some(shorts) => Unpacked::Shorts(shorts),
                None => Unpacked::Integers(values.iter().collect()),
            },
            Self::PackedFloats(values) => Unpacked::Floats(values.floats().collect()),
            _ => return None,
        })
    }
}

impl ColumnMut<'_> {
    /// Removes the values that are not kept.
    pub(crate) fn retain(self, is_kept: &[bool]) {
        match self {
            Self::Bytes(values) => retain(values, is_kept),
            Self::Rows(values) => retain(values, is_kept),
            Self::Shorts(values) => retain(values, is_kept),
            Self::Integers(values) => retain(values, is_kept),
            Self::Counts(values) => retain(values, is_kept),
            Self::Floats(values) => retain(values, is_kept),
            Self::PackedRows(values) | Self::PackedIntegers(values) => values.retain(is_kept),
        }
    }
}

fn retain<T>(values: &mut Vec<T>, is_kept: &[bool]) {
    let mut kept = is_kept.iter();
    values.retain(|_| kept.next().copied().unwrap_or(false));
}

impl Unpacked {
    /// Returns the values as a column.
    pub(crate) fn column(&self) -> Column<'_> {
        match self {
            Self::Rows(values) => Column::Rows(values),
            Self::Shorts(values) => Column::Shorts(values),
            Self::Integers(values) => Column::Integers(values),
            Self::Floats(values) => Column::Floats(values),
        }
    }
}

/// Returns a value in 32 bits, if it fits.
fn short(value: i64) -> Option<i32> {
    if value == NO_INTEGER {
        return Some(NO_SHORT);
    }
    i32::try_from(value).ok().filter(|&value| value != NO_SHORT)
}

/// Returns the values of a column of short integers.
pub(crate) fn of_shorts(values: &[i32]) -> Packed {
    let wide = |&value: &i32| if value == NO_SHORT { NO_INTEGER } else { value.into() };
    values.iter().map(wide).collect()
}
