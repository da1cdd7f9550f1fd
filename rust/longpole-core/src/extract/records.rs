//! What was found, as columns: the records, their further fields, and the rows
//! that could not be read.

use std::borrow::Cow;
use std::sync::Arc;

use super::lines::{Ending, Line, Place};
use super::numbers::{self, Number, Unit};
use super::omitted::{self, Omissions, Omitted};
use crate::ids::{row_in_column, InColumn, NO_ROW};
use crate::strings::Strings;

/// Stands for "none" in columns of bytes, as in all columns of integers.
pub const UNKNOWN_BYTES: i64 = i64::MIN;

/// Rows that could not be read are kept up to this number, and counted beyond it.
const MAX_KEPT_REJECTIONS: usize = 10_000;

/// How much is kept of the text of a row that could not be read.
const MAX_EXCERPT_BYTES: usize = 200;

/// Records kept where the caller sets no limit of its own.
const MAX_RECORDS: usize = 1 << 24;

/// No further record is kept once the texts take so many bytes for each record that may be...
const MAX_TEXT_BYTES_PER_RECORD: usize = 64;

/// ...and so many bytes in any case.
const MIN_TEXT_BYTES: usize = 1 << 20;

/// No further record is kept once there are so many fields for each record that may be.
const MAX_FIELDS_PER_RECORD: usize = 64;

/// Declares an enum with the name of each value outside.
macro_rules! named {
    ($(#[$doc:meta])* $type:ident { $($(#[$value_doc:meta])* $value:ident $name:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum $type { $($(#[$value_doc])* $value,)* }

        impl $type {
            /// Every value, in the order of the enum.
            pub const ALL: &'static [Self] = &[$(Self::$value,)*];

            /// Its name for programs, stable between versions.
            pub fn name(self) -> &'static str {
                match self { $(Self::$value => $name,)* }
            }
        }
    };
}

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

/// The columns while they are written.
#[derive(Debug)]
pub(super) struct Found {
    /// The place of the format whose reader is at work.
    pub(super) format: u32,
    max_records: usize,
    strings: Strings,
    text_bytes: usize,
    records: RecordTable,
    fields: FieldTable,
    rejections: RejectionTable,
    omissions: Omissions,
}

impl Default for Found {
    fn default() -> Self {
        Self::with_limit(MAX_RECORDS)
    }
}

impl Found {
    /// Keeps the first `max_records` records.
    pub(super) fn with_limit(max_records: usize) -> Self {
        Self {
            format: 0,
            max_records: max_records.min(MAX_RECORDS),
            strings: Strings::default(),
            text_bytes: 0,
            records: RecordTable::default(),
            fields: FieldTable::default(),
            rejections: RejectionTable::default(),
            omissions: Omissions::default(),
        }
    }

    /// Adds a record, sums it up where no more are kept, or rejects the row if its time
    /// is no number. Whether there is a record.
    pub(super) fn measured(&mut self, measurement: &Measurement<'_>) -> bool {
        let Some(number) = numbers::nanoseconds(measurement.time, measurement.unit) else {
            self.reject(measurement.place, measurement.row, Reason::NotANumber);
            return false;
        };
        if self.is_full() {
            self.omit(measurement, number);
            return false;
        }
        self.push(measurement, number);
        true
    }

    fn omit(&mut self, measurement: &Measurement<'_>, number: Number) {
        self.omissions.add(omitted::Row {
            format: self.format,
            operation: measurement.operation,
            time_ns: finite(number),
            printed_time: measurement.time,
            unit: measurement.unit,
            workspace_bytes: measurement.workspace_bytes,
            data_bytes: measurement.data_bytes,
            is_selectable: status(measurement, number).is_selectable(),
        });
    }

    /// Whether further rows are summarised: once this is so, it stays so.
    fn is_full(&self) -> bool {
        let max_text_bytes = self.max_records.saturating_mul(MAX_TEXT_BYTES_PER_RECORD);
        self.records.len() >= self.max_records
            || self.text_bytes >= max_text_bytes.max(MIN_TEXT_BYTES)
            || self.fields.record.len() >= self.max_records.saturating_mul(MAX_FIELDS_PER_RECORD)
    }

    fn push(&mut self, measurement: &Measurement<'_>, number: Number) {
        let operation = measurement.operation.map_or(NO_ROW, |text| self.text(text));
        let time_text = self.text(measurement.time);
        let records = &mut self.records;
        records.offset.push(offset_in_column(measurement.place.offset));
        records.format.push(self.format);
        records.operation.push(operation);
        records.time_ns.push(finite(number));
        records.time_text.push(time_text);
        records.time_unit.push(measurement.unit);
        records.workspace_bytes.push(measurement.workspace_bytes.unwrap_or(UNKNOWN_BYTES));
        records.data_bytes.push(measurement.data_bytes.unwrap_or(UNKNOWN_BYTES));
        records.status.push(status(measurement, number));
    }

    /// Adds a field to the last record.
    pub(super) fn field(&mut self, name: &[u8], value: &[u8]) {
        let Some(record) = self.records.len().checked_sub(1) else { return };
        let (name, value) = (self.text(name), self.text(value));
        self.fields.record.push(row_in_column(record));
        self.fields.name.push(name);
        self.fields.value.push(value);
    }

    /// Adds a field to the last record, unless it is empty.
    pub(super) fn optional_field(&mut self, name: &[u8], value: &[u8]) {
        if !value.is_empty() {
            self.field(name, value);
        }
    }

    /// Adds the columns of a row to the last record, but for those that say what
    /// the record says itself.
    pub(super) fn fields_but(
        &mut self,
        names: &[Vec<u8>],
        values: &[Cow<'_, [u8]>],
        known: &[usize],
    ) {
        for (column, (name, value)) in names.iter().zip(values).enumerate() {
            if !known.contains(&column) {
                self.optional_field(name, value);
            }
        }
    }

    /// Counts a row that could not be read. Where the text ends within it, that is
    /// the reason, whatever else was missing.
    pub(super) fn reject(&mut self, place: Place, row: &[u8], reason: Reason) {
        let reason = if place.ending == Ending::Newline { reason } else { Reason::Truncated };
        self.rejections.counts[reason as usize] += 1;
        if self.rejections.offset.len() == MAX_KEPT_REJECTIONS {
            return;
        }
        let excerpt = self.text(&row[..row.len().min(MAX_EXCERPT_BYTES)]);
        self.rejections.offset.push(offset_in_column(place.offset));
        self.rejections.format.push(self.format);
        self.rejections.reason.push(reason);
        self.rejections.excerpt.push(excerpt);
    }

    /// The tables, written to the end.
    pub(super) fn into_extraction(
        self,
        formats: Vec<String>,
        bytes: u64,
        is_unterminated: bool,
    ) -> Extraction {
        Extraction {
            strings: self.strings.freeze(),
            formats,
            records: self.records,
            fields: self.fields,
            rejections: self.rejections,
            omitted: self.omissions.into_rows(),
            bytes,
            is_unterminated,
        }
    }

    fn text(&mut self, text: &[u8]) -> u32 {
        let n_texts = self.strings.len();
        let id = self.strings.intern(&String::from_utf8_lossy(text));
        if self.strings.len() > n_texts {
            self.text_bytes += text.len();
        }
        Some(id).in_column()
    }
}

/// A death or a failure outweighs what the number looks like: it is the reason that helps.
fn status(measurement: &Measurement<'_>, number: Number) -> Status {
    if measurement.place.ending == Ending::Cut {
        return Status::Cut;
    }
    match number {
        _ if measurement.failed => Status::Failed,
        Number::Missing => Status::Missing,
        Number::Undefined => Status::NotANumber,
        Number::Value(value) if value.is_infinite() => Status::Infinite,
        Number::Value(value) if value < 0.0 => Status::Negative,
        Number::Value(value) if value > 0.0 => Status::Ok,
        Number::Value(_) => Status::Zero,
    }
}

fn finite(number: Number) -> f64 {
    match number {
        Number::Value(value) if value.is_finite() => value,
        _ => f64::NAN,
    }
}

/// No stream is longer than 2^63 bytes.
fn offset_in_column(offset: u64) -> i64 {
    i64::try_from(offset).unwrap_or(i64::MAX)
}
