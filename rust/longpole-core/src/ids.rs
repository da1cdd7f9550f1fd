//! Handles: row numbers of one specific table.
//!
//! Using a handle with another table results in a wrong row or a panic, never undefined behaviour.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// Declares a handle: a row number with its own type.
macro_rules! handle {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name(u32);

        impl $name {
            /// Returns the handle of row `row`.
            ///
            /// # Panics
            ///
            /// Panics if `row` is 2^32 - 1 or larger. The reader prevents this: no table has more
            /// rows.
            pub fn from_row(row: usize) -> Self {
                Self(row_in_column(row))
            }

            /// Returns the row number, for indexing a column.
            pub fn row(self) -> usize {
                self.0 as usize
            }
        }
    };
}

handle! {
    /// A row of the [`EventTable`](crate::tables::EventTable) it came from.
    EventId
}
handle! {
    /// A row of the [`LaneTable`](crate::tables::LaneTable) it came from.
    LaneId
}
handle! {
    /// A string of the [`Strings`](crate::strings::Strings) it came from.
    StringId
}
handle! {
    /// The position of an event in the content order of one [`Timeline`](crate::graph::Timeline).
    Order
}
handle! {
    /// A node of one [`Graph`](crate::graph::Graph), in topological order.
    NodeId
}

/// Represents null in columns of handles, which are plain `u32` so that they can be shared without
/// copying.
pub const NO_ROW: u32 = u32::MAX;

/// Represents null in columns of integers.
pub const NO_INTEGER: i64 = i64::MIN;

/// Converts a row number to a column value.
///
/// # Panics
///
/// Panics as the handles do: no table has more than 2^32 - 2 rows.
pub fn row_in_column(row: usize) -> u32 {
    match u32::try_from(row) {
        Ok(row) if row < NO_ROW => row,
        _ => panic!("a table has fewer than 2^32 - 1 rows"),
    }
}

/// An optional value in the form of a column value.
pub trait InColumn {
    /// The type of column values.
    type Value;

    /// Returns the column value: [`NO_ROW`] or [`NO_INTEGER`] for `None`.
    fn in_column(self) -> Self::Value;
}

impl InColumn for Option<i64> {
    type Value = i64;

    fn in_column(self) -> i64 {
        self.unwrap_or(NO_INTEGER)
    }
}

/// Implements [`InColumn`] for optional handles.
macro_rules! handle_in_column {
    ($($name:ident)*) => {
        $(impl InColumn for Option<$name> {
            type Value = u32;

            fn in_column(self) -> u32 {
                self.map_or(NO_ROW, |id| id.0)
            }
        })*
    };
}

handle_in_column!(EventId LaneId StringId Order NodeId);

/// Implements `from_column` for a handle.
macro_rules! handle_from_column {
    ($($name:ident)*) => {
        $(impl $name {
            /// Returns the handle of a column value, or `None`.
            pub fn from_column(value: u32) -> Option<Self> {
                (value != NO_ROW).then_some(Self(value))
            }
        })*
    };
}

handle_from_column!(EventId StringId Order);

/// A map with row numbers as keys. Row numbers are consecutive, so a trace cannot choose keys that
/// collide, and a multiplication spreads them well enough.
pub(crate) type RowMap<K, V> = HashMap<K, V, BuildHasherDefault<RowHasher>>;

/// A set of row numbers; see [`RowMap`].
pub(crate) type RowSet<K> = HashSet<K, BuildHasherDefault<RowHasher>>;

/// The hasher of row numbers.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RowHasher(u64);

/// The golden ratio as a fraction of 2^64: its multiples are spread evenly.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

impl Hasher for RowHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(byte.into());
        }
    }

    fn write_u32(&mut self, row: u32) {
        self.write_u64(row.into());
    }

    fn write_usize(&mut self, row: usize) {
        self.write_u64(row as u64);
    }

    fn write_u64(&mut self, row: u64) {
        self.0 = (self.0.rotate_left(32) ^ row).wrapping_mul(SPREAD);
    }

    fn finish(&self) -> u64 {
        self.0.rotate_left(32) // maps use the lowest bits, and the highest ones are spread best
    }
}
