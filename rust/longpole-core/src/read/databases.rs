//! Detects the profiler that wrote a database, and reads it.

use std::path::Path;

use super::options::Options;
use super::sqlite::Database;
use super::{nsight, rocm};
use crate::diagnostics::Code;
use crate::error::{Error, ErrorKind, Result};
use crate::progress::Progress;
use crate::tables::Tables;

/// Reads the profile in a database.
pub(super) fn read(
    path: Option<&Path>,
    options: &Options,
    progress: Progress<'_>,
) -> Result<Tables> {
    let Some(path) = path else { return Err(other(STREAM)) };
    if options.max_bytes.is_some() {
        let why = "an SQLite database is read as a whole: it takes no max_bytes";
        return Err(Error::new(ErrorKind::NotSaved(why.to_owned()), 0));
    }
    let database = Database::open(path, options.threads)?;
    let mut tables = if nsight::is_export(&database) {
        nsight::read(&database, options, progress)
    } else if rocm::is_rocpd(&database) {
        rocm::read_rocpd(&database, options, progress)
    } else if rocm::is_rpd(&database) {
        rocm::read_rpd(&database, options, progress)
    } else {
        Err(other(OTHER))
    }?;
    if database.is_without_log {
        tables.diagnostics.add(Code::NoWriteAheadLog, 0);
    }
    Ok(tables)
}

/// The description of a database that cannot be read, and a hint.
type Known = (&'static str, &'static str);

const STREAM: Known = (
    "an SQLite database in a stream or a compressed file",
    "write it to a file, uncompressed, and give the path of the file",
);
const OTHER: Known = (
    "an SQLite database without the tables of Nsight Systems or rocpd",
    "export the report again: `nsys export --type sqlite FILE`",
);

fn other((what, hint): Known) -> Error {
    Error::new(ErrorKind::OtherKind { what, hint }, 0)
}
