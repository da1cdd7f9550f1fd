//! The result tables: records, their additional fields, and rejected rows.

use crate::names::{Names, named};
use std::sync::Arc;

use super::lines::{Line, Place};
use super::numbers::Unit;
use super::omitted::Omitted;
use crate::strings::Strings;

/// Represents null in columns of bytes, as in all integer columns.
pub const UNKNOWN_BYTES: i64 = i64::MIN;

named! {
    /// The validity of a record.
    Status {
        /// A positive finite time of a run that did not fail.
        Ok "ok",
        /// A time of zero: nothing ran, or a failure was printed as 0.
        Zero "zero",
        /// A negative time, which tools print for "unsupported".
        Negative "negative",
        /// An infinite time.
        Infinite "inf",
        /// `nan` for a time.
        NotANumber "nan",
        /// The tool prints the row without a time.
        Missing "missing",
        /// The tool reports that the run failed or its result is wrong.
        Failed "failed",
        /// The process was terminated on this line: digits may be missing.
        Cut "cut",
    }
}

impl Status {
    /// Whether the time can be compared with others.
    pub fn is_selectable(self) -> bool {
        self == Self::Ok
    }
}

named! {
    /// Why a row could not be read.
    Reason {
        /// The time is not a decimal number.
        NotANumber "not_a_number",
        /// The unit of the time is unknown.
        UnknownUnit "unknown_unit",
        /// The row has no time.
        MissingTime "missing_time",
        /// The row has no workspace.
        MissingWorkspace "missing_workspace",
        /// The workspace is not an integer number of bytes.
        BadWorkspace "bad_workspace",
        /// A number of bytes does not fit 63 bits.
        OutOfRange "out_of_range",
        /// There is text before or after the row on its line.
        ExtraText "extra_text",
        /// The row does not have the columns of its header.
        WrongColumns "wrong_columns",
        /// The text ends inside the row.
        Truncated "truncated",
        /// The line is longer than a megabyte.
        LineTooLong "line_too_long",
    }
}

/// The measurements, in the order in which they were completed.
#[derive(Debug, Default)]
pub struct RecordTable {
    /// The offset of the row's line in the stream.
    pub offset: Vec<i64>,
    /// The format, as an index into [`Extraction::formats`].
    pub format: Vec<u32>,
    /// The operation, as named by the tool; null if it is not printed.
    pub operation: Vec<u32>,
    /// The time; NaN if it is not finite.
    pub time_ns: Vec<f64>,
    /// The time as printed.
    pub time_text: Vec<u32>,
    /// The printed unit.
    pub time_unit: Vec<Unit>,
    /// The workspace memory.
    pub workspace_bytes: Vec<i64>,
    /// The size of the data, if printed.
    pub data_bytes: Vec<i64>,
    /// The validity of the record.
    pub status: Vec<Status>,
}

impl RecordTable {
    /// Returns the number of records.
    pub fn len(&self) -> usize {
        self.offset.len()
    }

    /// Whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.offset.is_empty()
    }
}

/// The additional fields of rows, one row for each field, sorted by record.
#[derive(Debug, Default)]
pub struct FieldTable {
    /// The row of the record in its table.
    pub record: Vec<u32>,
    /// The name of the field, as printed.
    pub name: Vec<u32>,
    /// Its value, as printed.
    pub value: Vec<u32>,
}

/// The rejected rows, up to ten thousand.
#[derive(Debug, Default)]
pub struct RejectionTable {
    /// The offset of the line in the stream.
    pub offset: Vec<i64>,
    /// The format that recognized it, as an index into [`Extraction::formats`].
    pub format: Vec<u32>,
    /// The reason.
    pub reason: Vec<Reason>,
    /// The start of its text.
    pub excerpt: Vec<u32>,
    /// The number of rejected rows by [`Reason`], including those that are not kept.
    pub counts: [u64; Reason::ALL.len()],
}

impl RejectionTable {
    /// Returns the number of rejected rows.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }
}

/// The result of extracting from one stream.
#[derive(Debug)]
pub struct Extraction {
    /// All strings.
    pub strings: Arc<Strings>,
    /// The names of the searched formats.
    pub formats: Vec<String>,
    /// The measurements.
    pub records: RecordTable,
    /// The additional fields of the measurements.
    pub fields: FieldTable,
    /// The rejected rows.
    pub rejections: RejectionTable,
    /// The rows beyond the limit, by operation.
    pub omitted: Vec<Omitted>,
    /// The length of the stream in bytes.
    pub bytes: u64,
    /// Whether its last line has no line ending.
    pub is_unterminated: bool,
}

/// A measurement passed on by a reader.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measurement<'a> {
    pub(super) place: Place,
    /// The row, used as the excerpt if its time is not a number.
    pub(super) row: &'a [u8],
    pub(super) operation: Option<&'a [u8]>,
    pub(super) time: &'a [u8],
    pub(super) unit: Unit,
    pub(super) workspace_bytes: Option<i64>,
    pub(super) data_bytes: Option<i64>,
    /// Whether the tool itself reports a failure.
    pub(super) failed: bool,
}

impl<'a> Measurement<'a> {
    /// Creates a measurement for a row on `line` with this `time`.
    pub(super) fn new(line: Line<'a>, time: &'a [u8], unit: Unit) -> Self {
        Self {
            place: line.place,
            row: line.text,
            operation: None,
            time,
            unit,
            workspace_bytes: None,
            data_bytes: None,
            failed: false,
        }
    }
}
