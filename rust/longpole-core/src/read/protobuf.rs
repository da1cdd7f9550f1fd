//! Decodes Protocol Buffers messages field by field
//! (<https://protobuf.dev/programming-guides/encoding/>).
//!
//! [`fields`] decodes a message in memory. [`Messages`] iterates over messages that do not fit into
//! memory: it enters a message, returns its fields one at a time, and leaves it. Neither knows a
//! schema; a reader matches the field numbers it needs.
//!
//! Limits: groups, which none of the schemas contains, end a message like damage.

use super::elements::Elements;
use super::window::MAX_ELEMENT_BYTES;
use crate::diagnostics::Code;
use crate::error::Result;

/// A field number in the schema of its message.
pub(crate) type Field = u64;

/// The value of a field, by wire type.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wire<'a> {
    Variable(u64),
    Eight(u64),
    Four(u32),
    Bytes(&'a [u8]),
}

impl<'a> Wire<'a> {
    /// Returns a number in any encoding; `None` for bytes.
    pub(super) fn number(self) -> Option<u64> {
        match self {
            Self::Variable(value) | Self::Eight(value) => Some(value),
            Self::Four(value) => Some(value.into()),
            Self::Bytes(_) => None,
        }
    }

    pub(super) fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }
}

/// Returns a varint and its length in bytes; `None` if it does not end.
pub(super) fn variable(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0_u64;
    for (place, &byte) in bytes.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * place);
        if byte < 0x80 {
            return Some((value, place + 1));
        }
    }
    None
}

/// Calls `take` for each field of a message; `None` if it is not a valid message, or if `take`
/// returns `None`.
pub(super) fn fields<'a>(
    mut rest: &'a [u8],
    mut take: impl FnMut(Field, Wire<'a>) -> Option<()>,
) -> Option<()> {
    while !rest.is_empty() {
        let (tag, length) = variable(rest)?;
        rest = &rest[length..];
        let (wire, length) = wire(tag & 7, rest)?;
        rest = &rest[length..];
        take(tag >> 3, wire)?;
    }
    Some(())
}

fn wire(form: u64, rest: &[u8]) -> Option<(Wire<'_>, usize)> {
    match form {
        0 => variable(rest).map(|(value, length)| (Wire::Variable(value), length)),
        1 => Some((Wire::Eight(u64::from_le_bytes(rest.get(..8)?.try_into().ok()?)), 8)),
        2 => {
            let (length, start) = variable(rest)?;
            let end = start.checked_add(usize::try_from(length).ok()?)?;
            Some((Wire::Bytes(rest.get(start..end)?), end))
        }
        5 => Some((Wire::Four(u32::from_le_bytes(rest.get(..4)?.try_into().ok()?)), 4)),
        _ => None,
    }
}

/// Maximum length of a tag and the number or length after it.
const MAX_TAG_BYTES: usize = 20;

/// The next field of the message entered last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// A number.
    Number(Field, u64),
    /// Bytes of the given length at the front of the window: a message or a string.
    Bytes(Field, u64),
    /// The message has no more fields and was left.
    End,
    /// The file ends inside the message, or the bytes are not a valid field: reading cannot
    /// continue. The problem was reported.
    Stop,
}

/// The fields of nested messages; the outermost message is the file.
pub(super) struct Messages<'a> {
    pub(super) elements: Elements<'a>,
    /// The end offsets of the messages entered.
    ends: Vec<u64>,
}

impl<'a> Messages<'a> {
    pub(super) fn new(elements: Elements<'a>) -> Self {
        Self { elements, ends: Vec::new() }
    }

    pub(super) fn offset(&self) -> u64 {
        self.elements.window.offset()
    }

    /// Returns the next field of the message entered last.
    pub(super) fn next(&mut self) -> Result<Next> {
        let end = self.ends.last().copied();
        if end == Some(self.offset()) {
            self.ends.pop();
            return Ok(Next::End);
        }
        while self.elements.window.text().len() < MAX_TAG_BYTES && self.elements.more()? {}
        let text = self.elements.window.text();
        if text.is_empty() {
            return match end {
                None if !self.elements.window.is_limited() => Ok(Next::End),
                _ => self.cut(0),
            };
        }
        let Some((next, length)) = tagged(text) else { return self.stop() };
        self.elements.window.consume(length);
        let behind = match next {
            Next::Bytes(_, length) => self.offset().checked_add(length),
            _ => Some(self.offset()),
        };
        match behind {
            Some(behind) if end.is_none_or(|end| behind <= end) => Ok(next),
            _ => self.stop(),
        }
    }

    /// Enters the message of the given length at the front of the window.
    pub(super) fn enter(&mut self, length: u64) {
        self.ends.push(self.offset() + length);
    }

    /// Fetches the given number of bytes to the front of the window, and returns that number for
    /// [`Elements::window`]. `None` if they do not fit into memory and were skipped, or if the file
    /// ends before them.
    pub(super) fn fetch(&mut self, length: u64) -> Result<Option<usize>> {
        let bytes = usize::try_from(length).ok().filter(|&bytes| bytes <= MAX_ELEMENT_BYTES);
        let Some(bytes) = bytes else {
            self.elements.note_skipped(Code::MessageTooLarge, self.offset(), length)?;
            self.skip(length)?;
            return Ok(None);
        };
        let end = self.offset().saturating_add(length);
        while self.elements.window.text().len() < bytes {
            if !self.elements.more()? {
                self.cut(end)?;
                return Ok(None);
            }
        }
        Ok(Some(bytes))
    }

    /// Skips the given number of bytes. Returns false if the file ends before.
    pub(super) fn skip(&mut self, length: u64) -> Result<bool> {
        let behind = self.offset() + length;
        loop {
            let at_hand = self.elements.window.text().len();
            let rest = usize::try_from(behind - self.offset()).unwrap_or(usize::MAX);
            self.elements.window.consume(rest.min(at_hand));
            if self.offset() == behind {
                return Ok(true);
            }
            if !self.elements.more()? {
                self.cut(behind)?;
                return Ok(false);
            }
        }
    }

    /// Reports that the file ends before the message entered first, or before `end`.
    fn cut(&mut self, end: u64) -> Result<Next> {
        let end = self.ends.first().map_or(end, |&message| message.max(end));
        self.elements.cut_before(Code::Truncated, end)?;
        Ok(Next::Stop)
    }

    /// Stops at bytes that are not a valid field.
    fn stop(&mut self) -> Result<Next> {
        if self.elements.window.text().len() < MAX_TAG_BYTES && self.elements.window.is_limited() {
            return self.cut(0);
        }
        let offset = self.offset();
        let is_zero = self.is_zero_to_the_end()?;
        let skipped = self.offset() - offset;
        let code = if is_zero { Code::ZeroBytes } else { Code::MalformedMessage };
        self.elements.note_skipped(code, offset, skipped)?;
        Ok(Next::Stop)
    }

    /// Reads to the end. Returns whether there are only zero bytes, as in the part of a file that
    /// was reserved and not written.
    fn is_zero_to_the_end(&mut self) -> Result<bool> {
        let mut is_zero = true;
        loop {
            let text = self.elements.window.text();
            is_zero &= text.iter().all(|&byte| byte == 0);
            let length = text.len();
            self.elements.window.consume(length);
            if !self.elements.more()? {
                return Ok(is_zero);
            }
        }
    }
}

/// Returns the field at the front, and the length of its tag including the number or length. There
/// is no field 0.
fn tagged(text: &[u8]) -> Option<(Next, usize)> {
    let (tag, start) = variable(text).filter(|&(tag, _)| tag >> 3 > 0)?;
    let (field, rest) = (tag >> 3, &text[start..]);
    if tag & 7 == 2 {
        let (length, n_bytes) = variable(rest)?;
        return Some((Next::Bytes(field, length), start + n_bytes));
    }
    let (wire, length) = wire(tag & 7, rest)?;
    Some((Next::Number(field, wire.number()?), start + length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_taken_apart_and_damage_is_none() {
        let mut seen = Vec::new();
        let message = b"\x08\x96\x01\x12\x02hi\x1d\x01\0\0\0";
        fields(message, |field, wire| {
            seen.push((field, wire.number(), wire.bytes()));
            Some(())
        });
        assert_eq!(seen, [(1, Some(150), None), (2, None, Some(&b"hi"[..])), (3, Some(1), None)]);
        for broken in
            [&b"\x08"[..], b"\x12\x05hi", b"\x0b", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"]
        {
            assert_eq!(fields(broken, |_, _| Some(())), None, "{broken:?}");
        }
    }
}
