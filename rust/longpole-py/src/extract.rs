//! Extracts records from the output of profilers.

use std::sync::{Mutex, PoisonError};

use longpole_core::columns::columns;
use longpole_core::extract::{self, End, FORMATS, ForeignRow, Pattern, Reason, UNKNOWN_BYTES};
use longpole_core::ids::StringId;
use longpole_core::names::Names;
use longpole_core::progress::report;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::arrow::Table;
use crate::enter::enter;

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
