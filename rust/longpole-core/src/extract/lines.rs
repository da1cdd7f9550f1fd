//! Splits text into lines.
//!
//! A line ends in LF, CR or both: a progress bar redrawn with bare CR must not hide the row printed
//! after it.

use memchr::{memchr2, memrchr2};

/// How a line ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// With a line ending.
    Newline,
    /// With the end of the stream of a process that exited by itself.
    Missing,
    /// With the termination of the process: numbers on the line may lack digits.
    Cut,
}

/// The position of a line in the stream, and how it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// The offset of the first byte of the line.
    pub(super) offset: u64,
    pub(super) ending: Ending,
}

/// A line without its line ending.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line<'a> {
    pub(super) text: &'a [u8],
    pub(super) place: Place,
}

/// A line within a longer text, and the start of the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) next: usize,
}

/// Returns the line around the byte at `hit`. `from` is the start of a line at or before it.
pub(super) fn around(text: &[u8], from: usize, hit: usize) -> Span {
    let start = memrchr2(b'\n', b'\r', &text[from..hit]).map_or(from, |at| from + at + 1);
    let end = memchr2(b'\n', b'\r', &text[hit..]).map_or(text.len(), |at| hit + at);
    Span { start, end, next: end + end_length(&text[end..]) }
}

/// Returns the end of the first line and the start of the next, if they are certain: a CR as the
/// last byte may be the first half of CR LF.
pub(super) fn first_end(text: &[u8]) -> Option<(usize, usize)> {
    let end = memchr2(b'\n', b'\r', text)?;
    let rest = &text[end..];
    (rest != b"\r").then(|| (end, end + end_length(rest)))
}

/// Returns the complete lines, and the start of an incomplete one.
pub(super) fn split_unfinished(text: &[u8]) -> (&[u8], &[u8]) {
    let settled = text.strip_suffix(b"\r").unwrap_or(text);
    text.split_at(memrchr2(b'\n', b'\r', settled).map_or(0, |at| at + 1))
}

/// Returns the length of the line ending at the start of `text`.
fn end_length(text: &[u8]) -> usize {
    match text {
        [b'\r', b'\n', ..] => 2,
        [] => 0,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_cr_ends_a_line_and_cr_lf_ends_one_only() {
        let text = b" 10%\r100%\rOP:a\r\nnext";
        assert_eq!(around(text, 0, 12), Span { start: 10, end: 14, next: 16 });
        assert_eq!(around(text, 16, 16), Span { start: 16, end: 20, next: 20 });
    }

    #[test]
    fn a_cr_at_the_end_waits_for_its_lf() {
        assert_eq!(first_end(b"row\r"), None);
        assert_eq!(first_end(b"row\r\n"), Some((3, 5)));
        assert_eq!(split_unfinished(b"a\nrow\r"), (&b"a\n"[..], &b"row\r"[..]));
        assert_eq!(split_unfinished(b"a\n\r"), (&b"a\n"[..], &b"\r"[..]));
    }
}
