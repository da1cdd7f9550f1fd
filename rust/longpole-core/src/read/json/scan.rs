//! A validating JSON scanner over a window of text.
//!
//! It visits every byte once and checks the complete grammar, which costs only a few comparisons
//! per token, but it creates only the requested values. Problems that can be read over are recorded
//! as findings. Those that cannot are a [`Stop::Fault`], described in [`Scanner::fault`]. If the
//! window ends too early, it returns [`Stop::NeedMore`], and the caller scans the element again
//! from its start in a longer window. The result therefore does not depend on window boundaries.

use super::grammar::{is_in_word, is_non_finite, is_number, is_whitespace, leading, special};
use crate::diagnostics::Code;
use crate::strings::{MAX_TEXT_BYTES, spelling_faults};

/// The reason why a scan stopped early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::read) enum Stop {
    /// The window ends inside the element.
    NeedMore,
    /// The text is not JSON. Details are in [`Scanner::fault`] instead of here, so that the result
    /// of every function fits into two registers.
    Fault,
}

pub(in crate::read) type Scan<T> = std::result::Result<T, Stop>;

/// A malformed word or number of at most this length is read as null; longer ones count as damage.
const MAX_WORD_BYTES: usize = 32;

/// A position in a window, and the findings on the way.
pub(in crate::read) struct Scanner<'a> {
    pub(in crate::read) text: &'a [u8],
    pub(in crate::read) at: usize,
    pub(in crate::read) findings: &'a mut Vec<(Code, usize)>,
    /// The reason for a [`Stop::Fault`], and its position in the window.
    pub(in crate::read) fault: (Code, usize),
}

impl<'a> Scanner<'a> {
    pub(in crate::read) fn new(
        text: &'a [u8],
        at: usize,
        findings: &'a mut Vec<(Code, usize)>,
    ) -> Self {
        Self { text, at, findings, fault: (Code::MalformedEvent, at) }
    }

    /// Returns the next byte, without consuming it.
    #[inline]
    pub(in crate::read) fn peek(&self) -> Scan<u8> {
        self.text.get(self.at).copied().ok_or(Stop::NeedMore)
    }

    /// Returns the next byte that is not white space, without consuming it.
    #[inline]
    pub(in crate::read) fn peek_significant(&mut self) -> Scan<u8> {
        loop {
            let byte = self.peek()?;
            if !is_whitespace(byte) {
                return Ok(byte);
            }
            self.at += 1;
        }
    }

    pub(in crate::read) fn stop<T>(&mut self, code: Code) -> Scan<T> {
        self.fault = (code, self.at);
        Err(Stop::Fault)
    }

    /// Consumes `byte` after any white space.
    #[inline]
    pub(in crate::read) fn expect(&mut self, byte: u8) -> Scan<()> {
        if self.peek_significant()? != byte {
            return self.stop(Code::MalformedEvent);
        }
        self.at += 1;
        Ok(())
    }

    /// Scans a value of any type, after any white space.
    #[inline]
    pub(in crate::read) fn value(&mut self) -> Scan<Token> {
        match self.peek_significant()? {
            b'"' => Ok(Token::Text(self.quoted()?)),
            b'0'..=b'9' | b'-' => self.number(),
            b'[' | b'{' => self.nested(),
            _ => self.word(),
        }
    }

    /// Scans a quoted string, starting at its first quote.
    #[inline]
    pub(in crate::read) fn quoted(&mut self) -> Scan<Span> {
        let start = self.at + 1;
        let end = start + special(&self.text[start..]).ok_or(Stop::NeedMore)?;
        if self.text[end] == b'"' && end - start <= MAX_TEXT_BYTES {
            self.at = end + 1;
            return Ok(Span::new(start, end));
        }
        self.quoted_with_care(start, end)
    }

    /// Scans the rest of a string that contains more than plain ASCII from `at` on.
    #[cold]
    fn quoted_with_care(&mut self, start: usize, mut at: usize) -> Scan<Span> {
        loop {
            match *self.text.get(at).ok_or(Stop::NeedMore)? {
                b'"' => break,
                // An escaped character does not end the string.
                b'\\' => at += 2,
                // Two such bytes are a hole in the file, not characters of a name: continuing would
                // join the start of one event with the end of another.
                byte @ (0 | 0xff) if self.text.get(at + 1) == Some(&byte) => {
                    self.at = at;
                    return self.stop(Code::MalformedEvent);
                }
                _ => at += 1,
            }
            at += special(self.text.get(at..).unwrap_or_default()).ok_or(Stop::NeedMore)?;
        }
        let span = Span::spelled(start, at);
        self.note_spelling(span);
        self.at = at + 1;
        Ok(span)
    }

    fn note_spelling(&mut self, span: Span) {
        let faults = spelling_faults(span.of(self.text));
        let found = [
            (faults.invalid_utf8, Code::InvalidUtf8),
            (faults.control_characters, Code::ControlCharacter),
            (faults.unknown_escapes, Code::InvalidEscape),
            (faults.lone_surrogates, Code::LoneSurrogate),
            (faults.cut, Code::TextCut),
        ];
        self.findings
            .extend(found.iter().filter(|(set, _)| *set).map(|&(_, code)| (code, span.start())));
    }

    /// Scans a number, starting at its first byte.
    #[inline]
    pub(in crate::read) fn number(&mut self) -> Scan<Token> {
        let negative = self.text[self.at] == b'-';
        let digits = self.at + usize::from(negative);
        let rest = self.text.get(digits..).unwrap_or_default();
        let (value, count) = leading(rest).ok_or(Stop::NeedMore)?;
        let ends = !is_in_word(*rest.get(count).ok_or(Stop::NeedMore)?);
        let padded = count > 1 && rest[0] == b'0';
        // Sixteen digits always fit.
        if ends && count > 0 && !padded {
            self.at = digits + count;
            let value = value.cast_signed();
            return Ok(Token::Integer(if negative { -value } else { value }));
        }
        self.number_with_care()
    }

    #[cold]
    fn number_with_care(&mut self) -> Scan<Token> {
        let span = self.word_span()?;
        let text = span.of(self.text);
        if !is_number(text) {
            return self.word();
        }
        self.at = span.end();
        match std::str::from_utf8(text).ok().and_then(|text| text.parse::<i64>().ok()) {
            Some(value) => Ok(Token::Integer(value)),
            None => Ok(Token::Number(span)),
        }
    }

    /// Scans a bare word: one of the three JSON words, or what C and Python print for non-finite
    /// numbers, which is read as null and recorded as a finding.
    #[cold]
    fn word(&mut self) -> Scan<Token> {
        let span = self.word_span()?;
        let text = span.of(self.text);
        let token = match text {
            b"true" => Token::True,
            b"false" => Token::False,
            b"null" => Token::Null,
            _ if text.is_empty() || text.len() > MAX_WORD_BYTES => {
                return self.stop(Code::MalformedEvent);
            }
            _ => {
                let code = if is_non_finite(text) { Code::NonFinite } else { Code::InvalidNumber };
                self.findings.push((code, span.start()));
                Token::Null
            }
        };
        self.at = span.end();
        Ok(token)
    }

    /// Returns the run of bytes that may be part of a number or a word.
    fn word_span(&self) -> Scan<Span> {
        let rest = &self.text[self.at..];
        let length = rest.iter().position(|&byte| !is_in_word(byte)).ok_or(Stop::NeedMore)?;
        Ok(Span::new(self.at, self.at + length))
    }

    /// Skips an array or object, starting at its bracket. Not recursive, so that the depth of the
    /// file does not use our stack.
    fn nested(&mut self) -> Scan<Token> {
        let start = self.at;
        let mut open = Brackets::default();
        loop {
            // A value must follow.
            match self.peek_significant()? {
                bracket @ (b'[' | b'{') => {
                    self.at += 1;
                    if !open.push(bracket == b'{') {
                        return self.stop(Code::TooDeep);
                    }
                    if !self.takes_closing(&open)? {
                        self.member_key(&open)?;
                        continue;
                    }
                    open.pop();
                }
                b'"' => drop(self.quoted()?),
                b'0'..=b'9' | b'-' => drop(self.number()?),
                _ => drop(self.word()?),
            }
            // A value has ended.
            loop {
                if open.is_empty() {
                    return Ok(Token::Nested(Span::new(start, self.at)));
                }
                if self.takes_closing(&open)? {
                    open.pop();
                    continue;
                }
                let comma = self.at;
                self.expect(b',')?;
                if self.takes_closing(&open)? {
                    self.findings.push((Code::TrailingComma, comma));
                    open.pop();
                    continue;
                }
                self.member_key(&open)?;
                break;
            }
        }
    }

    /// Consumes the bracket that closes the innermost open one, if it is next.
    fn takes_closing(&mut self, open: &Brackets) -> Scan<bool> {
        let closing = if open.innermost_is_object() { b'}' } else { b']' };
        let found = self.peek_significant()? == closing;
        self.at += usize::from(found);
        Ok(found)
    }

    /// Scans the key of the next member, if the innermost open bracket is an object.
    fn member_key(&mut self, open: &Brackets) -> Scan<()> {
        if open.innermost_is_object() {
            if self.peek_significant()? != b'"' {
                return self.stop(Code::MalformedEvent);
            }
            self.quoted()?;
            self.expect(b':')?;
        }
        Ok(())
    }
}

/// Whether `text` begins with one of the given keys and its colon; `None` if it is too short to
/// decide.
pub(in crate::read) fn starts_with_key(text: &[u8], known: &[&str]) -> Option<bool> {
    let mut findings = Vec::new();
    let mut scanner = Scanner::new(text, 0, &mut findings);
    let mut read = || {
        if scanner.peek_significant()? != b'"' {
            return Ok(false);
        }
        let key = scanner.quoted()?;
        let is_known = known.iter().any(|known| known.as_bytes() == key.of(scanner.text));
        Ok(is_known && scanner.peek_significant()? == b':')
    };
    match read() {
        Ok(found) => Some(found),
        Err(Stop::Fault) => Some(false),
        Err(Stop::NeedMore) => None,
    }
}

/// Deeper values are rejected. JSON sets no limit; other readers stop at 512 to 1024.
const MAX_DEPTH: usize = 512;

/// The open brackets of a nested value, one bit each, set for objects.
#[derive(Default)]
pub(super) struct Brackets {
    bits: [u64; MAX_DEPTH / 64],
    depth: usize,
}

impl Brackets {
    pub(super) fn push(&mut self, object: bool) -> bool {
        if self.depth == MAX_DEPTH {
            return false;
        }
        let bit = 1 << (self.depth % 64);
        let word = &mut self.bits[self.depth / 64];
        *word = if object { *word | bit } else { *word & !bit };
        self.depth += 1;
        true
    }

    pub(super) fn pop(&mut self) {
        self.depth -= 1;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.depth == 0
    }

    pub(super) fn innermost_is_object(&self) -> bool {
        let top = self.depth - 1;
        self.bits[top / 64] >> (top % 64) & 1 == 1
    }
}

// The position and type of a value in a window.

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

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(text: &str) -> (Scan<Token>, Vec<Code>) {
        let mut findings = Vec::new();
        let value = Scanner::new(text.as_bytes(), 0, &mut findings).value();
        (value, findings.into_iter().map(|(code, _)| code).collect())
    }

    #[test]
    fn nested_values_are_skipped_whole() {
        let text = r#"{"a": [1, {"b": []}, "}"], "c": -1.5e3} rest"#;
        assert_eq!(scan(text), (Ok(Token::Nested(Span::new(0, text.len() - 5))), vec![]));
    }

    #[test]
    fn every_prefix_of_a_value_needs_more() {
        let text = r#"{"a": [1.25, {"b": [null, true]}, "\u00e9\\"], "c": "x"}"#;
        for end in 0..text.len() {
            assert_eq!(scan(&text[..end]).0, Err(Stop::NeedMore), "{}", &text[..end]);
        }
    }

    #[test]
    fn numbers_that_are_none_read_as_null_and_are_noted() {
        for word in ["nan", "-nan", "NaN", "inf", "-Infinity", "-1.#IND"] {
            assert_eq!(
                scan(&format!("{word},")),
                (Ok(Token::Null), vec![Code::NonFinite]),
                "{word}"
            );
        }
        for word in ["N/A", "+9.", "007", ".5", "1.", "0.-05", "tru", "-", "1e"] {
            assert_eq!(
                scan(&format!("{word},")),
                (Ok(Token::Null), vec![Code::InvalidNumber]),
                "{word}"
            );
        }
    }

    #[test]
    fn depth_has_a_limit_and_uses_no_stack() {
        let deep = |depth: usize| "[".repeat(depth) + &"]".repeat(depth) + " ";
        assert!(matches!(scan(&deep(512)).0, Ok(Token::Nested(_))));
        assert!(matches!(scan(&deep(5_000_000)).0, Err(Stop::Fault)));
    }

    #[test]
    fn a_hole_in_a_text_is_no_text() {
        assert!(matches!(scan("\"aten::a\0\0\0l\" ").0, Err(Stop::Fault)));
        assert!(matches!(scan("\"aten::a\0l\" ").0, Ok(Token::Text(_))));
    }
}
