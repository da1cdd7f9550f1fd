//! What can be read of a trace, as a sound document.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use flate2::Compression;
use flate2::write::GzEncoder;
use longpole_core::error::{Error, ErrorKind, IoError};
use longpole_core::read::{self, Options};
use longpole_core::write::document;
use pyo3::prelude::*;

use crate::source::Source;

/// Writes what can be read of a trace to a file that is made anew, plain or as gzip; gives the
/// number of its events. The rank is written where the trace names none.
#[pyfunction]
#[pyo3(signature = (source, output, gzip, rank = None))]
#[allow(clippy::needless_pass_by_value)] // by value, from Python
pub(crate) fn repair_trace(
    py: Python<'_>,
    source: Source,
    output: PathBuf,
    gzip: bool,
    rank: Option<u64>,
) -> PyResult<u64> {
    let mut out = Output::new(BufWriter::new(File::create(&output)?), gzip);
    let outcome = source.enter(py, None, |source, progress| match source {
        Source::Path(path) if path.is_file() && !read::is_text(&path)? => {
            let tables = read::read_path(&path, &Options::default(), progress)?;
            let written = document(&tables, rank, &mut out);
            written.map_err(|error| not_written(&error))
        }
        Source::Path(path) => read::repair_path(&path, rank, &mut out, progress),
        Source::Bytes(bytes) => read::repair(&bytes[..], rank, &mut out, progress),
        Source::Reader(reader) => read::repair(reader, rank, &mut out, progress),
    });
    let n_written = outcome?;
    out.finish()?;
    Ok(n_written)
}

/// The error for a file that cannot be written to.
fn not_written(error: &io::Error) -> Error {
    let error = IoError { number: error.raw_os_error(), message: error.to_string() };
    Error::new(ErrorKind::Io(error), 0)
}

enum Output {
    Plain(BufWriter<File>),
    Gzip(Box<GzEncoder<BufWriter<File>>>),
}

impl Output {
    fn new(file: BufWriter<File>, gzip: bool) -> Self {
        if gzip {
            Self::Gzip(Box::new(GzEncoder::new(file, Compression::default())))
        } else {
            Self::Plain(file)
        }
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Self::Plain(mut file) => file.flush(),
            Self::Gzip(encoder) => encoder.finish()?.flush(),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(file) => file.write(bytes),
            Self::Gzip(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(file) => file.flush(),
            Self::Gzip(encoder) => encoder.flush(),
        }
    }
}
