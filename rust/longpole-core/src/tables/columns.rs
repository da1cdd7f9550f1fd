//! The columns of a table by their names, for those who write all of them down and read
//! them back.

/// A column as it is written.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Column<'a> {
    Bytes(&'a [u8]),
    Rows(&'a [u32]),
    Shorts(&'a [i32]),
    Integers(&'a [i64]),
    Counts(&'a [u64]),
    Floats(&'a [f64]),
}

/// A column as it is filled.
#[derive(Debug)]
pub(crate) enum ColumnMut<'a> {
    Bytes(&'a mut Vec<u8>),
    Rows(&'a mut Vec<u32>),
    Shorts(&'a mut Vec<i32>),
    Integers(&'a mut Vec<i64>),
    Counts(&'a mut Vec<u64>),
    Floats(&'a mut Vec<f64>),
}

/// Declares the columns of a table, each with its type, for writing and for filling.
macro_rules! columns {
    ($table:ident: $($field:ident $kind:ident,)*) => {
        impl $table {
            /// Every column with its name.
            pub(crate) fn columns(&self) -> Vec<(&'static str, $crate::tables::Column<'_>)> {
                vec![$((stringify!($field), $crate::tables::Column::$kind(&self.$field)),)*]
            }

            /// Every column with its name, to be filled.
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
    /// How many values it has.
    pub(crate) fn len(self) -> usize {
        match self {
            Self::Bytes(values) => values.len(),
            Self::Rows(values) => values.len(),
            Self::Shorts(values) => values.len(),
            Self::Integers(values) => values.len(),
            Self::Counts(values) => values.len(),
            Self::Floats(values) => values.len(),
        }
    }
}
