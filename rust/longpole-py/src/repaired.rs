//! What can be read of a trace, as a sound document.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use flate2::write::GzEncoder;
use flate2::Compression;
use longpole_core::read;
use pyo3::prelude::*;

use crate::enter::enter;

/// Writes what can be read of a trace to a file that is made anew, plain or as gzip; gives the
/// number of its events.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // by value, from Python
pub(crate) fn repair_trace(
    py: Python<'_>,
    path: PathBuf,
    output: PathBuf,
    gzip: bool,
) -> PyResult<u64> {
    let name = path.display().to_string();
    let mut out = Output::new(BufWriter::new(File::create(&output)?), gzip);
    let n_written =
        enter(py, Some(&name), None, |progress| read::repair(&path, &mut out, progress))?;
    out.finish()?;
    Ok(n_written)
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
