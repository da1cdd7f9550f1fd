//! Writes the readable part of a trace as a valid document.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::PathBuf;

use longpole_core::error::{Error, ErrorKind, IoError};
use longpole_core::read::{self, Options};
use longpole_core::write::document;
use pyo3::prelude::*;

use crate::source::Source;
use crate::written::Output;

/// Writes the readable part of a trace to a new file, plain or as gzip. Returns the number of its
/// events. The rank is written if the trace has none. Returns `None` if the result is a bare list,
/// which has no place to record what was lost: the caller should then request an object.
#[pyfunction]
#[pyo3(signature = (source, output, gzip, rank = None, *, as_object = false))]
#[allow(clippy::needless_pass_by_value)] // by value, from Python
pub(crate) fn repair_trace(
    py: Python<'_>,
    source: Source,
    output: PathBuf,
    gzip: bool,
    rank: Option<u64>,
    as_object: bool,
) -> PyResult<Option<u64>> {
    let mut out = Output::new(BufWriter::new(File::create(&output)?), gzip);
    let outcome = source.enter(py, None, |source, progress| match source {
        Source::Path(path) if path.is_file() && !read::is_text(&path)? => {
            let tables = read::read_path(&path, &Options::default(), progress)?;
            let written = document(&tables, rank, &|_| true, &mut out);
            written.map(Some).map_err(|error| not_written(&error))
        }
        Source::Path(path) => read::repair_path(&path, (rank, as_object), &mut out, progress),
        Source::Bytes(bytes) => read::repair(&bytes[..], (rank, as_object), &mut out, progress),
        Source::Reader(reader) => read::repair(reader, (rank, as_object), &mut out, progress),
    });
    let n_written = outcome?;
    out.finish()?;
    Ok(n_written)
}

/// Returns the error for an output file that cannot be written.
fn not_written(error: &io::Error) -> Error {
    let error = IoError { number: error.raw_os_error(), message: error.to_string() };
    Error::new(ErrorKind::Io(error), 0)
}
