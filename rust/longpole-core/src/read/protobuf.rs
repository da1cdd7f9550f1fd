//! Messages of Protocol Buffers, field by field (<https://protobuf.dev/programming-guides/encoding/>).
//!
//! [`fields`] takes a message in memory apart. [`Messages`] goes through those that are longer
//! than memory: it enters a message, gives its fields one at a time, and leaves it. Neither knows a
//! schema: a reader matches the numbers of the fields that it needs.
//!
//! Limits: groups, which no schema of ours has, end a message as damage does.

use super::elements::Elements;
use super::window::MAX_ELEMENT_BYTES;
use crate::diagnostics::Code;
use crate::error::Result;

/// The number of a field in the schema of its message.
pub(crate) type Field = u64;

/// The value of a field, by its form on the wire.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wire<'a> {
    Variable(u64),
    Eight(u64),
    Four(u32),
    Bytes(&'a [u8]),
}

impl<'a> Wire<'a> {
    /// A number, however it is written; none for bytes.
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

/// A number of variable length and the bytes it takes; none where it does not end.
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

/// Calls `take` for each field of a message; none where it is no message, or `take` gives none.
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

/// The longest tag with the number or the length behind it.
const MAX_TAG_BYTES: usize = 20;

/// A field of the message that was entered last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// A number.
    Number(Field, u64),
    /// So many bytes, which stand at the front of the window: a message or a text.
    Bytes(Field, u64),
    /// The message has no more fields, and was left.
    End,
    /// The file ends inside the message, or what stands there is no field: nothing can be read
    /// any more. What was wrong was noted.
    Stop,
}

/// The fields of messages within messages, where the outermost is the file.
pub(super) struct Messages<'a> {
    pub(super) elements: Elements<'a>,
    /// Where the messages that were entered end.
    ends: Vec<u64>,
}

impl<'a> Messages<'a> {
    pub(super) fn new(elements: Elements<'a>) -> Self {
        Self { elements, ends: Vec::new() }
    }

    pub(super) fn offset(&self) -> u64 {
        self.elements.window.offset()
    }

    /// The next field of the message that was entered last.
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
                _ => self.cut(),
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

    /// Enters the message of so many bytes at the front of the window.
    pub(super) fn enter(&mut self, length: u64) {
        self.ends.push(self.offset() + length);
    }

    /// Has so many bytes at the front of the window, and gives their number for
    /// [`Elements::window`]; none where they are more than fit memory, and were skipped, or the file
    /// ends before they do.
    pub(super) fn fetch(&mut self, length: u64) -> Result<Option<usize>> {
        let bytes = usize::try_from(length).ok().filter(|&bytes| bytes <= MAX_ELEMENT_BYTES);
        let Some(bytes) = bytes else {
            self.elements.note_skipped(Code::MessageTooLarge, self.offset(), length)?;
            self.skip(length)?;
            return Ok(None);
        };
        while self.elements.window.text().len() < bytes {
            if !self.elements.more()? {
                self.cut()?;
                return Ok(None);
            }
        }
        Ok(Some(bytes))
    }

    /// Goes behind so many bytes; false where the file ends before them.
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
                self.cut()?;
                return Ok(false);
            }
        }
    }

    fn cut(&mut self) -> Result<Next> {
        self.elements.cut_as(Code::Truncated)?;
        Ok(Next::Stop)
    }

    /// What stands here is no field.
    fn stop(&mut self) -> Result<Next> {
        if self.elements.window.text().len() < MAX_TAG_BYTES && self.elements.window.is_limited() {
            return self.cut();
        }
        let offset = self.offset();
        self.elements.drain()?;
        let skipped = self.offset() - offset;
        self.elements.note_skipped(Code::MalformedMessage, offset, skipped)?;
        Ok(Next::Stop)
    }
}

/// The field at the front, and the bytes of its tag with the number or the length.
fn tagged(text: &[u8]) -> Option<(Next, usize)> {
    let (tag, start) = variable(text)?;
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
