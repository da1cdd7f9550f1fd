//! The position and type of a value in a window.

/// A span of the window, which is shorter than 2 GiB: the start in the lower half, the end in the
/// upper half, and in the highest bit whether a string is more than plain ASCII. A single number,
/// because several fields would be stored separately and loaded together, which stalls the
/// processor at every value of the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::read) struct Span(u64);

impl Span {
    const SPELLED: u64 = 1 << 63;

    #[inline]
    pub(in crate::read) fn new(start: usize, end: usize) -> Self {
        debug_assert!(end < (1 << 31));
        Self(start as u64 | (end as u64) << 32)
    }

    /// Returns a string whose bytes must be unescaped or checked.
    pub(super) fn spelled(start: usize, end: usize) -> Self {
        Self(Self::new(start, end).0 | Self::SPELLED)
    }

    /// Whether the bytes between the quotes are the text itself: printable ASCII without escapes,
    /// and not too long.
    #[inline]
    pub(in crate::read) fn is_plain(self) -> bool {
        self.0 & Self::SPELLED == 0
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)] // the two halves fit where they came from
    pub(in crate::read) fn start(self) -> usize {
        (self.0 & u64::from(u32::MAX)) as usize
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)]
    pub(in crate::read) fn end(self) -> usize {
        (self.0 >> 32 & !(1 << 31)) as usize
    }

    #[inline]
    pub(in crate::read) fn of(self, text: &[u8]) -> &[u8] {
        &text[self.start()..self.end()]
    }
}

/// A value, as far as the scanner parses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::read) enum Token {
    /// A string: the bytes between the quotes.
    Text(Span),
    /// A number without decimal point and exponent that fits.
    Integer(i64),
    /// Any other number that is valid by the grammar.
    Number(Span),
    /// `true`.
    True,
    /// `false`.
    False,
    /// `null`, and anything that was recorded as a finding and is read as null.
    Null,
    /// A whole array or object.
    Nested(Span),
}
