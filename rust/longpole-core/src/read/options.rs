//! Options for reading a trace.

use std::sync::Arc;

use crate::tables::Arguments;
use crate::vocabulary::Vocabulary;

/// Which data to keep, and when to stop.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Which arguments of events to keep.
    pub arguments: Arguments,
    /// The meaning of names.
    pub vocabulary: Arc<Vocabulary>,
    /// Return the first finding as an error, and require JSON as in RFC 8259.
    pub strict: bool,
    /// Stop after this many bytes of the uncompressed file.
    pub max_bytes: Option<u64>,
    /// Stop after this many events.
    pub max_events: Option<u64>,
    /// Scan every event instead of predicting it. The result is the same, and reading takes twice
    /// as long.
    pub scan_all: bool,
    /// Number of threads that read the events of a large file, including the calling one, which
    /// also decompresses the file and joins the results. With 0 or 1, no other thread is used. The
    /// result is the same.
    pub threads: usize,
    /// Number of bytes that a thread reads at a time; a default is used if `None`.
    pub part_bytes: Option<usize>,
}
