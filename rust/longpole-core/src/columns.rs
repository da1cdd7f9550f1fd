//! The columns of a result: each is declared once, with its name and the value of a row.
//!
//! The type of a value decides the type of its column, so nothing else has to know the columns.

use std::borrow::Cow;

use crate::ids::{EventId, InColumn, LaneId, NO_INTEGER, NO_ROW, NodeId, StringId};

/// The values of one column.
#[derive(Debug, Clone, PartialEq)]
pub enum Column<'a> {
    /// Row numbers; [`NO_ROW`] is null.
    Rows(Vec<u32>),
    /// Integers; [`NO_INTEGER`] is null.
    Integers(Vec<i64>),
    /// Floats; NaN is null.
    Floats(Vec<f64>),
    /// Booleans.
    Booleans(Vec<bool>),
    /// Strings of the trace, by their handles; [`NO_ROW`] is null.
    Texts(Vec<u32>),
    /// Names of a short list, by index; [`NO_ROW`] is null.
    Names(Vec<u32>, Vec<&'a str>),
    /// Strings that are mostly distinct.
    Strings(Vec<Option<Cow<'a, str>>>),
}

/// The columns of a result, in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Columns<'a>(pub Vec<(&'static str, Column<'a>)>);

impl<'a> Columns<'a> {
    /// Adds a column with these values.
    #[must_use]
    pub fn with<T: Cell<'a>>(mut self, name: &'static str, cells: impl Iterator<Item = T>) -> Self {
        self.0.push((name.trim_start_matches("r#"), T::column(cells)));
        self
    }

    /// Adds a column of names from a short list, by index; [`NO_ROW`] is null.
    #[must_use]
    pub fn with_names(
        mut self,
        name: &'static str,
        places: impl Iterator<Item = u32>,
        names: Vec<&'a str>,
    ) -> Self {
        self.0.push((name, Column::Names(places.collect(), names)));
        self
    }

    /// Returns the columns whose names are accepted.
    #[must_use]
    pub fn only(mut self, accepts: impl Fn(&str) -> bool) -> Self {
        self.0.retain(|(name, _)| accepts(name));
        self
    }

    /// Adds the columns of another result with as many rows.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }
}

/// A row whose columns are declared with its type; see [`columns!`].
pub trait Record: Sized {
    /// Returns the columns of some rows: the fields of the type.
    fn columns(rows: &[Self]) -> Columns<'_>;
}

/// A value of a column.
pub trait Cell<'a>: Sized {
    /// Returns the column of these values.
    fn column(cells: impl Iterator<Item = Self>) -> Column<'a>;
}

/// Implements [`Cell`] for types and their options: each type with its column and the form of an
/// optional value in it.
macro_rules! cells {
    ($($type:ty => $column:ident, $value:expr;)*) => {
        $(
            impl<'a> Cell<'a> for Option<$type> {
                fn column(cells: impl Iterator<Item = Self>) -> Column<'a> {
                    Column::$column(cells.map($value).collect())
                }
            }

            impl<'a> Cell<'a> for $type {
                fn column(cells: impl Iterator<Item = Self>) -> Column<'a> {
                    Option::column(cells.map(Some))
                }
            }
        )*
    };
}

cells! {
    EventId => Rows, InColumn::in_column;
    LaneId => Rows, InColumn::in_column;
    NodeId => Rows, InColumn::in_column;
    u32 => Rows, |row| row.unwrap_or(NO_ROW);
    StringId => Texts, InColumn::in_column;
    i64 => Integers, InColumn::in_column;
    u64 => Integers, |count| count.map_or(NO_INTEGER, largest_at_most);
    usize => Integers, |count| count.map_or(NO_INTEGER, largest_at_most);
    f64 => Floats, |value| value.unwrap_or(f64::NAN);
    &'a str => Strings, |text| text.map(Cow::Borrowed);
    String => Strings, |text| text.map(Cow::Owned);
}

fn largest_at_most(count: impl TryInto<i64>) -> i64 {
    count.try_into().unwrap_or(i64::MAX)
}

impl<'a> Cell<'a> for bool {
    fn column(cells: impl Iterator<Item = Self>) -> Column<'a> {
        Column::Booleans(cells.collect())
    }
}

/// Declares columns: as the fields of a new type of rows, or as values of existing rows.
///
/// ```
/// use longpole_core::columns::{Column, Record, columns};
///
/// columns! {
///     /// The time of a step.
///     #[derive(Clone, Copy)]
///     pub struct StepTime {
///         /// Its number, if known.
///         pub step: Option<i64>,
///         /// Its duration.
///         pub duration_ns: i64,
///     }
/// }
///
/// let rows = [StepTime { step: Some(3), duration_ns: 250 }];
/// let declared = StepTime::columns(&rows);
/// let computed = columns!(rows.iter(), |row| Columns {
///     step: row.step,
///     duration_ns: row.duration_ns,
/// });
/// assert_eq!(declared, computed);
/// assert_eq!(declared.0[1], ("duration_ns", Column::Integers(vec![250])));
/// ```
#[macro_export]
macro_rules! columns {
    (
        $(#[$doc:meta])*
        $vis:vis struct $type:ident {
            $($(#[$field_doc:meta])* $field_vis:vis $field:ident: $field_type:ty,)*
        }
    ) => {
        $(#[$doc])*
        $vis struct $type { $($(#[$field_doc])* $field_vis $field: $field_type,)* }

        impl $crate::columns::Record for $type {
            fn columns(rows: &[Self]) -> $crate::columns::Columns<'_> {
                $crate::columns::Columns::default()
                    $(.with(stringify!($field), rows.iter().map(|row| row.$field)))*
            }
        }
    };
    ($rows:expr, |$row:pat_param| Columns { $($name:ident $(: $value:expr)?),* $(,)? }) => {{
        let rows = $rows;
        #[allow(unused_variables)] // a column uses only parts of a row
        let columns = $crate::columns::Columns::default().$(with(
            stringify!($name),
            Clone::clone(&rows).map(|$row| $crate::columns!(@value $name $(, $value)?)),
        )).*;
        columns
    }};
    (@value $name:ident) => { $name };
    (@value $name:ident, $value:expr) => { $value };
}

pub use columns;
