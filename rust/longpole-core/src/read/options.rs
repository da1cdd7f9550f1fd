//! What a caller may ask of reading a trace.

use std::sync::Arc;

use crate::tables::Arguments;
use crate::vocabulary::Vocabulary;

/// What to keep, and when to stop.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Which arguments of events are kept.
    pub arguments: Arguments,
    /// What names mean.
    pub vocabulary: Arc<Vocabulary>,
    /// Makes the first finding the error, and means JSON as in RFC 8259.
    pub strict: bool,
    /// Stop after this many bytes of the uncompressed file.
    pub max_bytes: Option<u64>,
    /// Stop after this many events.
    pub max_events: Option<u64>,
    /// Scan every event, and predict none: the answer is the same, and takes twice as long.
    pub scan_all: bool,
    /// How many threads read the events of a large file, the calling one among them, which also
    /// inflates the file and joins what was read: 0 and 1 mean no others. The answer is the same.
    pub threads: usize,
    /// How many bytes a thread reads at a time; some sensible number where none is given.
    pub part_bytes: Option<usize>,
}
