//! What reading found wrong: counted by kind, with the place of the first.
//!
//! A million bad names are one line. Nothing is left out of a table without a
//! line here.

use crate::names::named;

named! {
    /// How much a finding costs.
    Severity {
        /// Worth knowing; the tables are what the file says.
        Info "info",
        /// A warning about what the file says; the tables are still what it says.
        Warning "warning",
        /// Something of the file was altered to be readable.
        Altered "altered",
        /// Something of the file is not in the tables.
        Loss "data_loss",
    }
}

/// Declares every kind of finding in one table: name, severity, what was found,
/// what that means for the tables.
macro_rules! codes {
    ($($code:ident $name:literal $severity:ident $sentence:literal $effect:literal;)*) => {
        /// A kind of finding.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $(#[doc = $sentence] $code,)*
        }

        impl Code {
            /// Every kind, in the order of the enum.
            pub const ALL: &'static [Self] = &[$(Self::$code,)*];

            /// Its name for programs, stable between versions.
            pub fn name(self) -> &'static str {
                match self { $(Self::$code => $name,)* }
            }

            /// How much it costs.
            pub fn severity(self) -> Severity {
                match self { $(Self::$code => Severity::$severity,)* }
            }

            /// What was found.
            pub fn sentence(self) -> &'static str {
                match self { $(Self::$code => $sentence,)* }
            }

            /// What that means for the tables.
            pub fn effect(self) -> &'static str {
                match self { $(Self::$code => $effect,)* }
            }
        }
    };
}

codes! {
    // The frame of the document.
    ByteOrderMark "byte_order_mark" Info "the file begins with a UTF-8 byte order mark" "none";
    Truncated "truncated" Loss "the file is truncated: it ends inside the trace" "the rest of the trace is missing";
    MissingEnd "missing_end" Altered "the file is cut short: the closing ] or } is missing" "the bracket is assumed; every event before it is kept";
    TrailingComma "trailing_comma" Altered "a comma with no value behind it" "none; the comma is ignored";
    ExtraComma "extra_comma" Altered "more commas than values" "none; the comma is ignored";
    MissingComma "missing_comma" Altered "the comma between two values is missing" "none; both values are kept";
    TextAfterEnd "text_after_end" Loss "text after the end of the document" "only the first document is read";
    RepeatedEvents "repeated_trace_events" Altered "`traceEvents` occurs more than once" "the events of all are kept";
    LimitReached "limit_reached" Loss "reading stopped at the limit that was asked for" "what stands behind is not in the tables";
    MalformedHeader "malformed_header" Loss "a malformed header field was skipped" "its facts are missing";
    HeaderTooLarge "header_too_large" Loss "a header field above the size limit was skipped" "its facts are missing";
    BadRank "bad_rank" Warning "the rank in `distributedInfo` is no integer" "the rank is unknown";
    // Events as a whole.
    MalformedEvent "malformed_event" Loss "malformed text where an event was expected was skipped" "what stood there is not in the tables";
    NotAnEvent "not_an_event" Loss "a value among the events is not an object" "it is skipped";
    EventTooLarge "event_too_large" Loss "an event above the size limit was skipped" "it is not in the tables";
    TooDeep "too_deep" Loss "values nested deeper than the limit of 512 were skipped" "the event is not in the tables";
    BadTimestamp "bad_timestamp" Loss "an event was skipped because its ts is not a valid number, or beyond 2^62 ns" "it is not in the tables";
    MissingTimestamp "missing_timestamp" Loss "an event without a ts was skipped" "it is not in the tables";
    MissingPhase "missing_phase" Warning "an event without a ph (phase)" "it is kept as kind `other`";
    UnknownPhase "unknown_phase" Warning "an event with an unknown ph (phase)" "it is kept as kind `other`";
    MissingName "missing_name" Warning "an event without a name" "its name is null";
    BadDuration "bad_duration" Altered "a dur that is not a valid number" "the duration is null";
    MissingDuration "missing_duration" Warning "a complete event without a dur" "the duration is null";
    NegativeDuration "negative_duration" Warning "a negative duration" "kept as recorded, and left out of every sum";
    HugeDuration "huge_duration" Warning "a duration that ends beyond 2^62 ns" "the duration is null";
    NegativeTimestamp "negative_timestamp" Warning "a negative timestamp" "kept; the event began before the base time";
    ZeroTimestamp "zero_timestamp" Warning "a GPU activity with timestamp 0 (the profiler got no time for it)" "kept, and left out of the window of the trace";
    UnmatchedBegin "unmatched_begin" Warning "a begin event that never ended (no matching end)" "kept with a null duration";
    UnmatchedEnd "unmatched_end" Warning "an end event without its begin" "it is counted here only";
    EndArguments "end_arguments" Info "arguments on an end event" "only those of the begin event are kept";
    UnknownTaskType "unknown_task_type" Warning "a task of an Ascend device whose type is not known" "it counts as no work of the device";
    UnknownDeviceLine "unknown_device_line" Warning "an event of a device on a line of XProf that is not known" "it counts as no work of the device";
    // Nodes of an execution trace.
    MalformedNode "malformed_node" Loss "a malformed node was skipped" "it is not in the tables";
    NodeTooLarge "node_too_large" Loss "a node above the size limit was skipped" "it is not in the tables";
    NodeWithoutId "node_without_id" Loss "a node without an id or a name was skipped" "it is not in the tables";
    RepeatedNode "repeated_node" Loss "a node with the id of another one was skipped" "the first of them is kept";
    UnescapedName "unescaped_name" Altered "a name with quotation marks that are not escaped" "the name is read up to the next member of the node";
    MissingParent "missing_parent" Warning "a node whose parent is not in the file" "the node has no parent";
    // Values.
    InvalidUtf8 "invalid_utf8" Altered "bytes in a text that are not UTF-8" "replaced by U+FFFD";
    ControlCharacter "control_character" Altered "an unescaped control character in a text" "kept";
    InvalidEscape "invalid_escape" Altered "an invalid escape in a text" "the backslash is kept";
    LoneSurrogate "lone_surrogate" Altered "half of a Unicode surrogate pair in an escape" "replaced by U+FFFD";
    TextCut "text_cut" Loss "a text above 16 MiB was cut" "the rest of it is missing";
    NonFinite "non_finite_number" Altered "nan or infinity where JSON wants a number" "null";
    InvalidNumber "invalid_number" Altered "a malformed number or word" "null";
    BadId "bad_id" Warning "an id that is no 64-bit integer" "null in the id column";
    // Databases.
    DamagedTable "damaged_table" Loss "a table of the database is damaged" "the rest of its rows is missing";
    UnreadTable "unread_table" Info "a table of the profiler that longpole does not read" "its records are not in the tables";
    WholeGraph "whole_graph" Warning "a CUDA graph that was recorded as a whole" "it counts as one kernel; those inside are not in the file";
    // Compression.
    GzipTruncated "gzip_truncated" Loss "the gzip stream is truncated" "the rest of the trace is missing";
    GzipCorrupt "gzip_corrupt" Loss "the gzip stream is corrupt" "what stands behind is not read, and values shortly before may be wrong";
    GzipChecksum "gzip_checksum" Altered "the CRC checksum of the gzip stream is wrong" "all was read, but values may be wrong";
    GzipTrailing "gzip_trailing_bytes" Altered "bytes after the end of the gzip stream" "they are ignored";
}

impl Code {
    /// Whether strict reading refuses a file for it.
    pub fn is_refused_by_strict(self) -> bool {
        self.severity() >= Severity::Altered || self == Self::ByteOrderMark
    }
}

/// One kind of finding in one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Diagnostic {
    /// What was found.
    pub code: Code,
    /// How often.
    pub count: u64,
    /// The byte of the uncompressed file where it was found first.
    pub first_offset: u64,
    /// How many bytes were skipped for it, over all occurrences.
    pub skipped_bytes: u64,
}

/// All findings of one file, in the order in which their kinds turned up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diagnostics {
    rows: Vec<Diagnostic>,
}

impl Diagnostics {
    /// Counts one more finding.
    pub fn add(&mut self, code: Code, offset: u64) {
        self.add_skipped(code, offset, 0);
    }

    /// Counts one more finding, for which `bytes` were skipped.
    pub fn add_skipped(&mut self, code: Code, offset: u64, bytes: u64) {
        self.add_row(Diagnostic { code, count: 1, first_offset: offset, skipped_bytes: bytes });
    }

    /// Counts the findings of a later part of the file.
    pub(crate) fn append(&mut self, later: &Self) {
        later.rows.iter().for_each(|&row| self.add_row(row));
    }

    fn add_row(&mut self, later: Diagnostic) {
        if let Some(row) = self.rows.iter_mut().find(|row| row.code == later.code) {
            row.count += later.count;
            row.first_offset = row.first_offset.min(later.first_offset);
            row.skipped_bytes += later.skipped_bytes;
        } else {
            self.rows.push(later);
        }
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Findings that were counted before.
    pub(crate) fn of_rows(rows: Vec<Diagnostic>) -> Self {
        Self { rows }
    }

    /// The findings.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.rows.iter()
    }

    /// How often `code` was found.
    pub fn count(&self, code: Code) -> u64 {
        self.rows.iter().find(|row| row.code == code).map_or(0, |row| row.count)
    }

    /// Whether something of the file was lost or altered.
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
