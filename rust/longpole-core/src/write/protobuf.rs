//! Encodes Protocol Buffers messages, limited to the few types that are needed: a tag, then a
//! varint, eight bytes, or a length and that many bytes
//! (<https://protobuf.dev/programming-guides/encoding/>).

use crate::read::Field;

/// A message under construction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Message(Vec<u8>);

const VARIABLE: u64 = 0;
const EIGHT_BYTES: u64 = 1;
const LENGTH: u64 = 2;

impl Message {
    pub(super) fn number(mut self, field: Field, value: u64) -> Self {
        self.tag(field, VARIABLE);
        self.variable(value);
        self
    }

    /// Adds a signed number. Negative numbers are written as their two's complement, as the format
    /// requires.
    pub(super) fn signed(self, field: Field, value: i64) -> Self {
        self.number(field, u64::from_le_bytes(value.to_le_bytes()))
    }

    pub(super) fn fixed(mut self, field: Field, value: u64) -> Self {
        self.tag(field, EIGHT_BYTES);
        self.0.extend(value.to_le_bytes());
        self
    }

    pub(super) fn text(self, field: Field, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }

    pub(super) fn message(self, field: Field, message: &Self) -> Self {
        self.bytes(field, &message.0)
    }

    /// Adds a number, unless it is 0.
    pub(super) fn unless_zero(self, field: Field, value: i64) -> Self {
        if value == 0 { self } else { self.signed(field, value) }
    }

    /// Adds a string, unless it is empty.
    pub(super) fn unless_empty(self, field: Field, text: &str) -> Self {
        if text.is_empty() { self } else { self.text(field, text) }
    }

    /// Adds a packed list of numbers, unless it is empty.
    pub(super) fn packed(self, field: Field, values: &[i64]) -> Self {
        if values.is_empty() {
            return self;
        }
        let mut list = Self::default();
        for value in values {
            list.variable(u64::from_le_bytes(value.to_le_bytes()));
        }
        self.bytes(field, &list.0)
    }

    /// Returns the length of a message, as written before it in a file of several messages.
    pub(super) fn length_of(message: &Self) -> Vec<u8> {
        let mut length = Self::default();
        length.variable(message.0.len() as u64);
        length.0
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn bytes(mut self, field: Field, bytes: &[u8]) -> Self {
        self.tag(field, LENGTH);
        self.variable(bytes.len() as u64);
        self.0.extend(bytes);
        self
    }

    fn tag(&mut self, field: Field, form: u64) {
        self.variable(field << 3 | form);
    }

    /// Appends a varint: seven bits per byte, lowest first; all bytes but the last have the eighth
    /// bit set.
    fn variable(&mut self, mut value: u64) {
        while value > 0x7f {
            self.0.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.0.push(value.to_le_bytes()[0]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_take_as_many_bytes_as_they_need() {
        // 150 is the example in the description of the format.
        assert_eq!(Message::default().number(1, 150).into_bytes(), [0x08, 0x96, 0x01]);
        assert_eq!(Message::default().signed(1, -1).into_bytes().len(), 11);
    }

    #[test]
    fn messages_and_texts_have_a_length() {
        let inner = Message::default().text(2, "testing");
        let outer = Message::default().message(3, &inner).into_bytes();
        assert_eq!(outer, b"\x1a\x09\x12\x07testing");
    }
}
