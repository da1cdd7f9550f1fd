//! Reads SQLite databases in place: ordinary tables only, row by row, with their own columns.
//!
//! The file is untrusted. It is opened read-only and as it is; its views, triggers and virtual
//! tables are not used, and its schema cannot call functions. Columns are looked up in the schema,
//! because each version of a profiler writes others.
//!
//! Limits: a database with a write-ahead log or rollback journal next to it is rejected, because
//! rows could be missing. A table is read in row id order. If row ids do not increase, a page is
//! damaged, and the rest of the table is left out. Row ids assigned by SQLite have no gaps, so
//! missing rows in between are counted. Missing rows at the end are detected only if a page was
//! lost (`pages`), not if they were deleted.

mod database;
mod pages;
mod reading;
mod scan;
mod table;

pub(super) use database::Database;
pub(super) use reading::{Reading, Rows, Texts};
pub(super) use scan::Row;
pub(super) use table::Finder;
