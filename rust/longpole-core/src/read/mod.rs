//! Reads traces of all formats into tables.
//!
//! A trace is read in one pass through a window of a quarter of a megabyte. Only columns are kept,
//! so that memory is bounded by the number of events, not by the size of the file. The format is
//! detected from the first bytes, not from the file name. Bytes come through `source`, `packed` and
//! `window`; `sniff` detects the format; each format has a module (`chrome`). The JSON formats
//! share a scanner (`json`) and the iteration over elements (`elements`). `csv` reads the rows of
//! CSV files. `sqlite` reads databases in place; the formats in them (`nsight`, `rocm`) pass their
//! records to `records`, the binary ones to `rows`.

mod ascend;
pub mod chakra;
mod chrome;
mod csv;
mod databases;
mod demangled;
mod elements;
pub mod execution_trace;
mod header;
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
mod sqlite;
mod window;
mod xplane;
mod xprof;

pub use crate::tables::Arguments;
pub(crate) use header::with_losses;
pub use options::Options;
pub(crate) use protobuf::Field;
pub use sniff::Format;

use std::io::{Read, Write};
use std::path::Path;

use crate::diagnostics::Diagnostics;
use crate::error::{Error, ErrorKind, Result};
use crate::progress::{Progress, silent};
use crate::tables::Tables;

/// Reads the trace in a file.
///
/// # Errors
///
/// Returns an error if the file cannot be opened or read, contains no trace, or (with `strict`) is
/// not valid, and if `progress` asks to stop.
pub fn read_path(path: &Path, options: &Options, progress: Progress<'_>) -> Result<Tables> {
    let window = window::Window::of_file(source::open_named(path)?, options.max_bytes)?;
    read_window(window, Some(path), options, progress)
}

/// Reads the trace from a reader.
///
/// # Errors
///
/// As for [`read_path`].
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
    demangled::demangle(&mut tables);
    rocm::interpret_blits(&mut tables);
    range::limit(&mut tables, options.strict)?;
    Ok(tables)
}

/// Writes the readable part of a trace as valid JSON. Returns the number of its events.
///
/// Every event that reading keeps is copied, with problems in its text written as they were read,
/// so that reading the document gives the same tables, except for the positions of events. Header
/// fields are written after the events, together with a record of what was lost. A bare list of
/// events stays a list unless an object is requested. If something was lost from such a list, which
/// has no place to record it, the result is `None`.
///
/// # Errors
///
/// Returns an error if the file cannot be opened or read or contains no trace in text form, if
/// `out` cannot be written, and if `progress` asks to stop.
pub fn repair_path(
    path: &Path,
    (rank, as_object): (Option<u64>, bool),
    out: &mut dyn Write,
    progress: Progress<'_>,
) -> Result<Option<u64>> {
    repair(source::open_named(path)?, (rank, as_object), out, progress)
}

/// Writes the readable part of a trace from a reader as valid JSON.
///
/// # Errors
///
/// As for [`repair_path`].
pub fn repair(
    source: impl Read,
    (rank, as_object): (Option<u64>, bool),
    out: &mut dyn Write,
    progress: Progress<'_>,
) -> Result<Option<u64>> {
    let mut window = window::Window::new(Box::new(source), None)?;
    let mut diagnostics = Diagnostics::default();
    if sniff::format(&mut window, &mut diagnostics)? != Format::Chrome {
        let why = "the trace is not JSON and cannot be repaired as JSON";
        return Err(Error::new(ErrorKind::NotSaved(why.to_owned()), 0));
    }
    let (options, repaired) = (Options::default(), chrome::Repaired::new(out, rank, as_object));
    chrome::repair(window, diagnostics, &options, repaired, progress)
}

/// Whether a file contains a trace in text form, which can be copied as text.
///
/// # Errors
///
/// As for [`read_path`].
pub fn is_text(path: &Path) -> Result<bool> {
    let mut window = window::Window::of_file(source::open_named(path)?, None)?;
    Ok(sniff::format(&mut window, &mut Diagnostics::default())? == Format::Chrome)
}

/// Reads a trace from memory.
///
/// # Errors
///
/// As for [`read_path`].
pub fn read_bytes(bytes: &[u8], options: &Options) -> Result<Tables> {
    read(bytes, options, &silent)
}
