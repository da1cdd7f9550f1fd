//! Errors of reading a trace, with the offset in the file.

use std::borrow::Cow;
use std::fmt;

/// The result of a step that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// An error that prevents reading a trace or (in strict mode) reading further.
///
/// Problems that can be skipped are counted in [`Diagnostics`](crate::diagnostics::Diagnostics)
/// instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    offset: u64,
}

/// The version of the saved-trace format.
pub(crate) const SAVE_VERSION: u64 = 1;

/// The kinds of errors.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The file is empty or contains only white space.
    Empty,
    /// The first bytes are those of a known kind of file that is not a trace.
    OtherKind {
        /// A description of the file, with its article: `a Git LFS pointer`.
        what: &'static str,
        /// What to do instead.
        hint: &'static str,
    },
    /// A known kind of file in place of an execution trace.
    NotAnExecutionTrace {
        /// A description of the file, with its article.
        what: &'static str,
        /// What to do instead.
        hint: &'static str,
    },
    /// The first bytes match no known format.
    UnknownFormat {
        /// The first bytes, escaped.
        starts_with: String,
    },
    /// A complete JSON document without a list of events.
    NoEvents,
    /// The file ends before its list of events begins.
    EndsBeforeEvents,
    /// A complete JSON document without a list of nodes.
    NoNodes,
    /// The file ends before its list of nodes begins.
    EndsBeforeNodes,
    /// `traceEvents` is not an array.
    EventsNotAnArray,
    /// Nothing could be read from the compressed stream.
    Compression {
        /// The compression: `gzip`, `zstd` or `xz`.
        by: &'static str,
        /// The fault.
        fault: &'static str,
    },
    /// Strict mode: the first finding.
    Strict(crate::diagnostics::Code),
    /// A damaged saved trace, with what is wrong.
    DamagedSave(&'static str),
    /// A saved trace with another version of the format.
    OtherSave {
        /// Its version.
        version: u64,
    },
    /// The saved trace does not contain the requested data.
    NotSaved(String),
    /// The times of a rank are too far from zero to be compared with those of another one.
    FarClock,
    /// A database that cannot be read at all, with the reason.
    Database(String),
    /// Unapplied changes to the database are in another file, with this suffix.
    UnfinishedDatabase(&'static str),
    /// The operating system could not read the source.
    Io(IoError),
    /// A pattern that is not a valid regular expression, with the reason.
    Pattern(String),
    /// A file that is not a Chakra graph, or contains a damaged message.
    NotAChakraGraph,
    /// An execution trace and a trace that do not belong together, with figures.
    NotAPair(String),
    /// An invalid word or pattern in a user's vocabulary, with the reason.
    Vocabulary(String),
    /// A window that is not in the trace.
    NoWindow(String),
    /// The caller asked to stop, through [`Progress`](crate::progress::Progress).
    Cancelled,
}

/// An operating system error, kept so that the caller can raise the corresponding error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IoError {
    /// The error number, if the system returned one.
    pub number: Option<i32>,
    /// The error text.
    pub message: String,
}

impl Error {
    /// Creates an error of `kind` at byte `offset` of the uncompressed stream.
    pub fn new(kind: ErrorKind, offset: u64) -> Self {
        Self { kind, offset }
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> &ErrorKind {
        &self.kind
    }

    /// Returns the offset in the (uncompressed) file at which reading stopped.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns a short machine-readable name, stable between versions.
    pub fn code(&self) -> &'static str {
        match &self.kind {
            ErrorKind::Empty => "empty",
            ErrorKind::OtherKind { .. } | ErrorKind::NotAnExecutionTrace { .. } => {
                "other_kind_of_file"
            }
            ErrorKind::UnknownFormat { .. } => "unknown_format",
            ErrorKind::NoEvents => "no_trace_events",
            ErrorKind::NoNodes => "no_nodes",
            ErrorKind::EndsBeforeEvents | ErrorKind::EndsBeforeNodes => "truncated",
            ErrorKind::EventsNotAnArray => "trace_events_not_an_array",
            ErrorKind::Compression { .. } => "compression",
            ErrorKind::Strict(code) => code.name(),
            ErrorKind::DamagedSave(_) => "damaged_saved_trace",
            ErrorKind::OtherSave { .. } => "other_saved_trace",
            ErrorKind::NotSaved(_) => "not_in_saved_trace",
            ErrorKind::FarClock => "far_clock",
            ErrorKind::Database(_) => "damaged_database",
            ErrorKind::UnfinishedDatabase(_) => "unfinished_database",
            ErrorKind::Io(_) => "io",
            ErrorKind::Pattern(_) => "bad_pattern",
            ErrorKind::NotAChakraGraph => "not_a_chakra_graph",
            ErrorKind::NotAPair(_) => "not_a_pair",
            ErrorKind::Vocabulary(_) => "bad_vocabulary",
            ErrorKind::NoWindow(_) => "no_window",
            ErrorKind::Cancelled => "cancelled",
        }
    }

    /// Returns a suggestion for the user.
    pub fn hint(&self) -> Option<&'static str> {
        match &self.kind {
            ErrorKind::Empty => Some("the profiler wrote nothing; record the trace again"),
            ErrorKind::OtherKind { hint, .. } | ErrorKind::NotAnExecutionTrace { hint, .. } => {
                Some(hint)
            }
            ErrorKind::UnknownFormat { .. } | ErrorKind::NoEvents => Some(
                "give the trace of a profiler: of PyTorch (export_chrome_trace), Nsight Systems (SQLite), \
                 ROCm, XProf or Perfetto",
            ),
            ErrorKind::NoNodes => {
                Some("give the execution trace that PyTorch's ExecutionTraceObserver wrote")
            }
            ErrorKind::EndsBeforeEvents | ErrorKind::EndsBeforeNodes => Some(
                "the file was truncated while it was written or copied; record or copy it again",
            ),
            ErrorKind::Compression { .. } => {
                Some("copy the file again, or check it with `gzip -t`, `zstd -t` or `xz -t`")
            }
            ErrorKind::Strict(_) => Some("read without strict=True to recover the valid part"),
            ErrorKind::EventsNotAnArray => Some("the events of a trace are a list: `[{...}, ...]`"),
            ErrorKind::DamagedSave(_) => {
                Some("copy the file again, or save it again from the trace that was recorded")
            }
            ErrorKind::OtherSave { .. } => {
                Some("read it with the longpole that saved it, or save the trace again")
            }
            ErrorKind::NotSaved(_) => Some("read the recorded trace"),
            ErrorKind::FarClock => {
                Some("record the rank again: its clock does not show the time of day")
            }
            ErrorKind::Database(_) => {
                Some("copy or export the file again, or check it with `PRAGMA integrity_check`")
            }
            ErrorKind::UnfinishedDatabase(_) => Some(
                "wait for the program that writes it, or run `sqlite3 FILE 'PRAGMA \
                 wal_checkpoint(TRUNCATE)'`",
            ),
            ErrorKind::NotAChakraGraph => {
                Some("give the protobuf file (.et) that a Chakra converter wrote")
            }
            ErrorKind::NotAPair(_) => {
                Some("give the two files of one rank of one run, recorded together")
            }
            ErrorKind::Io(_)
            | ErrorKind::Pattern(_)
            | ErrorKind::Vocabulary(_)
            | ErrorKind::NoWindow(_)
            | ErrorKind::Cancelled => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind.sentence())?;
        if self.kind.has_place() { write!(f, ", at byte {}", self.offset) } else { Ok(()) }
    }
}

impl ErrorKind {
    fn sentence(&self) -> Cow<'_, str> {
        match self {
            Self::Empty => "the file is empty or blank".into(),
            Self::OtherKind { what, .. } => format!("this is {what}, not a trace").into(),
            Self::NotAnExecutionTrace { what, .. } => {
                format!("this is {what}, not an execution trace").into()
            }
            Self::UnknownFormat { starts_with } => format!(
                "not JSON and no trace format that longpole reads: it starts with `{starts_with}`"
            )
            .into(),
            Self::NoEvents => "the document has no `traceEvents`".into(),
            Self::EndsBeforeEvents => {
                "the file is truncated: it ends before any `traceEvents`".into()
            }
            Self::NoNodes => "the document has no list `nodes`".into(),
            Self::EndsBeforeNodes => "the file is truncated: it ends before any `nodes`".into(),
            Self::EventsNotAnArray => "`traceEvents` is not an array".into(),
            Self::Compression { by, fault } => {
                format!("the {by} stream is damaged: {fault}").into()
            }
            Self::Strict(code) => code.sentence().into(),
            Self::Io(error) => error.message.as_str().into(),
            Self::FarClock => "the times of this rank are more than 73 years from zero".into(),
            Self::DamagedSave(what) => format!("the saved trace is damaged: {what}").into(),
            Self::OtherSave { version } => format!(
                "the trace was saved in version {version} of the format; this longpole reads \
                 version {SAVE_VERSION}"
            )
            .into(),
            Self::Database(why) => format!("the SQLite database cannot be read: {why}").into(),
            Self::UnfinishedDatabase(ending) => format!(
                "the SQLite database is not complete: FILE{ending} next to it contains changes \
                 that are not in it"
            )
            .into(),
            Self::NotAChakraGraph => "not a Chakra graph".into(),
            Self::NotAPair(figures) => {
                format!("the two files do not belong together: {figures}").into()
            }
            Self::Pattern(why) => format!("invalid regular expression: {why}").into(),
            Self::NotSaved(why) | Self::Vocabulary(why) | Self::NoWindow(why) => why.into(),
            Self::Cancelled => "stopped by the caller".into(),
        }
    }

    /// Whether the error refers to a position in the file.
    fn has_place(&self) -> bool {
        !matches!(
            self,
            Self::FarClock
                | Self::DamagedSave(_)
                | Self::OtherSave { .. }
                | Self::NotSaved(_)
                | Self::Database(_)
                | Self::UnfinishedDatabase(_)
                | Self::NotAPair(_)
                | Self::Pattern(_)
                | Self::Vocabulary(_)
                | Self::NoWindow(_)
        )
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_sentence_that_ends_in_its_place() {
        let error = Error::new(ErrorKind::EndsBeforeEvents, 812_334);
        assert_eq!(
            error.to_string(),
            "the file is truncated: it ends before any `traceEvents`, at byte 812334"
        );
    }
}
