//! Where an event stands in the file, and what is said of it.

use crate::diagnostics::Code;

/// Where an event stands in the file.
#[derive(Clone, Copy)]
pub(super) struct Whereabouts {
    /// Its byte in the uncompressed file.
    pub(super) offset: u64,
    /// Its place among the elements of the event list.
    pub(super) position: u32,
}

/// What is said of an event that is kept, or why it is not.
pub(super) type Findings = Vec<(Code, u64)>;
