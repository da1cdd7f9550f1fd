//! What can go wrong while reading a trace, and where in the file it did.

use std::borrow::Cow;
use std::fmt;

/// The result of a step that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// A trace that could not be read at all, or (in strict mode) no further.
///
/// What can be skipped is skipped and counted in
/// [`Diagnostics`](crate::diagnostics::Diagnostics) instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    offset: u64,
}

/// The version of the format of saved traces.
pub(crate) const SAVE_VERSION: u64 = 1;

/// The ways in which reading stops.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// There is nothing in the file but white space.
    Empty,
    /// The first bytes are those of a known kind of file that is not a trace.
    OtherKind {
        /// What the file is, with its article: `a Git LFS pointer`.
        what: &'static str,
        /// What to do instead.
        hint: &'static str,
    },
    /// None of the formats that we know starts with these bytes.
    UnknownFormat {
        /// The first bytes, escaped.
        starts_with: String,
    },
    /// A whole JSON document without a list of events.
    NoEvents,
    /// The file ends before its list of events begins.
    EndsBeforeEvents,
    /// A whole JSON document without a list of nodes.
    NoNodes,
    /// The file ends before its list of nodes begins.
    EndsBeforeNodes,
    /// `traceEvents` is something else than an array.
    EventsNotAnArray,
    /// The compressed stream gave no byte of a trace.
    Compression {
        /// What compresses it: `gzip`, `zstd` or `xz`.
        by: &'static str,
        /// What is wrong with it.
        fault: &'static str,
    },
    /// Strict mode: the first finding.
    Strict(crate::diagnostics::Code),
    /// A saved trace that is not as it was written, with what differs.
    DamagedSave(&'static str),
    /// A saved trace of another version of the format than the one that is read.
    OtherSave {
        /// Its version.
        version: u64,
    },
    /// A saved trace does not hold what was asked for, in words.
    NotSaved(String),
    /// The times of a rank are too far from zero to be compared with those of another one.
    FarClock,
    /// A database that cannot be read at all, with the reason.
    Database(String),
    /// Changes that are not in the database lie beside it, in a file with this ending.
    UnfinishedDatabase(&'static str),
    /// The operating system could not read the source.
    Io(IoError),
    /// A pattern that is no regular expression, with the reason.
    Pattern(String),
    /// A file that is no Chakra graph, or a damaged message in one.
    NotAChakraGraph,
    /// An execution trace and a trace that do not belong together, with the figures.
    NotAPair(String),
    /// A word or pattern of a user's vocabulary that means nothing, with the reason.
    Vocabulary(String),
    /// A window that the trace does not have, in words.
    NoWindow(String),
    /// The caller asked to stop, through [`Progress`](crate::progress::Progress).
    Cancelled,
}

/// What the operating system said, kept so that the caller can raise its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IoError {
    /// The number of the error, where the system gave one.
    pub number: Option<i32>,
    /// Its text.
    pub message: String,
}

impl Error {
    /// An error of `kind` at byte `offset` of the uncompressed stream.
    pub fn new(kind: ErrorKind, offset: u64) -> Self {
        Self { kind, offset }
    }

    /// Why reading stopped.
    pub fn kind(&self) -> &ErrorKind {
        &self.kind
    }

    /// The byte of the (uncompressed) file at which it stopped.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// A short name for programs, stable between versions.
    pub fn code(&self) -> &'static str {
        match &self.kind {
            ErrorKind::Empty => "empty",
            ErrorKind::OtherKind { .. } => "other_kind_of_file",
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

    /// What the user may do next.
    pub fn hint(&self) -> Option<&'static str> {
        match &self.kind {
            ErrorKind::Empty => Some("the profiler wrote nothing; record the trace again"),
            ErrorKind::OtherKind { hint, .. } => Some(hint),
            ErrorKind::UnknownFormat { .. } | ErrorKind::NoEvents => Some(
                "give the Kineto trace that the PyTorch profiler exported (export_chrome_trace)",
            ),
            ErrorKind::NoNodes => {
                Some("give the execution trace that PyTorch's ExecutionTraceObserver wrote")
            }
            ErrorKind::EndsBeforeEvents | ErrorKind::EndsBeforeNodes => {
                Some("the file was cut while it was written or copied; record or copy it again")
            }
            ErrorKind::Compression { .. } => {
                Some("copy the file again, or check it with `gzip -t`, `zstd -t` or `xz -t`")
            }
            ErrorKind::Strict(_) => Some("read without strict=True to recover what is whole"),
            ErrorKind::EventsNotAnArray => Some("the events of a trace are a list: `[{...}, ...]`"),
            ErrorKind::DamagedSave(_) => {
                Some("copy the file again, or save it again from the trace that was recorded")
            }
            ErrorKind::OtherSave { .. } => {
                Some("read it with the longpole that saved it, or save the trace again")
            }
            ErrorKind::NotSaved(_) => Some("read the trace that was recorded"),
            ErrorKind::FarClock => Some("record the rank again: its clock is not a time"),
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
            Self::UnknownFormat { starts_with } => format!(
                "not JSON and no trace format that longpole reads: it starts with `{starts_with}`"
            )
            .into(),
            Self::NoEvents => "the document holds no `traceEvents`".into(),
            Self::EndsBeforeEvents => {
                "the file is truncated: it ends before any `traceEvents`".into()
            }
            Self::NoNodes => "the document holds no list `nodes`".into(),
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
                "the SQLite database is not complete: FILE{ending} beside it holds changes that \
                 are not in it"
            )
            .into(),
            Self::NotAChakraGraph => "no message of a Chakra graph".into(),
            Self::NotAPair(figures) => {
                format!("the two files do not belong together: {figures}").into()
            }
            Self::Pattern(why) => format!("invalid regular expression: {why}").into(),
            Self::NotSaved(why) | Self::Vocabulary(why) | Self::NoWindow(why) => why.into(),
            Self::Cancelled => "stopped by the caller".into(),
        }
    }

    /// Whether it is about a place in the file.
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
