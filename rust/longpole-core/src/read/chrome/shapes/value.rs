//! Reads the values of an event with a known shape.
//!
//! Only simple values are read: a plain number, a plain string, a valid list. The text after a
//! value is part of the shape, so the caller checks the end of the value when it compares that
//! text.

use crate::ids::StringId;
use crate::read::chrome::event::{Argument, plain_integer, plain_time, plain_time_before};
use crate::read::json::{Scanner, Span, Token, digit_count, leading, special};
use crate::strings::{MAX_TEXT_BYTES, Strings};
use crate::time::nanoseconds;

/// A value that differs between events of a shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value {
    Start,
    /// A quoted time; the quotes are constant text.
    QuotedStart,
    Duration,
    QuotedDuration,
    Correlation,
    QuotedCorrelation,
    ExternalId,
    ArrowId,
    QuotedArrowId,
    Name,
    /// An argument, or a value that is not kept.
    Number(Option<usize>),
    Text(Option<usize>),
    Nested(Option<usize>),
}

/// The values of one event, by hole.
#[derive(Debug, Default)]
pub(in crate::read::chrome) struct Found {
    pub(in crate::read::chrome) start_ns: i64,
    pub(in crate::read::chrome) duration_ns: Option<i64>,
    pub(in crate::read::chrome) correlation: Option<i64>,
    pub(in crate::read::chrome) external_id: Option<i64>,
    pub(in crate::read::chrome) arrow_id: Option<i64>,
    pub(in crate::read::chrome) name: Option<Name>,
    pub(in crate::read::chrome) arguments: Vec<Argument>,
}

/// The name of an event.
#[derive(Debug, Clone, Copy)]
pub(in crate::read::chrome) enum Name {
    /// The guessed name.
    Known(StringId),
    /// Plain text.
    At(Span),
}

impl Found {
    pub(super) fn clear(&mut self) {
        self.start_ns = 0;
        (self.duration_ns, self.arrow_id, self.name) = (None, None, None);
        (self.correlation, self.external_id) = (None, None);
        self.arguments.clear();
    }
}

impl Value {
    /// Whether it is between quotes, which are constant text.
    pub(super) fn is_quoted(self) -> bool {
        matches!(
            self,
            Self::Name
                | Self::Text(_)
                | Self::QuotedStart
                | Self::QuotedDuration
                | Self::QuotedCorrelation
                | Self::QuotedArrowId
        )
    }

    /// Reads the value at `at`. Returns where it ends.
    #[inline]
    pub(super) fn read(
        self,
        text: &[u8],
        at: usize,
        guess: Option<StringId>,
        strings: &Strings,
        found: &mut Found,
    ) -> Option<usize> {
        match self {
            Self::Start => {
                let (time_ns, length) = plain_time(&text[at..])?;
                found.start_ns = time_ns;
                Some(at + length)
            }
            Self::QuotedStart => {
                let (time_ns, length) = plain_time_before(&text[at..], |byte| byte == b'"')?;
                found.start_ns = time_ns;
                Some(at + length)
            }
            Self::QuotedDuration => {
                let (duration_ns, length) = plain_time_before(&text[at..], |byte| byte == b'"')?;
                found.duration_ns = Some(duration_ns);
                Some(at + length)
            }
            Self::Duration => {
                let (duration_ns, length) =
                    plain_time(&text[at..]).or_else(|| fine_time(&text[at..]))?;
                found.duration_ns = Some(duration_ns);
                Some(at + length)
            }
            Self::Correlation | Self::ExternalId | Self::ArrowId => {
                let (value, length) = plain_integer(&text[at..])?;
                let place = match self {
                    Self::Correlation => &mut found.correlation,
                    Self::ExternalId => &mut found.external_id,
                    _ => &mut found.arrow_id,
                };
                *place = Some(value);
                Some(at + length)
            }
            Self::QuotedCorrelation | Self::QuotedArrowId => {
                let (value, length) = leading(&text[at..])?;
                let is_whole = length > 0 && text.get(at + length) == Some(&b'"');
                let value = is_whole.then(|| value.cast_signed());
                match self {
                    Self::QuotedCorrelation => found.correlation = value,
                    _ => found.arrow_id = value,
                }
                is_whole.then_some(at + length)
            }
            Self::Name => {
                let (name, end) = name(text, at, guess, strings)?;
                found.name = Some(name);
                Some(end)
            }
            Self::Number(None) => number_end(text, at),
            Self::Number(row) => Some(keep(row, any_number(text, at)?, found)),
            Self::Text(row) => {
                let span = plain_text(text, at)?;
                Some(keep(row, (Token::Text(span), span.end()), found))
            }
            Self::Nested(row) => {
                let end = list_end(text, at).or_else(|| nested_end(text, at))?;
                Some(keep(row, (Token::Nested(Span::new(at, end)), end), found))
            }
        }
    }
}

/// Returns a duration with digits below a nanosecond, rounded as the scanner does.
fn fine_time(text: &[u8]) -> Option<(i64, usize)> {
    let (_, end) = number(text, 0).filter(|_| text[0] != b'-')?;
    Some((nanoseconds(&text[..end]).ok()?, end))
}

#[inline]
fn keep(row: Option<usize>, (token, end): (Token, usize), found: &mut Found) -> usize {
    if let Some(row) = row {
        found.arguments.push(Argument { row, token });
    }
    end
}

/// Returns the guessed name, or any other plain string up to its quote.
#[inline]
fn name(
    text: &[u8],
    at: usize,
    guess: Option<StringId>,
    strings: &Strings,
) -> Option<(Name, usize)> {
    if let Some(guess) = guess {
        let known = strings.bytes(guess);
        let end = at + known.len();
        if text.get(end) == Some(&b'"') && begins_with(&text[at..], known) {
            return Some((Name::Known(guess), end));
        }
    }
    let span = plain_text(text, at)?;
    Some((Name::At(span), span.end()))
}

/// Returns the plain string at `at`, up to its quote.
#[inline]
fn plain_text(text: &[u8], at: usize) -> Option<Span> {
    let length = special(&text[at..])?;
    let is_plain = text[at + length] == b'"' && length <= MAX_TEXT_BYTES;
    is_plain.then(|| Span::new(at, at + length))
}

/// Returns the end of a number that is not kept.
#[inline]
fn number_end(text: &[u8], at: usize) -> Option<usize> {
    if let Some(front) = text.get(at..)?.first_chunk::<9>() {
        let count = digit_count(*front.first_chunk()?);
        let is_plain = count == 1 || (count > 1 && front[0] != b'0');
        if is_plain && ends_a_value(front[count]) {
            return Some(at + count);
        }
    }
    number(text, at).map(|(_, end)| end)
}

#[inline]
fn any_number(text: &[u8], at: usize) -> Option<(Token, usize)> {
    match plain_integer(text.get(at..)?) {
        Some((value, length)) => Some((Token::Integer(value), at + length)),
        None => number(text, at),
    }
}

/// Parses a simple number: an integer, or digits with a decimal point.
fn number(text: &[u8], at: usize) -> Option<(Token, usize)> {
    let negative = *text.get(at)? == b'-';
    let digits = at + usize::from(negative);
    let (value, count) = leading(&text[digits..])?;
    let is_plain = count == 1 || (count > 1 && text[digits] != b'0');
    let end = digits + count;
    match *text.get(end)? {
        b'.' if is_plain => {
            let (_, n_fraction) = leading(&text[end + 1..])?;
            // More digits than the arithmetic handles at once.
            let more = text[end + 1 + n_fraction..].iter().take_while(|byte| byte.is_ascii_digit());
            let end = end + 1 + n_fraction + more.count();
            let ends = n_fraction > 0 && ends_a_value(*text.get(end)?);
            ends.then(|| (Token::Number(Span::new(at, end)), end))
        }
        byte if is_plain && ends_a_value(byte) => {
            let value = value.cast_signed();
            Some((Token::Integer(if negative { -value } else { value }), end))
        }
        _ => None,
    }
}

#[inline]
fn ends_a_value(byte: u8) -> bool {
    matches!(byte, b',' | b'\n' | b' ' | b'}' | b'\r' | b'\t')
}

/// Returns the end of a list as profilers write it: short integers, plain strings and such lists,
/// separated by a comma and usually a space.
fn list_end(text: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0;
    loop {
        match *text.get(at)? {
            b'[' if depth < MAX_LIST_DEPTH => {
                (at, depth) = (at + 1, depth + 1);
                if *text.get(at)? != b']' {
                    continue;
                }
            }
            b'"' if depth > 0 => at = plain_text(text, at + 1)?.end() + 1,
            b'0'..=b'9' if depth > 0 => at = listed_integer_end(text, at)?,
            _ => return None,
        }
        while *text.get(at)? == b']' {
            (at, depth) = (at + 1, depth - 1);
            if depth == 0 {
                return Some(at);
            }
        }
        at += match text[at..] {
            [b',', b' ', ..] => 2,
            [b',', ..] => 1,
            _ => return None,
        }
    }
}

/// Deeper lists are left to the scanner.
const MAX_LIST_DEPTH: u32 = 8;

#[inline]
fn listed_integer_end(text: &[u8], at: usize) -> Option<usize> {
    let front = text.get(at..)?.first_chunk::<9>()?;
    let count = digit_count(*front.first_chunk()?);
    let is_plain = count == 1 || front[0] != b'0';
    (is_plain && matches!(front[count], b',' | b']')).then_some(at + count)
}

/// Returns the end of a valid list or object.
fn nested_end(text: &[u8], at: usize) -> Option<usize> {
    let mut findings = Vec::new();
    let mut scanner = Scanner::new(text, at, &mut findings);
    let bracket = scanner.peek().ok()?;
    if !matches!(bracket, b'[' | b'{') {
        return None;
    }
    scanner.value().ok()?;
    let end = scanner.at;
    findings.is_empty().then_some(end)
}

/// Whether `text` begins with `constant`, compared in overlapping words: for short runs of bytes, a
/// call to `memcmp` costs more.
#[inline]
pub(in crate::read::chrome) fn begins_with(text: &[u8], constant: &[u8]) -> bool {
    let length = constant.len();
    let Some(text) = text.get(..length) else { return false };
    match length {
        65.. => text == constant,
        32.. => have_same_ends::<32>(text, constant),
        16.. => have_same_ends::<16>(text, constant),
        8.. => have_same_ends::<8>(text, constant),
        4.. => have_same_ends::<4>(text, constant),
        _ => text.iter().zip(constant).all(|(one, two)| one == two),
    }
}

#[inline]
fn have_same_ends<const N: usize>(one: &[u8], two: &[u8]) -> bool {
    one.first_chunk::<N>() == two.first_chunk::<N>()
        && one.last_chunk::<N>() == two.last_chunk::<N>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_end_where_the_scanner_ends_them_and_others_are_left_to_it() {
        for sound in [
            "[]",
            "[1, 22, 333]",
            "[[12345678, 0], [], [[\"a b\"]]]",
            "[\"float\",\"\",7]",
            "[[4096, 4096],[1]]",
        ] {
            let text = format!("{sound},\n      \"block\": ");
            assert_eq!(list_end(text.as_bytes(), 0), Some(sound.len()), "{sound}");
            assert_eq!(nested_end(text.as_bytes(), 0), Some(sound.len()), "{sound}");
            for end in 0..sound.len() {
                assert_eq!(list_end(&text.as_bytes()[..end], 0), None, "{}", &text[..end]);
            }
        }
        for other in ["[01]", "[1,]", "[1, ]", "[1  2]", "[nan]", "[\"\\n\"]", "[1}", "7", "{}"] {
            let text = format!("{other},\n      \"block\": ");
            assert_eq!(list_end(text.as_bytes(), 0), None, "{other}");
        }
    }

    #[test]
    fn a_number_that_is_skipped_ends_where_one_that_is_read_does() {
        for number in ["0", "7", "12345678", "123456789", "-3", "1.5", "00", "1e3", "-", "4."] {
            for end in [",", "}", "\n", "\t", "]", "x", ""] {
                let text = format!("{number}{end} 12345678901234567");
                let read = any_number(text.as_bytes(), 0).map(|(_, end)| end);
                assert_eq!(number_end(text.as_bytes(), 0), read, "{text}");
            }
        }
    }
}
