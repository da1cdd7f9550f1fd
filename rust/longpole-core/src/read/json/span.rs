//! Where a value stands in a window, and what it is.

/// A part of the window, which is shorter than 2 GiB: the start in the lower
/// half, the end in the upper, and in the highest bit whether a text is more than
/// plain ASCII. One number, because several would be stored apart and read
/// together, which stalls the processor at every value of the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::read) struct Span(u64);

impl Span {
    const SPELLED: u64 = 1 << 63;

    #[inline]
    pub(in crate::read) fn new(start: usize, end: usize) -> Self {
        debug_assert!(end < (1 << 31));
        Self(start as u64 | (end as u64) << 32)
    }

    /// A text whose bytes are not the text itself.
    pub(super) fn spelled(start: usize, end: usize) -> Self {
        Self(Self::new(start, end).0 | Self::SPELLED)
    }

    /// Whether the bytes between the quotes are the text itself: printable ASCII
    /// without escapes, and not too long.
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

/// One value, as far as the scanner looks into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::read) enum Token {
    /// The bytes between the quotes.
    Text(Span),
    /// A number without point and exponent that fits.
    Integer(i64),
    /// Any other number, sound by the grammar.
    Number(Span),
    /// `true`.
    True,
    /// `false`.
    False,
    /// `null`, and what was noted as a finding and stands for null.
    Null,
    /// The whole of an array or object.
    Nested(Span),
}
