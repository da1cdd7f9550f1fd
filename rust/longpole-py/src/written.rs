//! Writes the tables of a trace to a file for other programs.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use flate2::Compression;
use flate2::write::GzEncoder;
use longpole_core::write::{document, whole};
use pyo3::prelude::*;

use crate::trace::Trace;

#[pymethods]
impl Trace {
    /// Writes the tables to a new file, for Perfetto or as Chrome trace events, plain or as gzip.
    /// Returns the number of written elements. Elements at positions where `kept` is 0, or beyond
    /// its end, are left out. The rank is written if the trace has none.
    #[pyo3(signature = (path, *, perfetto, gzip = false, rank = None, kept = None))]
    fn write(
        &self,
        py: Python<'_>,
        path: PathBuf,
        perfetto: bool,
        gzip: bool,
        rank: Option<u64>,
        kept: Option<&[u8]>,
    ) -> PyResult<u64> {
        let write = if perfetto { whole } else { document };
        let keeps = |position: u32| {
            let is_kept = |kept: &[u8]| kept.get(position as usize).is_some_and(|&it| it != 0);
            kept.is_none_or(is_kept)
        };
        py.detach(|| {
            let mut out = Output::new(BufWriter::new(File::create(&path)?), gzip);
            let n_written = write(self.tables(), rank, &keeps, &mut out)?;
            out.finish()?;
            Ok(n_written)
        })
        .map_err(|error: io::Error| PyErr::from(error))
    }
}

/// An output file, plain or gzip.
pub(crate) enum Output {
    Plain(BufWriter<File>),
    Gzip(Box<GzEncoder<BufWriter<File>>>),
}

impl Output {
    pub(crate) fn new(file: BufWriter<File>, gzip: bool) -> Self {
        if gzip {
            Self::Gzip(Box::new(GzEncoder::new(file, Compression::default())))
        } else {
            Self::Plain(file)
        }
    }

    pub(crate) fn finish(self) -> io::Result<()> {
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
