//! Bytes -> tables.
//!
//! A trace is read in one pass through a window of a quarter of a megabyte; what is
//! kept are columns, so that memory is bounded by the events and not by the file.
//! The first bytes tell the format, not the name of the file. Bytes come through `source`,
//! `packed` and `window`; `sniff` says which format they are; each format has a room of its
//! own (`chrome`), and those that are JSON share a scanner (`json`) and the way from one
//! element of the document to the next (`elements`). The rows of CSV files come from `csv`.
//! Databases are read in place by `sqlite`; the formats in them (`nsight`, `rocm`) hand their
//! records to `records`, the binary ones to `rows`.

mod ascend;
mod blits;
pub mod chakra;
mod chrome;
mod column;
mod csv;
mod databases;
mod elements;
pub mod execution_trace;
mod json;
mod nsight;
mod options;
mod packed;
mod pairs;
pub(crate) mod perfetto;
mod profile;
mod protobuf;
mod range;
mod recent;
mod records;
mod rocm;
mod rows;
pub(crate) mod saved;
mod sniff;
pub mod source;
mod source_losses;
mod sqlite;
mod statements;
mod window;
mod xplane;
mod xprof;

use std::io::{Read, Write};
use std::path::Path;

pub use crate::tables::Arguments;
pub use options::Options;
pub(crate) use protobuf::Field;
pub use sniff::Format;
pub(crate) use source_losses::with_losses;

use crate::diagnostics::Diagnostics;
use crate::error::{Error, ErrorKind, Result};
use crate::progress::{Progress, silent};
use crate::tables::Tables;

/// Reads the trace in a file.
///
/// # Errors
///
/// When the file cannot be opened or read, holds no trace, or (strict) is not
/// sound, and when `progress` asks to stop.
pub fn read_path(path: &Path, options: &Options, progress: Progress<'_>) -> Result<Tables> {
    let window = window::Window::of_file(source::open_named(path)?, options.max_bytes)?;
    read_window(window, Some(path), options, progress)
}

/// Reads the trace that a reader gives.
///
/// # Errors
///
/// As [`read_path`].
pub fn read(source: impl Read, options: &Options, progress: Progress<'_>) -> Result<Tables> {
    let window = window::Window::new(Box::new(source), options.max_bytes)?;
    read_window(window, None, options, progress)
}

fn read_window(
    mut window: window::Window<'_>,
    path: Option<&Path>,
    options: &Options,
    progress: Progress<'_>,
) -> Result<Tables> {
    let mut diagnostics = Diagnostics::default();
    let mut tables = match sniff::format(&mut window, &mut diagnostics)? {
        Format::Chrome => chrome::read(window, diagnostics, options, progress),
        Format::Saved => saved::read(window, options, progress),
        Format::Rocprof => rocm::read_document(window, diagnostics, options, progress),
        Format::RocprofCsv => rocm::read_csv(window, path, diagnostics, options, progress),
        Format::Sqlite => databases::read(path.filter(|_| window.is_on_file()), options, progress),
        Format::Perfetto => perfetto::read(window, diagnostics, options, progress),
        Format::XPlane => xplane::read(window, diagnostics, options, progress),
    }?;
    blits::interpret(&mut tables);
    range::limit(&mut tables, options.strict)?;
    Ok(tables)
}

/// Writes what can be read of a trace as a sound document; gives the number of its events.
///
/// Every event that reading keeps is copied, with what was wrong with its text as it was read, so
/// that reading the document gives the same tables. Only the positions of events count anew. Fields
/// of the header stand behind the events, and what was lost with them. A bare list of events stays
/// one unless an object is asked for; where something of it was lost, it has no place for that, and
/// none is given.
///
/// # Errors
///
/// When the file cannot be opened or read or holds no trace as text, when `out` cannot be written
/// to, and when `progress` asks to stop.
pub fn repair_path(
    path: &Path,
    (rank, as_object): (Option<u64>, bool),
    out: &mut dyn Write,
    progress: Progress<'_>,
) -> Result<Option<u64>> {
    repair(source::open_named(path)?, (rank, as_object), out, progress)
}

/// Writes what can be read of the trace that a reader gives as a sound document.
///
/// # Errors
///
/// As [`repair_path`].
pub fn repair(
    source: impl Read,
    (rank, as_object): (Option<u64>, bool),
    out: &mut dyn Write,
    progress: Progress<'_>,
) -> Result<Option<u64>> {
    let mut window = window::Window::new(Box::new(source), None)?;
    let mut diagnostics = Diagnostics::default();
    if sniff::format(&mut window, &mut diagnostics)? != Format::Chrome {
        let why = "the trace is no JSON that could be written as such";
        return Err(Error::new(ErrorKind::NotSaved(why.to_owned()), 0));
    }
    let (options, repaired) = (Options::default(), chrome::Repaired::new(out, rank, as_object));
    chrome::repair(window, diagnostics, &options, repaired, progress)
}

/// Whether a file holds a trace as text, which can be written as it stands.
///
/// # Errors
///
/// As [`read_path`].
pub fn is_text(path: &Path) -> Result<bool> {
    let mut window = window::Window::of_file(source::open_named(path)?, None)?;
    Ok(sniff::format(&mut window, &mut Diagnostics::default())? == Format::Chrome)
}

/// Reads a trace from memory.
///
/// # Errors
///
/// As [`read_path`].
pub fn read_bytes(bytes: &[u8], options: &Options) -> Result<Tables> {
    read(bytes, options, &silent)
}
