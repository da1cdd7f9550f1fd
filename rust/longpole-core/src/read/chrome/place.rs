//! Where an event stands in the file, and what is said of it.

use crate::diagnostics::Code;
use crate::ids::StringId;
use crate::strings::Strings;

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

/// A process or thread before its number is made a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Number {
    Integer(i64),
    Text(StringId),
}

impl Number {
    pub(super) fn text(self, strings: &mut Strings) -> StringId {
        match self {
            Self::Integer(value) => strings.intern(&value.to_string()),
            Self::Text(id) => id,
        }
    }
}
