//! What a caller may ask of reading an execution trace.

/// When to stop.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// Makes the first loss or repair the error, and means JSON as in RFC 8259.
    pub strict: bool,
    /// Stop after this many bytes of the uncompressed file.
    pub max_bytes: Option<u64>,
}
