//! Scans the text of one event into a draft.
//!
//! The file is this long because of its tests.

use super::arguments::{
    CONNECTION_ID, CORR_ID, CORRELATION, DEVICE, EXTERNAL_ID, EXTERNAL_ID_LOWER, QUEUE_ID, STREAM,
    Wanted,
};
use crate::diagnostics::Code;
use crate::ids::StringId;
use crate::read::json::{
    Key, Keys, Scan, Scanner, Span, Token, is_number, leading, leading_of, thousandths, up_to_eight,
};
use crate::strings::Strings;
use crate::time::{BadTime, MAX_TIME_NS, nanoseconds};

/// The event keys that are read, in the order of the constants below.
pub(super) const EVENT_KEYS: &[&str] = &[
    "ph", "cat", "name", "pid", "tid", "ts", "dur", "args", "id", "bp", "s", "tts", "tdur",
    "cname", "scope",
];

const PHASE: Key = Key::at(0);
const CATEGORY: Key = Key::at(1);
const NAME: Key = Key::at(2);
const PROCESS: Key = Key::at(3);
const THREAD: Key = Key::at(4);
const TIME: Key = Key::at(5);
const DURATION: Key = Key::at(6);
const ARGS: Key = Key::at(7);
const ID: Key = Key::at(8);

/// A time as written in an event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Time {
    #[default]
    Missing,
    Known(i64),
    NotANumber,
    OutOfRange,
}

impl From<Result<i64, BadTime>> for Time {
    fn from(result: Result<i64, BadTime>) -> Self {
        match result {
            Ok(time_ns) => Self::Known(time_ns),
            Err(BadTime::OutOfRange) => Self::OutOfRange,
            Err(BadTime::NotANumber) => Self::NotANumber,
        }
    }
}

/// An argument that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Argument {
    pub(super) row: usize,
    pub(super) token: Token,
}

/// An event as text spans and values in a window.
#[derive(Debug, Default)]
pub(super) struct Draft {
    /// The phase letter; 0 if it is missing, longer, or not a string.
    pub(super) phase: u8,
    pub(super) has_phase: bool,
    pub(super) is_empty: bool,
    pub(super) category: Option<Span>,
    pub(super) name: Option<Span>,
    pub(super) process: Option<Token>,
    pub(super) thread: Option<Token>,
    pub(super) time: Time,
    pub(super) duration: Time,
    /// The problem with the text of a time or duration. It is only reported if the event does not
    /// use the time; otherwise the event itself is reported as having a bad time.
    pub(super) bad_time: Option<Code>,
    pub(super) bad_duration: Option<Code>,
    pub(super) id: Option<Token>,
    pub(super) correlation: Option<Token>,
    pub(super) external_id: Option<Token>,
    pub(super) stream: Option<Token>,
    pub(super) device: Option<Token>,
    pub(super) arguments: Vec<Argument>,
}

impl Draft {
    /// Clears the arguments. If an event has two sets of arguments, the later one is used.
    fn clear_arguments(&mut self) {
        self.arguments.clear();
        (self.correlation, self.external_id, self.stream, self.device) = (None, None, None, None);
    }

    /// Clears the fields in place, because assigning a new draft would copy it for every event.
    fn clear(&mut self) {
        self.clear_arguments();
        (self.phase, self.has_phase, self.is_empty) = (0, false, true);
        (self.category, self.name, self.id) = (None, None, None);
        (self.process, self.thread) = (None, None);
        (self.time, self.duration) = (Time::Missing, Time::Missing);
        (self.bad_time, self.bad_duration) = (None, None);
    }
}

/// The state of reading events, apart from the text.
pub(super) struct EventScanner {
    pub(super) event_keys: Keys,
    pub(super) argument_keys: Keys,
    pub(super) wanted: Wanted,
    pub(super) draft: Draft,
}

impl EventScanner {
    pub(super) fn new((argument_keys, wanted): (Keys, Wanted)) -> Self {
        let event_keys = Keys::new(EVENT_KEYS.iter().map(|&key| key.to_owned()));
        Self { event_keys, argument_keys, wanted, draft: Draft::default() }
    }

    /// Reads one event into the draft. The scanner is at its `{` and ends after its `}`.
    pub(super) fn scan(&mut self, scanner: &mut Scanner<'_>) -> Scan<()> {
        self.draft.clear();
        scanner.expect(b'{')?;
        let mut key = self.event_keys.next(scanner, Key::START)?;
        while key != Key::END {
            self.draft.is_empty = false;
            self.member(scanner, key)?;
            key = self.event_keys.next(scanner, key)?;
        }
        Ok(())
    }

    /// Whether the event in the draft records an awaited stream.
    pub(super) fn says_stream_waited_for(&self) -> bool {
        let name = |argument: &Argument| self.argument_keys.name(argument.row);
        self.draft.arguments.iter().any(|argument| name(argument) == "wait_on_stream")
    }

    #[inline]
    fn member(&mut self, scanner: &mut Scanner<'_>, key: Key) -> Scan<()> {
        match key {
            PHASE => self.phase(scanner)?,
            CATEGORY => self.draft.category = text(scanner.value()?),
            NAME => self.draft.name = text(scanner.value()?),
            PROCESS => self.draft.process = Some(number_or_other(scanner)?),
            THREAD => self.draft.thread = Some(number_or_other(scanner)?),
            TIME => self.draft.time = time(scanner, &mut self.draft.bad_time)?,
            DURATION => self.draft.duration = time(scanner, &mut self.draft.bad_duration)?,
            ARGS => self.arguments(scanner)?,
            ID => self.draft.id = Some(number_or_other(scanner)?),
            _ => drop(scanner.value()?),
        }
        Ok(())
    }

    #[inline]
    fn phase(&mut self, scanner: &mut Scanner<'_>) -> Scan<()> {
        self.draft.has_phase = true;
        if let [b'"', letter @ (b'A'..=b'Z' | b'a'..=b'z'), b'"', ..] = scanner.text[scanner.at..] {
            self.draft.phase = letter;
            scanner.at += 3;
            return Ok(());
        }
        let token = scanner.value()?;
        self.draft.phase = match text(token).map(|span| span.of(scanner.text)) {
            Some(&[letter]) => letter,
            _ => 0,
        };
        Ok(())
    }

    fn arguments(&mut self, scanner: &mut Scanner<'_>) -> Scan<()> {
        self.draft.clear_arguments();
        if scanner.peek_significant()? != b'{' {
            scanner.value()?;
            return Ok(());
        }
        scanner.at += 1;
        let mut key = self.argument_keys.next(scanner, Key::START)?;
        while key != Key::END {
            let token = number_or_other(scanner)?;
            self.argument(key, token);
            key = self.argument_keys.next(scanner, key)?;
        }
        Ok(())
    }

    #[inline]
    fn argument(&mut self, key: Key, token: Token) {
        match key {
            CORRELATION | CONNECTION_ID | QUEUE_ID | CORR_ID => {
                self.draft.correlation = Some(token);
            }
            EXTERNAL_ID | EXTERNAL_ID_LOWER => self.draft.external_id = Some(token),
            STREAM => self.draft.stream = Some(token),
            DEVICE => self.draft.device = Some(token),
            _ => {
                // Arguments used by other phases have no fixed names, and the phase may come after
                // the arguments.
                let Some(row) = key.row() else { return };
                let any_name = self.draft.phase != b'X' || self.wanted.counters;
                if self.wanted.keeps(row) || (any_name && !matches!(token, Token::Nested(_))) {
                    self.draft.arguments.push(Argument { row, token });
                }
            }
        }
    }
}

/// Scans a value that is usually a short integer.
#[inline]
fn number_or_other(scanner: &mut Scanner<'_>) -> Scan<Token> {
    if let Some((value, length)) = plain_integer(&scanner.text[scanner.at..]) {
        scanner.at += length;
        return Ok(Token::Integer(value));
    }
    scanner.value()
}

#[inline]
pub(super) fn plain_integer(text: &[u8]) -> Option<(i64, usize)> {
    let Some(front) = text.first_chunk::<9>() else { return long_integer(text) };
    let (value, count) = up_to_eight(*front.first_chunk()?);
    let is_plain = count == 1 || (count > 1 && front[0] != b'0');
    if count == 8 {
        return long_integer(text);
    }
    (is_plain && ends_a_number(front[count])).then_some((value.cast_signed(), count))
}

/// Parses an integer of any length, or near the end of the window.
fn long_integer(text: &[u8]) -> Option<(i64, usize)> {
    let (value, count) = leading(text)?;
    let is_plain = count == 1 || (count > 1 && text[0] != b'0');
    (is_plain && ends_a_number(*text.get(count)?)).then_some((value.cast_signed(), count))
}

fn text(token: Token) -> Option<Span> {
    match token {
        Token::Text(span) => Some(span),
        _ => None,
    }
}

/// Scans a time in microseconds: a number or a string that contains one. The problem with any other
/// string is stored in `bad`.
#[inline]
fn time(scanner: &mut Scanner<'_>, bad: &mut Option<Code>) -> Scan<Time> {
    scanner.peek_significant()?;
    if let Some((value, length)) = plain_time(&scanner.text[scanner.at..]) {
        scanner.at += length;
        return Ok(Time::Known(value));
    }
    let n_findings = scanner.findings.len();
    let token = scanner.value()?;
    let digits = match token {
        Token::Integer(value) => return Ok(whole_microseconds(value)),
        Token::Number(span) => span.of(scanner.text),
        Token::Text(span) if is_number(span.of(scanner.text)) => span.of(scanner.text),
        _ => {
            *bad = scanner.findings.get(n_findings).map(|&(code, _)| code);
            scanner.findings.truncate(n_findings);
            return Ok(Time::NotANumber);
        }
    };
    Ok(nanoseconds(digits).into())
}

fn whole_microseconds(value: i64) -> Time {
    let time_ns = value.checked_mul(1000).filter(|time_ns| is_in_range(*time_ns));
    time_ns.map_or(Time::OutOfRange, Time::Known)
}

/// Parses a time as profilers write it: up to 15 digits and up to three decimals. Returns
/// nanoseconds and the length of the text.
#[inline]
pub(super) fn plain_time(text: &[u8]) -> Option<(i64, usize)> {
    plain_time_before(text, ends_a_number)
}

/// Like [`plain_time`], for a number that ends before a byte accepted by `ends`.
#[inline]
pub(super) fn plain_time_before(text: &[u8], ends: impl Fn(u8) -> bool) -> Option<(i64, usize)> {
    let Some(front) = text.first_chunk::<TIME_BYTES>() else {
        // Near the end of the window, the text is padded so that the number ends.
        let mut front = [0; TIME_BYTES];
        front[..text.len()].copy_from_slice(text);
        return plain_time_of(&front, ends);
    };
    plain_time_of(front, ends)
}

/// The length of a plain time and the byte after it, rounded up.
const TIME_BYTES: usize = 24;

#[inline]
fn plain_time_of(text: &[u8; TIME_BYTES], ends: impl Fn(u8) -> bool) -> Option<(i64, usize)> {
    let (whole, n_whole) = leading_of(text.first_chunk()?);
    if n_whole == 0 || (n_whole > 1 && text[0] == b'0') {
        return None;
    }
    let (fraction, length) = if text[n_whole] == b'.' {
        let (fraction, n_fraction) = thousandths(*text[n_whole + 1..].first_chunk()?);
        if !(1..=3).contains(&n_fraction) {
            return None;
        }
        (fraction, n_whole + 1 + n_fraction)
    } else {
        (0, n_whole)
    };
    // Sixteen digits and three decimals fit into `u64`, and are out of range if negative as `i64`.
    let time_ns = whole.wrapping_mul(1000).wrapping_add(fraction).cast_signed();
    (is_in_range(time_ns) && ends(text[length])).then_some((time_ns, length))
}

#[inline]
fn is_in_range(time_ns: i64) -> bool {
    (-MAX_TIME_NS..=MAX_TIME_NS).contains(&time_ns)
}

#[inline]
fn ends_a_number(byte: u8) -> bool {
    matches!(byte, b',' | b'\n' | b' ' | b'}' | b'\r')
}

impl Draft {
    pub(super) fn start_ns(&self) -> i64 {
        match self.time {
            Time::Known(time_ns) => time_ns,
            Time::Missing | Time::NotANumber | Time::OutOfRange => 0,
        }
    }

    /// Returns the duration, and a warning about it.
    pub(super) fn duration_ns(&self) -> (Option<i64>, Option<Code>) {
        match self.duration {
            Time::Known(duration) if duration < 0 => (Some(duration), Some(Code::NegativeDuration)),
            Time::Known(duration) if self.start_ns() + duration > MAX_TIME_NS => {
                (None, Some(Code::HugeDuration))
            }
            Time::Known(duration) if self.phase == b'X' => (Some(duration), None),
            Time::OutOfRange => (None, Some(Code::HugeDuration)),
            Time::NotANumber => (None, Some(Code::BadDuration)),
            Time::Missing if self.phase == b'X' => (None, Some(Code::MissingDuration)),
            Time::Known(_) | Time::Missing => (None, None),
        }
    }

    /// Returns problems with times that the event does not use.
    pub(super) fn unread_faults(&self) -> impl Iterator<Item = Code> {
        let takes_no_time = matches!(
            self.phase,
            b'E' | b'C'
                | b'M'
                | b's'
                | b't'
                | b'f'
                | b'b'
                | b'n'
                | b'e'
                | b'S'
                | b'T'
                | b'p'
                | b'F'
        );
        let time = self.bad_time.filter(|_| self.phase == b'M');
        time.into_iter().chain(self.bad_duration.filter(|_| takes_no_time))
    }

    /// Returns the reason why the event has no usable time, if so.
    pub(super) fn time_fault(&self) -> Option<Code> {
        match self.time {
            Time::Known(_) => None,
            Time::Missing => Some(Code::MissingTimestamp),
            Time::NotANumber | Time::OutOfRange => Some(Code::BadTimestamp),
        }
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::Arguments;

    fn draft(text: &str) -> Draft {
        let mut scanner = EventScanner::new(Arguments::Ids.keys());
        let mut findings = Vec::new();
        scanner.scan(&mut Scanner::new(text.as_bytes(), 0, &mut findings)).unwrap();
        assert_eq!(findings, []);
        scanner.draft
    }

    #[test]
    fn times_are_exact_however_they_are_written() {
        for (text, ns) in [
            ("12", 12_000),
            ("1712195495506752.812", 1_712_195_495_506_752_812),
            ("0.5", 500),
            ("\"7.25\"", 7_250),
            ("-3", -3_000),
            ("1.5e2", 150_000),
            ("123456789012345678", i64::MAX),
            ("9999999999999999", i64::MAX),
            ("9999999999999999.9", i64::MAX),
        ] {
            let found = draft(&format!("{{\"ts\": {text}}}")).time;
            if ns == i64::MAX {
                assert_eq!(found, Time::OutOfRange);
            } else {
                assert_eq!(found, Time::Known(ns), "{text}");
            }
        }
        assert_eq!(draft("{\"ts\": null}").time, Time::NotANumber);
        assert_eq!(draft("{}").time, Time::Missing);
    }

    #[test]
    fn the_last_of_two_equal_keys_counts() {
        let text = r#"{"ts": 1, "ts": 2, "args": {"correlation": 1}, "args": {"correlation": 3}}"#;
        let draft = draft(text);
        assert_eq!(draft.time, Time::Known(2_000));
        assert_eq!(draft.correlation, Some(Token::Integer(3)));
    }
}
