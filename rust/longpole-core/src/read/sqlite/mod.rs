//! SQLite databases, read in place: real tables only, row after row, with their own columns.
//!
//! The file may come from anyone. It is opened read-only and as it stands; no view, trigger or
//! virtual table of it is used, and its schema calls no function. Columns are asked of its schema,
//! because each version of a profiler writes others.
//!
//! Limits: a database whose write-ahead log or rollback journal lies beside it is refused, because
//! reading it as it stands would leave rows out. A table is read in the order of its row ids; where
//! these do not grow, a page is damaged, and the rest of the table is left out. Ids that SQLite
//! counted have no gaps, so that rows which are missing in between are counted. Rows behind the last
//! one are missed only where a page lost them (`pages`), not where they were deleted.

mod address;
mod database;
mod page;
mod pages;
mod reading;
mod rows;
mod scan;
mod table;
mod texts;

pub(super) use database::Database;
pub(super) use reading::{Reading, Rows};
pub(super) use rows::Row;
pub(super) use table::Finder;
pub(super) use texts::Texts;
