//! What was found, as columns: the records, their further fields, and the rows
//! that could not be read.

use crate::names::{Names, named};
use std::sync::Arc;

use super::lines::{Line, Place};
use super::numbers::Unit;
use super::omitted::Omitted;
use crate::strings::Strings;

/// Stands for "none" in columns of bytes, as in all columns of integers.
pub const UNKNOWN_BYTES: i64 = i64::MIN;

named! {
    /// What a record is worth.
    Status {
        /// A positive finite time of a run that did not fail.
        Ok "ok",
        /// A time of zero: nothing ran, or a failure was printed as 0.
        Zero "zero",
        /// A time below zero, as tools print for "unsupported".
        Negative "negative",
        /// An infinite time.
        Infinite "inf",
        /// `nan` for a time.
        NotANumber "nan",
        /// The tool prints the row but has no time for it.
        Missing "missing",
        /// The tool says that the run failed or its result is wrong.
        Failed "failed",
        /// The process died on this line: digits may be missing.
        Cut "cut",
    }
}

impl Status {
    /// Whether the time may be compared with others.
    pub fn is_selectable(self) -> bool {
        self == Self::Ok
    }
}

named! {
    /// Why a row could not be read.
    Reason {
        /// The time is no decimal number.
        NotANumber "not_a_number",
        /// The unit of the time is none that we know.
        UnknownUnit "unknown_unit",
        /// The row has no time.
        MissingTime "missing_time",
        /// The row has no workspace.
        MissingWorkspace "missing_workspace",
        /// The workspace is no whole number of bytes.
        BadWorkspace "bad_workspace",
        /// A number of bytes does not fit 63 bits.
        OutOfRange "out_of_range",
        /// There is text before or behind the row on its line.
        ExtraText "extra_text",
        /// The row has not the columns of its header.
        WrongColumns "wrong_columns",
        /// The text ends within the row.
        Truncated "truncated",
        /// The line is longer than a megabyte.
        LineTooLong "line_too_long",
    }
}

/// The measured rows, in the order in which each was complete.
#[derive(Debug, Default)]
pub struct RecordTable {
    /// Where the row stands: the byte of the stream at which its line starts.
    pub offset: Vec<i64>,
    /// The format, as a place in [`Extraction::formats`].
    pub format: Vec<u32>,
    /// What was measured, as the tool names it; none where it does not say.
    pub operation: Vec<u32>,
    /// The time, NaN where there is no finite one.
    pub time_ns: Vec<f64>,
    /// The time as it was printed.
    pub time_text: Vec<u32>,
    /// The unit in which it was printed.
    pub time_unit: Vec<Unit>,
    /// The scratch memory it takes.
    pub workspace_bytes: Vec<i64>,
    /// The data it works on, where the tool says so.
    pub data_bytes: Vec<i64>,
    /// What the record is worth.
    pub status: Vec<Status>,
}

impl RecordTable {
    /// How many records there are.
    pub fn len(&self) -> usize {
        self.offset.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.offset.is_empty()
    }
}

/// Whatever else a row says, a row here for each field, by record.
#[derive(Debug, Default)]
pub struct FieldTable {
    /// The row of the record in its table.
    pub record: Vec<u32>,
    /// The name of the field in the tool's own words.
    pub name: Vec<u32>,
    /// Its value as it was printed.
    pub value: Vec<u32>,
}

/// The rows that could not be read; the first ten thousand of them.
#[derive(Debug, Default)]
pub struct RejectionTable {
    /// The byte of the stream at which the line starts.
    pub offset: Vec<i64>,
    /// The format that recognised it, as a place in [`Extraction::formats`].
    pub format: Vec<u32>,
    /// Why it could not be read.
    pub reason: Vec<Reason>,
    /// The start of its text.
    pub excerpt: Vec<u32>,
    /// How many there were, by [`Reason`], those included that are not kept.
    pub counts: [u64; Reason::ALL.len()],
}

impl RejectionTable {
    /// How many rows could not be read.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }
}

/// All that was found in one stream.
#[derive(Debug)]
pub struct Extraction {
    /// Every text.
    pub strings: Arc<Strings>,
    /// The names of the formats that were looked for.
    pub formats: Vec<String>,
    /// The measured rows.
    pub records: RecordTable,
    /// What else they say.
    pub fields: FieldTable,
    /// The rows that could not be read.
    pub rejections: RejectionTable,
    /// The rows beyond the limit of what is kept, by operation.
    pub omitted: Vec<Omitted>,
    /// The length of the stream.
    pub bytes: u64,
    /// Whether its last line has no line end.
    pub is_unterminated: bool,
}

/// A row that was understood, as a reader hands it over.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measurement<'a> {
    pub(super) place: Place,
    /// The row, for the excerpt should its time be no number.
    pub(super) row: &'a [u8],
    pub(super) operation: Option<&'a [u8]>,
    pub(super) time: &'a [u8],
    pub(super) unit: Unit,
    pub(super) workspace_bytes: Option<i64>,
    pub(super) data_bytes: Option<i64>,
    /// The tool itself says that the row is no good.
    pub(super) failed: bool,
}

impl<'a> Measurement<'a> {
    /// A row of `line` that took `time`; nothing else is known.
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
