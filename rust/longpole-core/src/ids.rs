//! Handles: small integers that each name a row of one table and of no other.
//!
//! Handing one to another table gives nonsense or a panic, never undefined
//! behaviour.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// Declares a handle: a row number that knows whose row it is.
macro_rules! handle {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name(u32);

        impl $name {
            /// The handle of row `row`.
            ///
            /// # Panics
            ///
            /// When `row` does not fit 32 bits less one value, which the reader
            /// rules out: no table grows longer.
            pub fn from_row(row: usize) -> Self {
                Self(row_in_column(row))
            }

            /// The row number, for indexing a column.
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
    /// A text of the [`Strings`](crate::strings::Strings) it came from.
    StringId
}
handle! {
    /// A place in the content order of the events of one
    /// [`Timeline`](crate::graph::Timeline).
    Order
}
handle! {
    /// A point of one [`Graph`](crate::graph::Graph), in the order that respects its edges.
    NodeId
}

/// Stands for "none" in columns of handles, which are plain `u32` for the sake
/// of those who take the columns over.
pub const NO_ROW: u32 = u32::MAX;

/// Stands for "none" in columns of integers.
pub const NO_INTEGER: i64 = i64::MIN;

/// A row number as it stands in a column.
///
/// # Panics
///
/// As the handles do: no table grows beyond 2^32 - 2 rows.
pub fn row_in_column(row: usize) -> u32 {
    match u32::try_from(row) {
        Ok(row) if row < NO_ROW => row,
        _ => panic!("a table has fewer than 2^32 - 1 rows"),
    }
}

/// A value that may be missing, as it stands in a column.
pub trait InColumn {
    /// What the column is made of.
    type Value;

    /// The value in the column: [`NO_ROW`] or [`NO_INTEGER`] for none.
    fn in_column(self) -> Self::Value;
}

impl InColumn for Option<i64> {
    type Value = i64;

    fn in_column(self) -> i64 {
        self.unwrap_or(NO_INTEGER)
    }
}

/// Declares how an optional handle stands in a column.
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

/// Declares how an optional handle is read back from a column.
macro_rules! handle_from_column {
    ($($name:ident)*) => {
        $(impl $name {
            /// The handle that stands in a column, if any.
            pub fn from_column(value: u32) -> Option<Self> {
                (value != NO_ROW).then_some(Self(value))
            }
        })*
    };
}

handle_from_column!(EventId StringId Order);

/// A map whose keys are row numbers. These count up, so that no trace can choose keys that
/// collide, and a multiplication spreads them well enough.
pub(crate) type RowMap<K, V> = HashMap<K, V, BuildHasherDefault<RowHasher>>;

/// A set of row numbers; see [`RowMap`].
pub(crate) type RowSet<K> = HashSet<K, BuildHasherDefault<RowHasher>>;

/// The hash of row numbers.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RowHasher(u64);

/// The golden ratio as a fraction of 2^64: multiples of it lie far apart.
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
        self.0.rotate_left(32) // maps take the lowest bits, and the highest ones are spread best
    }
}
