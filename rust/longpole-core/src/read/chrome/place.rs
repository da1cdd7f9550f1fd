//! The position of an event in the file, and the findings about it.

use crate::diagnostics::Code;
use crate::ids::StringId;
use crate::strings::Strings;

/// The position of an event in the file.
#[derive(Clone, Copy)]
pub(super) struct Whereabouts {
    /// Byte offset in the uncompressed file.
    pub(super) offset: u64,
    /// Index in the event list.
    pub(super) position: u32,
}

/// Findings about an event that is kept, or the reason why it is not.
pub(super) type Findings = Vec<(Code, u64)>;

/// A process or thread number before its conversion to a string.
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
