//! The tables of an extraction under construction.
//!
//! A row is kept with its time and its fields, or with the reason why it could not be read. The
//! number of rows kept is bounded for any stream; further rows are counted.

use std::borrow::Cow;

use super::lines::{Ending, Place};
use super::numbers::{self, Number};
use super::omitted::{self, Omissions};
use super::records::{
    Extraction, FieldTable, Measurement, Reason, RecordTable, RejectionTable, Status, UNKNOWN_BYTES,
};
use crate::ids::{InColumn, NO_ROW, row_in_column};
use crate::strings::Strings;
/// Maximum number of rejected rows that are kept; further ones are counted.
const MAX_KEPT_REJECTIONS: usize = 10_000;

/// Maximum length of the excerpt of a rejected row.
const MAX_EXCERPT_BYTES: usize = 200;

/// Default maximum number of records.
const MAX_RECORDS: usize = 1 << 24;

/// No further record is kept if strings take more than this many bytes per allowed record.
const MAX_TEXT_BYTES_PER_RECORD: usize = 64;

/// Minimum size of the string limit.
const MIN_TEXT_BYTES: usize = 1 << 20;

/// No further record is kept if there are more than this many fields per allowed record.
const MAX_FIELDS_PER_RECORD: usize = 64;

/// The tables under construction.
#[derive(Debug)]
pub(super) struct Found {
    /// The index of the format whose reader is running.
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
    /// Sets the maximum number of records.
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

    /// Adds a record, or summarizes it if the limit is reached, or rejects the row if its time is
    /// not a number. Returns whether a record was added.
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

    /// Whether further rows are summarized; once true, it stays true.
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

    /// Adds the columns of a row to the last record, except those that the record already contains.
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

    /// Counts a row that could not be read. If the text ends inside the row, this is the reason,
    /// regardless of what else is missing.
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

    /// Returns the finished tables.
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

/// Returns the status of a measurement. A crash or a failure takes precedence over the value of the
/// number, because it is the more useful reason.
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

/// Returns an offset as a column value; no stream is longer than 2^63 bytes.
fn offset_in_column(offset: u64) -> i64 {
    i64::try_from(offset).unwrap_or(i64::MAX)
}
