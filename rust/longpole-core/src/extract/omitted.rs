//! Counts and summarizes rows beyond the limit, by operation.
//!
//! A program may print an unlimited number of rows. The first rows are kept completely. For the
//! others, each operation has its number of rows, the fastest comparable row, and the last time.
//! Operations beyond [`MAX_OPERATIONS`], and names longer than [`MAX_NAME_BYTES`], share one
//! summary per format, so memory is bounded for any output.

use std::collections::HashMap;

use super::numbers::Unit;

/// Maximum number of operations with their own summary.
const MAX_OPERATIONS: usize = 10_000;

/// Longer names share a summary.
const MAX_NAME_BYTES: usize = 256;

/// The rows of one operation that were not kept.
#[derive(Debug, Clone)]
pub struct Omitted {
    /// The format, as an index into [`Extraction::formats`](super::Extraction::formats).
    pub format: u32,
    /// The operation; `None` if the tool does not print it, or for the shared summary.
    pub operation: Option<String>,
    /// Whether this summarizes several operations.
    pub is_rest: bool,
    /// Number of rows.
    pub count: u64,
    /// Number of comparable rows.
    pub selectable: u64,
    /// The fastest comparable row; of equally fast ones, the first.
    pub fastest: Option<Fastest>,
    /// The time of the last row in nanoseconds; NaN if it is not finite.
    pub last_ns: f64,
}

/// The fastest row of an operation.
#[derive(Debug, Clone)]
pub struct Fastest {
    /// Its time.
    pub time_ns: f64,
    /// Its time as printed.
    pub printed_time: String,
    /// The printed unit.
    pub unit: Unit,
    /// Its workspace memory.
    pub workspace_bytes: Option<i64>,
    /// The size of its data, if printed.
    pub data_bytes: Option<i64>,
}

/// A row that is not kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row<'a> {
    pub(super) format: u32,
    pub(super) operation: Option<&'a [u8]>,
    /// NaN if the time is not finite.
    pub(super) time_ns: f64,
    pub(super) printed_time: &'a [u8],
    pub(super) unit: Unit,
    pub(super) workspace_bytes: Option<i64>,
    pub(super) data_bytes: Option<i64>,
    pub(super) is_selectable: bool,
}

/// The summaries under construction.
#[derive(Debug, Default)]
pub(super) struct Omissions {
    rows: Vec<Omitted>,
    by_name: HashMap<u32, HashMap<Vec<u8>, usize>>,
    rest: HashMap<u32, usize>,
}

impl Omissions {
    /// Adds a row.
    pub(super) fn add(&mut self, row: Row<'_>) {
        let place = self.place(row.format, row.operation);
        let summary = &mut self.rows[place];
        summary.count += 1;
        summary.last_ns = row.time_ns;
        if row.is_selectable {
            summary.selectable += 1;
            if summary.fastest.as_ref().is_none_or(|fastest| row.time_ns < fastest.time_ns) {
                summary.fastest = Some(Fastest::of(row));
            }
        }
    }

    /// Returns the summaries, in order of the first row of each operation.
    pub(super) fn into_rows(self) -> Vec<Omitted> {
        self.rows
    }

    fn place(&mut self, format: u32, operation: Option<&[u8]>) -> usize {
        let name = operation.unwrap_or_default();
        if let Some(&place) = self.by_name.get(&format).and_then(|names| names.get(name)) {
            return place;
        }
        if name.len() > MAX_NAME_BYTES || self.rows.len() >= MAX_OPERATIONS {
            let (rows, rest) = (&mut self.rows, &mut self.rest);
            return *rest.entry(format).or_insert_with(|| push(rows, format, None, true));
        }
        let text = operation.map(|text| String::from_utf8_lossy(text).into_owned());
        let place = push(&mut self.rows, format, text, false);
        self.by_name.entry(format).or_default().insert(name.to_vec(), place);
        place
    }
}

impl Fastest {
    fn of(row: Row<'_>) -> Self {
        Self {
            time_ns: row.time_ns,
            printed_time: String::from_utf8_lossy(row.printed_time).into_owned(),
            unit: row.unit,
            workspace_bytes: row.workspace_bytes,
            data_bytes: row.data_bytes,
        }
    }
}

fn push(rows: &mut Vec<Omitted>, format: u32, operation: Option<String>, is_rest: bool) -> usize {
    rows.push(Omitted {
        format,
        operation,
        is_rest,
        count: 0,
        selectable: 0,
        fastest: None,
        last_ns: f64::NAN,
    });
    rows.len() - 1
}
