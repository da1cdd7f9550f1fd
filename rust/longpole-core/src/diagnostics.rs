//! Problems found while reading: counted by kind, with the offset of the first.
//!
//! A million invalid names are one row. Everything that is left out of a table is counted here.

use serde_json::{Value, json};

use crate::names::named;

named! {
    /// The severity of a finding.
    Severity {
        /// Information; the tables match the file.
        Info "info",
        /// A warning about the content of the file; the tables match it.
        Warning "warning",
        /// Part of the file was altered to be readable.
        Altered "altered",
        /// Part of the file is not in the tables.
        Loss "data_loss",
    }
}

/// Declares all kinds of findings in one table: name, severity, description, consequence for the
/// tables.
macro_rules! codes {
    ($($code:ident $name:literal $severity:ident $sentence:literal $effect:literal;)*) => {
        /// A kind of finding.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $(#[doc = $sentence] $code,)*
        }

        impl Code {
            /// All kinds, in enum order.
            pub const ALL: &'static [Self] = &[$(Self::$code,)*];

            /// Returns the machine-readable name, stable between versions.
            pub fn name(self) -> &'static str {
                match self { $(Self::$code => $name,)* }
            }

            /// Returns the severity.
            pub fn severity(self) -> Severity {
                match self { $(Self::$code => Severity::$severity,)* }
            }

            /// Returns the description.
            pub fn sentence(self) -> &'static str {
                match self { $(Self::$code => $sentence,)* }
            }

            /// Returns the consequence for the tables.
            pub fn effect(self) -> &'static str {
                match self { $(Self::$code => $effect,)* }
            }
        }
    };
}

codes! {
    // The frame of the document.
    ByteOrderMark "byte_order_mark" Info "the file starts with a UTF-8 byte order mark" "none";
    Truncated "truncated" Loss "the file ends inside the trace" "the rest of the trace is missing";
    MissingEnd "missing_end" Altered "the closing `]` or `}`, or the last line break of a CSV file, is missing" "every event before it is kept";
    TrailingComma "trailing_comma" Altered "no value follows a comma" "none; the comma is ignored";
    ExtraComma "extra_comma" Altered "there are more commas than values" "none; the comma is ignored";
    MissingComma "missing_comma" Altered "the comma between two values is missing" "none; both values are kept";
    TextAfterEnd "text_after_end" Loss "extra text follows the end of the document" "only the first document is read";
    RepeatedEvents "repeated_trace_events" Altered "`traceEvents` occurs more than once" "the events of all of them are kept";
    LimitReached "limit_reached" Loss "reading stopped at the requested limit" "the rest of the trace is missing";
    MalformedHeader "malformed_header" Loss "a header field, or the header of a CSV file, is malformed" "the field or the file is skipped";
    HeaderTooLarge "header_too_large" Loss "a header field exceeds the size limit" "the field is skipped";
    BadRank "bad_rank" Warning "the rank in `distributedInfo` is not an integer from 0 to 2^31 - 1" "the rank is unknown";
    // Events as a whole.
    MalformedEvent "malformed_event" Loss "malformed text where an event was expected" "the text is skipped";
    NotAnEvent "not_an_event" Loss "a value in the list of events is not an object" "the value is skipped";
    EventTooLarge "event_too_large" Loss "an event exceeds the size limit" "the event is skipped";
    TooDeep "too_deep" Loss "values of an event are nested more than 512 deep" "the event is skipped";
    BadTimestamp "bad_timestamp" Loss "the `ts` of an event is not a valid number, or exceeds 2^62 ns" "the event is skipped";
    MissingTimestamp "missing_timestamp" Loss "an event has no `ts`" "the event is skipped";
    MissingPhase "missing_phase" Warning "an event has no `ph` (phase)" "it is kept as kind `other`";
    UnknownPhase "unknown_phase" Warning "an event has an unknown `ph` (phase)" "it is kept as kind `other`";
    MissingName "missing_name" Warning "an event has no name" "its name is null";
    BadDuration "bad_duration" Altered "a `dur` is not a valid number" "the duration is null";
    MissingDuration "missing_duration" Warning "a complete event has no `dur`" "the duration is null";
    NegativeDuration "negative_duration" Warning "a duration is negative" "it is kept as recorded and left out of every sum";
    HugeDuration "huge_duration" Warning "an event ends beyond 2^62 ns" "the duration is null";
    LongDuration "long_duration" Warning "a duration exceeds 104 days, or all durations together 73 years" "the duration is null";
    FarTimestamp "far_timestamp" Loss "an event is more than 104 days away from most of the others" "the event is skipped";
    OtherClock "other_clock" Info "asynchronous events or samples have the times of another clock" "they are left out";
    NegativeTimestamp "negative_timestamp" Warning "a timestamp is negative" "it is kept; the event started before the base time";
    ZeroTimestamp "zero_timestamp" Warning "a GPU activity has timestamp 0 because the profiler did not record its time" "it is left out of the window of the trace";
    UnmatchedBegin "unmatched_begin" Warning "a begin event has no end event" "it is kept with a null duration";
    UnmatchedEnd "unmatched_end" Warning "an end event has no begin event" "it is skipped";
    EndArguments "end_arguments" Info "an end event has arguments" "only the arguments of the begin event are kept";
    UnknownTaskType "unknown_task_type" Warning "a task of an Ascend device has an unknown type" "it does not count as a GPU activity";
    UnknownDeviceLine "unknown_device_line" Warning "an event of a device is on a line of XProf that is unknown" "it does not count as a GPU activity";
    // Messages of Protocol Buffers.
    MalformedMessage "malformed_message" Loss "a Protocol Buffers message is malformed" "the message is skipped";
    ZeroBytes "zero_bytes" Loss "the file ends in zero bytes" "what was not written there is missing";
    MessageTooLarge "message_too_large" Loss "a Protocol Buffers message exceeds the size limit" "the message is skipped";
    UnknownPacket "unknown_packet" Info "longpole does not use this kind of Perfetto packet" "the packet is skipped";
    LostPacket "lost_packet" Loss "Perfetto lost packets of a sequence while it recorded" "their events are missing";
    MissingState "missing_state" Loss "an event belongs to a Perfetto sequence whose names were lost" "the event is skipped";
    UnknownClock "unknown_clock" Warning "the file does not relate the clock of a time to the clock of the trace" "the time is kept as recorded";
    // Nodes of an execution trace.
    MalformedNode "malformed_node" Loss "a node is malformed" "the node is skipped";
    NodeTooLarge "node_too_large" Loss "a node exceeds the size limit" "the node is skipped";
    NodeWithoutId "node_without_id" Loss "a node has no id below 2^40, or no name" "the node is skipped";
    RepeatedNode "repeated_node" Loss "two nodes have the same id" "the first of them is kept";
    UnescapedName "unescaped_name" Altered "a name has quotation marks that are not escaped" "the name is read up to the most likely closing quotation mark";
    MissingParent "missing_parent" Warning "the file does not contain the parent of a node" "the node has no parent";
    // Values.
    InvalidUtf8 "invalid_utf8" Altered "a text has bytes that are not UTF-8" "they are replaced by U+FFFD";
    ControlCharacter "control_character" Altered "a text has an unescaped control character" "the character is kept";
    InvalidEscape "invalid_escape" Altered "a text has an invalid escape" "the backslash is kept";
    LoneSurrogate "lone_surrogate" Altered "an escape has half of a Unicode surrogate pair" "it is replaced by U+FFFD";
    TextCut "text_cut" Loss "a text is longer than 16 MiB" "the text is cut there";
    NonFinite "non_finite_number" Altered "`nan` or infinity where JSON requires a number" "the value is null";
    InvalidNumber "invalid_number" Altered "a number or word is malformed" "the value is null";
    BadId "bad_id" Warning "an id is not a 64-bit integer" "the id is null";
    // Databases.
    DamagedTable "damaged_table" Loss "a table of the database is damaged" "the rest of its rows is missing";
    DamagedPage "damaged_page" Loss "a page of the database is damaged" "rows of a table may be missing";
    DamagedText "damaged_text" Loss "a text has zero bytes, so part of the file may be lost" "the text is cut there";
    ValueTooLong "value_too_long" Loss "a value in the database is longer than 64 MiB" "its row is skipped";
    MissingRows "missing_rows" Loss "rows are missing inside a table of the database: they were deleted, or a page was lost" "their records are missing";
    NoWriteAheadLog "no_write_ahead_log" Warning "the write-ahead log of the database is missing" "the last rows are missing if the file was copied while it was open";
    UnreadTable "unread_table" Info "longpole does not read this table of the profiler" "its records are missing";
    WholeGraph "whole_graph" Warning "a CUDA graph was recorded as a whole" "it counts as one kernel; the file does not contain its nodes";
    // Compression.
    CompressionTruncated "compression_truncated" Loss "the compressed stream is truncated" "the rest of the trace is missing";
    CompressionCorrupt "compression_corrupt" Loss "the compressed stream is corrupt" "the rest is not read, and values shortly before may be wrong";
    CompressionChecksum "compression_checksum" Altered "the CRC checksum of the compressed stream is wrong" "everything is read, but values may be wrong";
    CompressionTrailing "compression_trailing_bytes" Altered "bytes follow the end of the compressed stream" "they are ignored";
}

impl Code {
    /// Whether an event, a string or a value is missing or may be wrong.
    pub fn is_loss(self) -> bool {
        let is_kept = matches!(
            self,
            Self::TrailingComma
                | Self::ExtraComma
                | Self::MissingComma
                | Self::RepeatedEvents
                | Self::CompressionTrailing
                | Self::InvalidEscape
                | Self::LoneSurrogate
                | Self::NonFinite
        );
        self.severity() >= Severity::Altered && !is_kept
    }

    /// Whether strict reading rejects a file because of it.
    pub fn is_refused_by_strict(self) -> bool {
        self.severity() >= Severity::Altered || self == Self::ByteOrderMark
    }
}

/// One kind of finding in one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Diagnostic {
    /// The kind.
    pub code: Code,
    /// Number of occurrences.
    pub count: u64,
    /// Offset of the first occurrence in the uncompressed file.
    pub first_offset: u64,
    /// Number of bytes skipped, over all occurrences.
    pub skipped_bytes: u64,
}

impl Diagnostic {
    /// Returns a row in the form in which longpole writes it to files.
    pub(crate) fn to_json(self) -> Value {
        json!([self.code.name(), self.count, self.first_offset, self.skipped_bytes])
    }

    /// Reads a row from such a file.
    pub(crate) fn of_json(row: &Value) -> Option<Self> {
        let (name, count, first_offset, skipped_bytes): (String, u64, u64, u64) =
            serde_json::from_value(row.clone()).ok()?;
        let code = *Code::ALL.iter().find(|code| code.name() == name)?;
        Some(Self { code, count, first_offset, skipped_bytes })
    }
}

/// All findings of one file, in order of first occurrence of their kinds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diagnostics {
    rows: Vec<Diagnostic>,
}

impl Diagnostics {
    /// Counts a finding.
    pub fn add(&mut self, code: Code, offset: u64) {
        self.add_skipped(code, offset, 0);
    }

    /// Counts several findings at one offset.
    pub(crate) fn add_many(&mut self, code: Code, offset: u64, count: u64) {
        if count > 0 {
            self.add_row(Diagnostic { code, count, first_offset: offset, skipped_bytes: 0 });
        }
    }

    /// Counts a finding for which `bytes` were skipped.
    pub fn add_skipped(&mut self, code: Code, offset: u64, bytes: u64) {
        self.add_row(Diagnostic { code, count: 1, first_offset: offset, skipped_bytes: bytes });
    }

    /// Adds the findings of a later part of the file.
    pub(crate) fn append(&mut self, later: &Self) {
        self.append_at(later, 0);
    }

    /// Adds the findings of another file, which follows after `bytes` bytes.
    pub(crate) fn append_at(&mut self, later: &Self, bytes: u64) {
        for &row in &later.rows {
            self.add_row(Diagnostic { first_offset: row.first_offset + bytes, ..row });
        }
    }

    pub(crate) fn add_row(&mut self, later: Diagnostic) {
        if let Some(row) = self.rows.iter_mut().find(|row| row.code == later.code) {
            row.count = row.count.saturating_add(later.count);
            row.first_offset = row.first_offset.min(later.first_offset);
            row.skipped_bytes = row.skipped_bytes.saturating_add(later.skipped_bytes);
        } else {
            self.rows.push(later);
        }
    }

    /// Whether there are no findings.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Creates the findings from existing rows.
    pub(crate) fn of_rows(rows: Vec<Diagnostic>) -> Self {
        Self { rows }
    }

    /// Iterates over the findings.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.rows.iter()
    }

    /// Returns the number of findings with `code`.
    pub fn count(&self, code: Code) -> u64 {
        self.rows.iter().find(|row| row.code == code).map_or(0, |row| row.count)
    }

    /// Whether part of the file was lost or altered.
    pub fn is_recovered(&self) -> bool {
        self.rows.iter().any(|row| row.code.severity() >= Severity::Altered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_one_line_with_its_first_place() {
        let mut found = Diagnostics::default();
        for offset in [900, 40, 70] {
            found.add(Code::InvalidUtf8, offset);
        }
        let rows: Vec<_> =
            found.iter().map(|row| (row.code, row.count, row.first_offset)).collect();
        assert_eq!(rows, [(Code::InvalidUtf8, 3, 40)]);
    }

    #[test]
    fn a_warning_is_no_recovery() {
        let mut found = Diagnostics::default();
        found.add(Code::NegativeDuration, 5);
        assert!(!found.is_recovered());
        found.add(Code::TrailingComma, 9);
        assert!(found.is_recovered());
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = Code::ALL.iter().map(|code| code.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Code::ALL.len());
    }
}
