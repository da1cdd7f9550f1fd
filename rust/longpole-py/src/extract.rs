//! Extracts records from the output of profilers.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use crate::arrow::Table;
use crate::enter::enter;
use longpole_core::columns::{Columns, columns};
use longpole_core::extract;
use longpole_core::extract::tunable::FAMILIES;
use longpole_core::extract::{End, FORMATS, ForeignRow, Pattern, Reason, UNKNOWN_BYTES, tunable};
use longpole_core::ids::StringId;
use longpole_core::names::Names;
use longpole_core::progress::report;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

/// Number of bytes processed between two checks for Ctrl-C.
const CHUNK_BYTES: usize = 1 << 20;

/// Returns the name and summary of every format.
#[pyfunction]
pub(crate) fn extract_formats() -> Vec<(&'static str, &'static str)> {
    FORMATS.iter().map(|format| (format.name, format.summary)).collect()
}

/// Extracts records from one stream; `None` after the stream has ended.
#[pyclass(frozen, module = "longpole._core")]
pub(crate) struct Extractor(Mutex<Option<extract::Extractor>>);

#[pymethods]
impl Extractor {
    #[new]
    fn new(formats: Vec<String>, patterns: Vec<String>, max_records: usize) -> PyResult<Self> {
        let formats =
            formats.into_iter().map(|name| named_format(&name)).collect::<PyResult<Vec<_>>>()?;
        let patterns =
            patterns.into_iter().map(|text| pattern(&text)).collect::<PyResult<Vec<_>>>()?;
        let extractor = extract::Extractor::new(&formats, patterns).keeping(max_records);
        Ok(Self(Mutex::new(Some(extractor))))
    }

    /// Processes the next bytes of the stream.
    fn feed(&self, py: Python<'_>, chunk: PyBackedBytes) -> PyResult<()> {
        let fed = enter(py, None, None, move |progress| {
            let mut extractor = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(extractor) = extractor.as_mut() else { return Ok(false) };
            for (piece, done) in chunk.chunks(CHUNK_BYTES).zip(0..) {
                report(progress, done)?;
                extractor.feed(piece);
            }
            Ok(true)
        })?;
        fed.then_some(()).ok_or_else(ended)
    }

    /// Adds the rows of a document that was read elsewhere and starts at `offset`: operation, time
    /// as printed, its unit, whether it failed, fields.
    #[allow(clippy::type_complexity, clippy::needless_pass_by_value)] // rows from Python
    fn record(
        &self,
        name: &str,
        offset: u64,
        rows: Vec<(String, String, String, bool, Vec<(String, String)>)>,
    ) -> PyResult<()> {
        let mut extractor = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let extractor = extractor.as_mut().ok_or_else(ended)?;
        for (operation, time, unit, failed, fields) in &rows {
            let (failed, fields) = (*failed, &fields[..]);
            extractor.record(&ForeignRow {
                format: name,
                offset,
                operation,
                time,
                unit,
                failed,
                fields,
            });
        }
        Ok(())
    }

    /// Counts text that was read elsewhere and is invalid.
    fn reject(&self, name: &str, offset: u64, text: &[u8], reason: &str) -> PyResult<()> {
        let mut extractor = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let extractor = extractor.as_mut().ok_or_else(ended)?;
        let found = Reason::ALL.iter().find(|other| other.name() == reason);
        let reason =
            *found.ok_or_else(|| PyValueError::new_err(format!("no reason {reason:?}")))?;
        extractor.reject(name, offset, text, reason);
        Ok(())
    }

    /// Ends the stream. `died` means that its process was terminated.
    fn finish(&self, py: Python<'_>, died: bool) -> PyResult<Extraction> {
        let end = if died { End::Died } else { End::Whole };
        let found = enter(py, None, None, |_| {
            let extractor = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
            Ok(extractor.map(|extractor| extractor.finish(end)))
        })?;
        found.map(Extraction).ok_or_else(ended)
    }
}

/// The records of one stream.
#[pyclass(frozen, module = "longpole._core")]
pub(crate) struct Extraction(extract::Extraction);

#[pymethods]
impl Extraction {
    /// Returns one row for each measurement.
    fn records(&self) -> PyResult<Table> {
        let (records, strings) = (&self.0.records, &self.0.strings);
        let offsets = columns!(records.offset.iter(), |&offset| Columns { offset });
        let columns = columns!(0..records.len(), |row| Columns {
            operation: StringId::from_column(records.operation[row]),
            time_ns: records.time_ns[row],
            printed_time: StringId::from_column(records.time_text[row]),
            printed_unit: records.time_unit[row],
            workspace_bytes: records.workspace_bytes[row],
            data_bytes: records.data_bytes[row],
            status: records.status[row],
        });
        let formats = records.format.iter().copied();
        Table::with_texts(
            offsets.with_names("format", formats, self.formats()).and(columns),
            strings,
        )
    }

    /// Returns every measurement as a tuple, for callers without a table library: format,
    /// operation, time in ns, printed time, its unit, workspace and data in bytes, status.
    #[allow(clippy::type_complexity)] // a row of the table above
    fn rows(
        &self,
    ) -> Vec<(&str, Option<&str>, Option<f64>, &str, &str, Option<i64>, Option<i64>, &str)> {
        let (records, formats) = (&self.0.records, self.formats());
        let text = |code| StringId::from_column(code).map(|id| self.0.strings.get(id));
        let bytes = |value: i64| (value != UNKNOWN_BYTES).then_some(value);
        (0..records.len())
            .map(|row| {
                let time_ns = Some(records.time_ns[row]).filter(|time_ns| !time_ns.is_nan());
                (
                    formats[records.format[row] as usize],
                    text(records.operation[row]),
                    time_ns,
                    text(records.time_text[row]).unwrap_or_default(),
                    records.time_unit[row].name(),
                    bytes(records.workspace_bytes[row]),
                    bytes(records.data_bytes[row]),
                    records.status[row].name(),
                )
            })
            .collect()
    }

    /// Returns one row for each additional field of a record.
    fn fields(&self) -> PyResult<Table> {
        let fields = &self.0.fields;
        let columns = columns!(0..fields.record.len(), |row| Columns {
            record: fields.record[row],
            name: StringId::from_column(fields.name[row]),
            value: StringId::from_column(fields.value[row]),
        });
        Table::with_texts(columns, &self.0.strings)
    }

    /// Returns one row for each row that could not be read, up to a limit.
    fn rejections(&self) -> PyResult<Table> {
        let rejections = &self.0.rejections;
        let offsets = columns!(rejections.offset.iter(), |&offset| Columns { offset });
        let columns = columns!(0..rejections.offset.len(), |row| Columns {
            reason: rejections.reason[row],
            excerpt: StringId::from_column(rejections.excerpt[row]),
        });
        let formats = rejections.format.iter().copied();
        let columns = offsets.with_names("format", formats, self.formats()).and(columns);
        Table::with_texts(columns, &self.0.strings)
    }

    /// Returns the rows that are not kept, by operation: format, operation, whether it stands for
    /// several, count, how many are comparable, the fastest of these (time in ns, printed time, its
    /// unit, workspace and data in bytes), the last time in ns.
    #[allow(clippy::type_complexity)] // a table of few rows, read once
    fn omitted(
        &self,
    ) -> Vec<(
        &str,
        Option<&str>,
        bool,
        u64,
        u64,
        Option<(f64, &str, &str, Option<i64>, Option<i64>)>,
        Option<f64>,
    )> {
        let formats = self.formats();
        let rows = self.0.omitted.iter().map(|row| {
            let fastest = row.fastest.as_ref().map(|it| {
                (
                    it.time_ns,
                    it.printed_time.as_str(),
                    it.unit.name(),
                    it.workspace_bytes,
                    it.data_bytes,
                )
            });
            let last_ns = Some(row.last_ns).filter(|time_ns| !time_ns.is_nan());
            let (format, operation) = (formats[row.format as usize], row.operation.as_deref());
            (format, operation, row.is_rest, row.count, row.selectable, fastest, last_ns)
        });
        rows.collect()
    }

    /// Returns the number of rows that could not be read, by reason. Reasons that did not occur are
    /// left out.
    fn rejection_counts(&self) -> Vec<(&'static str, u64)> {
        let counts = Reason::ALL.iter().map(|reason| reason.name()).zip(self.0.rejections.counts);
        counts.filter(|&(_, count)| count > 0).collect()
    }

    /// Returns the length of the stream in bytes.
    #[getter]
    fn n_bytes(&self) -> u64 {
        self.0.bytes
    }

    /// Whether its last line has no line ending.
    #[getter]
    fn is_unterminated(&self) -> bool {
        self.0.is_unterminated
    }
}

impl Extraction {
    fn formats(&self) -> Vec<&str> {
        self.0.formats.iter().map(String::as_str).collect()
    }
}

fn named_format(name: &str) -> PyResult<extract::Format> {
    extract::format(name).ok_or_else(|| {
        let names: Vec<_> = FORMATS.iter().map(|format| format.name).collect();
        PyValueError::new_err(format!(
            "no format is called {name:?}; there are {}",
            names.join(", ")
        ))
    })
}

fn pattern(text: &str) -> PyResult<Pattern> {
    Pattern::new(text).map_err(|error| PyValueError::new_err(error.to_string()))
}

fn ended() -> PyErr {
    PyValueError::new_err("the stream has ended; create a new extractor for another one")
}

// The lines of TunableOp files.

/// Returns the pieces of a TunableOp file, in order, with some columns or all.
#[pyfunction]
#[pyo3(signature = (text, columns=None))]
#[allow(clippy::needless_pass_by_value)] // by value, from Python
pub(crate) fn read_tunable(
    py: Python<'_>,
    text: PyBackedBytes,
    columns: Option<HashSet<String>>,
) -> PyResult<Table> {
    let wanted = columns;
    let file = enter(py, None, None, move |progress| tunable::read(&text, progress))?;
    // Texts that differ in most rows are strings: polars would keep a dictionary of them for good.
    let string = |code| StringId::from_column(code).map(|id| file.strings.get(id));
    let columns = columns!(file.pieces.iter(), |piece| Columns {
        line: piece.line,
        offset: piece.offset,
        n_bytes: piece.n_bytes,
        ending: piece.ending,
        kind: piece.kind,
        reason: piece.reason,
        key: StringId::from_column(piece.key),
        value: StringId::from_column(piece.value),
        operator: StringId::from_column(piece.operator),
        parameters: string(piece.parameters),
        operation: StringId::from_column(piece.gemm.operation),
        dtype_a: StringId::from_column(piece.gemm.dtype_a),
        dtype_b: StringId::from_column(piece.gemm.dtype_b),
        dtype_c: StringId::from_column(piece.gemm.dtype_c),
        layout: StringId::from_column(piece.gemm.layout),
        transa: StringId::from_column(piece.gemm.transa),
        transb: StringId::from_column(piece.gemm.transb),
        wildcards: StringId::from_column(piece.gemm.wildcards),
        tail: StringId::from_column(piece.gemm.tail),
        bias: StringId::from_column(piece.gemm.bias),
        solution: StringId::from_column(piece.solution),
        family: StringId::from_column(piece.family),
        time: string(piece.time_text),
        blas_parameters: string(piece.blas_parameters),
        m: piece.gemm.m,
        n: piece.gemm.n,
        k: piece.gemm.k,
        batch: piece.gemm.batch,
        lda: piece.gemm.lda,
        ldb: piece.gemm.ldb,
        ldc: piece.gemm.ldc,
        solution_index: piece.solution_index,
        time_ns: piece.time_ns,
        status: piece.status,
    });
    let columns = match wanted {
        Some(wanted) => columns.only(|name| ALWAYS.contains(&name) || wanted.contains(name)),
        None => columns,
    };
    Table::with_texts(columns, &file.strings)
}

/// Columns of [`read_tunable`] that are always returned, regardless of the requested ones.
const ALWAYS: [&str; 8] =
    ["line", "offset", "n_bytes", "ending", "kind", "reason", "time_ns", "status"];

/// Returns the columns that decide between the rows of files, with numbers instead of names. With
/// `place`, the order of the rows is one of them.
#[pyfunction]
#[pyo3(signature = (texts, *, place=false))]
pub(crate) fn outline_tunable(
    py: Python<'_>,
    texts: Vec<PyBackedBytes>,
    place: bool,
) -> PyResult<Table> {
    let found = enter(py, None, None, move |progress| {
        let texts: Vec<&[u8]> = texts.iter().map(|text| &text[..]).collect();
        tunable::outline(&texts, place, progress)
    })?;
    let columns = Columns::default()
        .with("file", found.file.into_iter())
        .with("line", found.line.into_iter())
        .with("offset", found.offset.into_iter())
        .with("length", found.length.into_iter())
        .with("ending", found.ending.into_iter())
        .with("kind", found.kind.into_iter())
        .with("gemm", found.gemm.into_iter())
        .with("solution", found.solution.into_iter())
        .with_names("family", found.family.into_iter(), FAMILIES.to_vec())
        .with("time_ns", found.time_ns.into_iter())
        .with("flops", found.flops.into_iter())
        .with("has_wildcards", found.has_wildcards.into_iter());
    Table::of(if place { columns.with("place", found.place.into_iter()) } else { columns })
}
