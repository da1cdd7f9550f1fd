//! Writes traces: tables, merged ranks, counter tracks, cut and repaired copies.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use flate2::Compression;
use flate2::write::GzEncoder;
use longpole_core::error::{Error, ErrorKind, IoError};
use longpole_core::read::{self, Options};
use longpole_core::write::{self, Counter, MergedRank, MergedSegment, document, whole};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::enter::enter;
use crate::joint::JointRanks;
use crate::source::Source;
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

#[pymethods]
impl Trace {
    /// Writes the tables to a new file, for `read_trace`.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| {
            let mut out = BufWriter::new(File::create(&path)?);
            write::save(self.tables(), &mut out)?;
            out.flush()
        })
        .map_err(PyErr::from)
    }
}

/// Writes the readable part of a trace to a new file, plain or as gzip. Returns the number of its
/// events. The rank is written if the trace has none. Returns `None` if the result is a bare list,
/// which has no place to record what was lost: the caller should then request an object.
#[pyfunction]
#[pyo3(signature = (source, output, gzip, rank = None, *, as_object = false))]
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

/// Copies a trace, fed part by part, with selected events only.
#[pyclass(frozen, module = "longpole._core")]
pub(crate) struct Cut(Mutex<write::Cut>);

#[pymethods]
impl Cut {
    /// Creates a copier. `kept` has a byte for each position in the list of events: 0 if the event
    /// is left out.
    #[new]
    fn new(kept: PyBackedBytes) -> Self {
        Self(Mutex::new(write::Cut::new(kept.iter().map(|&byte| byte != 0).collect())))
    }

    /// Returns the kept text of the next part.
    fn feed<'py>(&self, py: Python<'py>, text: PyBackedBytes) -> PyResult<Bound<'py, PyBytes>> {
        let kept = enter(py, None, None, |_| {
            Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).feed(&text))
        })?;
        Ok(PyBytes::new(py, &kept))
    }

    /// Returns the number of events written.
    #[getter]
    fn n_written(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).n_written()
    }
}

#[pymethods]
impl JointRanks {
    /// Returns a rank as packets of a Perfetto trace, in pieces, shifted to `earlier_ns` before its
    /// common times.
    #[allow(clippy::needless_pass_by_value, clippy::too_many_arguments)] // from Python
    #[pyo3(signature = (trace, place, *, number, title, lanes, calls, earlier_ns))]
    fn merged_rank<'py>(
        &self,
        py: Python<'py>,
        trace: &Trace,
        place: usize,
        number: u32,
        title: &str,
        lanes: Vec<String>,
        calls: HashMap<u32, u32>,
        earlier_ns: i64,
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let clock = *self
            .fitted()
            .get(place)
            .ok_or_else(|| PyIndexError::new_err("no rank has that index"))?;
        let tables = trace.tables();
        let pieces = enter(py, None, None, |_| {
            let time_ns = |time_ns: i64| clock.common_ns(time_ns) - earlier_ns;
            let number = i64::from(number);
            let rank =
                MergedRank { number, title, lanes: &lanes, time_ns: &time_ns, calls: &calls };
            Ok(write::merged_rank(tables, &rank))
        })?;
        Ok(pieces.iter().map(|piece| PyBytes::new(py, piece)).collect())
    }
}

/// Returns the path across ranks as packets of a Perfetto trace: `(rank, start_ns, end_ns, kind,
/// title)`.
#[pyfunction]
pub(crate) fn merged_path(
    py: Python<'_>,
    segments: Vec<(u32, i64, i64, String, String)>,
) -> PyResult<Bound<'_, PyBytes>> {
    let bytes = enter(py, None, None, |_| {
        let segment = |(rank, start_ns, end_ns, kind, title)| {
            let rank = i64::from(rank);
            MergedSegment { rank, start_ns, end_ns, kind, title }
        };
        let segments: Vec<_> = segments.into_iter().map(segment).collect();
        Ok(write::merged_path(&segments))
    })?;
    Ok(PyBytes::new(py, &bytes))
}

/// A name, and times and values as the bytes of 64-bit integers and floats.
type Series = (String, PyBackedBytes, PyBackedBytes);

/// Returns counter tracks as packets of a Perfetto trace.
#[pyfunction]
pub(crate) fn counter_tracks(py: Python<'_>, series: Vec<Series>) -> PyResult<Vec<u8>> {
    enter(py, None, None, |_| {
        let counters: Vec<_> = series
            .iter()
            .map(|(name, times, values)| Counter {
                name: name.clone(),
                samples: times
                    .as_chunks::<8>()
                    .0
                    .iter()
                    .zip(values.as_chunks::<8>().0)
                    .map(|(time, value)| (i64::from_ne_bytes(*time), f64::from_ne_bytes(*value)))
                    .collect(),
            })
            .collect();
        Ok(write::counter_tracks(&counters))
    })
}
