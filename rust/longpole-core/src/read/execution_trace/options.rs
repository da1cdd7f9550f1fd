//! Options of [`read_path`](super::read_path) and [`read`](super::read).

/// Options for reading an execution trace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// Return the first loss or repair as an error, and require JSON as in RFC 8259.
    pub strict: bool,
    /// Stop after this many bytes of the uncompressed file.
    pub max_bytes: Option<u64>,
}
