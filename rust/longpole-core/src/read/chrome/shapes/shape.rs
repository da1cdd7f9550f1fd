//! The text of an event with holes, and what an event of that text is.

use super::outline::{outline, Member};
use crate::ids::{LaneId, StringId};
use crate::read::chrome::arguments::STREAM;
use crate::read::chrome::arguments::{Wanted, CORRELATION, DEVICE, EXTERNAL_ID, EXTERNAL_ID_LOWER};
use crate::read::chrome::event::{plain_integer, plain_time, Argument};
use crate::read::json::{leading, special, Keys, Scanner, Span, Token};
use crate::strings::{Strings, MAX_TEXT_BYTES};
use crate::tables::{ArgValue, EventKind};
use crate::time::MAX_TIME_NS;

/// Events with more values, or more text between them, are left to the scanner.
const MAX_HOLES: usize = 64;
const MAX_CONSTANT_BYTES: usize = 4096;

/// The text of one event with holes.
pub(super) struct Shape {
    /// What stands between the values, one behind the other.
    constants: Box<[u8]>,
    holes: Box<[Hole]>,
    pub(super) plan: Plan,
}

/// A value that differs between events of a shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Hole {
    /// How much of the constant text stands before it.
    constant_bytes: usize,
    value: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Value {
    Start,
    Duration,
    Correlation,
    ExternalId,
    ArrowId,
    Name,
    /// An argument, or what no one asks about.
    Number(Option<usize>),
    Text(Option<usize>),
    Nested(Option<usize>),
}

/// What an event of a shape is, beside the values in its holes.
pub(in crate::read::chrome) enum Plan {
    Event(EventPlan),
    Arrow {
        phase: u8,
        source: u32,
    },
    /// A statement that was made before, word by word.
    Statement {
        row: usize,
    },
}

/// What events of a shape have in common.
pub(in crate::read::chrome) struct EventPlan {
    pub(in crate::read::chrome) phase: u8,
    pub(in crate::read::chrome) kind: EventKind,
    pub(in crate::read::chrome) category: Option<StringId>,
    pub(in crate::read::chrome) name: Option<StringId>,
    pub(in crate::read::chrome) lane: LaneId,
    /// Arguments that stand in the constant text, behind all others.
    pub(in crate::read::chrome) fixed: Vec<(usize, ArgValue)>,
}

impl Plan {
    /// Whether the name stands in the constant text.
    fn fixes_name(&self) -> bool {
        match self {
            Self::Event(plan) => plan.name.is_some(),
            Self::Arrow { .. } | Self::Statement { .. } => true,
        }
    }
}

/// The values of one event, by the holes they came out of.
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
    /// The one that was guessed.
    Known(StringId),
    /// Plain text.
    At(Span),
}

impl Found {
    fn clear(&mut self) {
        self.start_ns = 0;
        (self.duration_ns, self.arrow_id, self.name) = (None, None, None);
        (self.correlation, self.external_id) = (None, None);
        self.arguments.clear();
    }
}

impl Shape {
    /// The shape of the event that is `text`, of which the scanner and the collector had
    /// nothing to say and made `plan`.
    pub(super) fn new(text: &[u8], plan: Plan, keys: &Keys, wanted: &Wanted) -> Option<Self> {
        let mut constants = Vec::new();
        let mut holes = Vec::new();
        let (mut here, mut ids) = (0, 0);
        for member in outline(text)? {
            let value = match hole(&member, text, &plan, keys, wanted) {
                Part::Constant => continue,
                Part::Hole(value) => value,
                Part::Unusual => return None,
            };
            ids += usize::from(value == Value::ExternalId);
            // The quotes belong to the constant text.
            let quotes = usize::from(matches!(value, Value::Name | Value::Text(_)));
            let before = &text[here..member.place.start() + quotes];
            constants.extend_from_slice(before);
            holes.push(Hole { constant_bytes: before.len(), value });
            here = member.place.end() - quotes;
        }
        constants.extend_from_slice(&text[here..]);
        let fits = holes.len() <= MAX_HOLES && constants.len() <= MAX_CONSTANT_BYTES && ids <= 1;
        fits.then_some(Self { constants: constants.into(), holes: holes.into(), plan })
    }

    /// Whether an event has the one shape if and only if it has the other.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.constants == other.constants && self.holes == other.holes
    }

    /// Reads the values of the event at the front of `text`, if it has this shape; gives its
    /// length. `guess` is the name it may have.
    pub(super) fn read(
        &self,
        text: &[u8],
        guess: Option<StringId>,
        strings: &Strings,
        found: &mut Found,
    ) -> Option<usize> {
        found.clear();
        let mut rest: &[u8] = &self.constants;
        let mut at = 0;
        for hole in &self.holes {
            let (constant, behind) = rest.split_at(hole.constant_bytes);
            if !begins_with(text.get(at..)?, constant) {
                return None;
            }
            rest = behind;
            at += constant.len();
            at = hole.value.read(text, at, guess, strings, found)?;
        }
        let is_whole = begins_with(text.get(at..)?, rest) && self.is_sound(found);
        is_whole.then_some(at + rest.len())
    }

    /// Values that the collector would have something to say about are left to it.
    fn is_sound(&self, found: &Found) -> bool {
        let Plan::Event(plan) = &self.plan else { return true };
        let end_ns = found.start_ns + found.duration_ns.unwrap_or(0);
        end_ns <= MAX_TIME_NS && (found.start_ns != 0 || !plan.kind.is_device_work())
    }
}

/// What a member of an event is to a shape.
enum Part {
    Constant,
    Hole(Value),
    Unusual,
}

fn hole(member: &Member, text: &[u8], plan: &Plan, keys: &Keys, wanted: &Wanted) -> Part {
    if matches!(plan, Plan::Statement { .. }) {
        return if !member.is_argument && member.key.of(text) == b"ts" {
            number(member.value, Value::Start)
        } else {
            Part::Constant
        };
    }
    if member.is_argument {
        return argument(member, text, plan, keys, wanted);
    }
    match (member.key.of(text), plan) {
        (b"ph" | b"cat" | b"pid" | b"tid" | b"bp" | b"s", _) => Part::Constant,
        (b"ts", _) => number(member.value, Value::Start),
        (b"dur", Plan::Event(EventPlan { phase: b'X', .. })) => {
            number(member.value, Value::Duration)
        }
        (b"dur" | b"args", _) => Part::Unusual,
        (b"id", Plan::Arrow { .. }) => integer(member.value, Value::ArrowId),
        (b"name", plan) if plan.fixes_name() => Part::Constant,
        (b"name", _) => match member.value {
            Token::Text(span) if span.is_plain() => Part::Hole(Value::Name),
            _ => Part::Unusual,
        },
        _ => any(member.value, None),
    }
}

fn argument(member: &Member, text: &[u8], plan: &Plan, keys: &Keys, wanted: &Wanted) -> Part {
    let Plan::Event(plan) = plan else { return any(member.value, None) };
    let Some(key) = keys.find(member.key.of(text)) else { return Part::Unusual };
    match key {
        CORRELATION => integer(member.value, Value::Correlation),
        EXTERNAL_ID | EXTERNAL_ID_LOWER => integer(member.value, Value::ExternalId),
        STREAM | DEVICE => match member.value {
            Token::Integer(_) | Token::Null => Part::Constant,
            Token::Text(span) if span.is_plain() => Part::Constant,
            _ => Part::Unusual,
        },
        _ if plan.kind == EventKind::CounterRange => Part::Unusual,
        key => any(member.value, key.row().filter(|&row| wanted.keeps(row))),
    }
}

fn number(token: Token, value: Value) -> Part {
    match token {
        Token::Integer(_) | Token::Number(_) => Part::Hole(value),
        _ => Part::Unusual,
    }
}

fn integer(token: Token, value: Value) -> Part {
    match token {
        Token::Integer(_) => Part::Hole(value),
        _ => Part::Unusual,
    }
}

/// A value of any kind, kept under `row` if that is given.
fn any(token: Token, row: Option<usize>) -> Part {
    match token {
        Token::Integer(_) | Token::Number(_) => Part::Hole(Value::Number(row)),
        Token::Text(span) if span.is_plain() => Part::Hole(Value::Text(row)),
        Token::Nested(_) => Part::Hole(Value::Nested(row)),
        Token::Null => Part::Constant,
        Token::True | Token::False if row.is_none() => Part::Constant,
        Token::Text(_) | Token::True | Token::False => Part::Unusual,
    }
}

impl Value {
    /// Reads the value at `at`; gives where it ends.
    #[inline]
    fn read(
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
            Self::Duration => {
                let (duration_ns, length) = plain_time(&text[at..])?;
                found.duration_ns = Some(duration_ns);
                Some(at + length)
            }
            Self::Correlation => {
                let (value, length) = plain_integer(&text[at..])?;
                found.correlation = Some(value);
                Some(at + length)
            }
            Self::ExternalId => {
                let (value, length) = plain_integer(&text[at..])?;
                found.external_id = Some(value);
                Some(at + length)
            }
            Self::ArrowId => {
                let (value, length) = plain_integer(&text[at..])?;
                found.arrow_id = Some(value);
                Some(at + length)
            }
            Self::Name => {
                let (name, end) = name(text, at, guess, strings)?;
                found.name = Some(name);
                Some(end)
            }
            Self::Number(row) => keep(row, any_number(text, at)?, found),
            Self::Text(row) => {
                let span = plain_text(text, at)?;
                keep(row, (Token::Text(span), span.end()), found)
            }
            Self::Nested(row) => keep(row, nested(text, at)?, found),
        }
    }
}

#[inline]
fn keep(row: Option<usize>, (token, end): (Token, usize), found: &mut Found) -> Option<usize> {
    if let Some(row) = row {
        found.arguments.push(Argument { row, token });
    }
    Some(end)
}

/// The name that was guessed, or any other plain text up to its quote.
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

/// The plain text at `at`, up to its quote.
#[inline]
fn plain_text(text: &[u8], at: usize) -> Option<Span> {
    let length = special(&text[at..])?;
    let is_plain = text[at + length] == b'"' && length <= MAX_TEXT_BYTES;
    is_plain.then(|| Span::new(at, at + length))
}

/// A number that needs no care: an integer, or digits around a point.
#[inline]
fn any_number(text: &[u8], at: usize) -> Option<(Token, usize)> {
    let negative = *text.get(at)? == b'-';
    let digits = at + usize::from(negative);
    let (value, count) = leading(&text[digits..])?;
    let is_plain = count == 1 || (count > 1 && text[digits] != b'0');
    let end = digits + count;
    match *text.get(end)? {
        b'.' if is_plain => {
            let (_, n_fraction) = leading(&text[end + 1..])?;
            // More digits than the arithmetic takes at once.
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

/// A list or an object in which nothing is wrong.
fn nested(text: &[u8], at: usize) -> Option<(Token, usize)> {
    let mut findings = Vec::new();
    let mut scanner = Scanner::new(text, at, &mut findings);
    let bracket = scanner.peek().ok()?;
    if !matches!(bracket, b'[' | b'{') {
        return None;
    }
    let token = scanner.value().ok()?;
    let end = scanner.at;
    findings.is_empty().then_some((token, end))
}

/// Whether `text` begins with `constant`, compared in words that overlap: short runs of bytes
/// are not worth a call.
#[inline]
fn begins_with(text: &[u8], constant: &[u8]) -> bool {
    let length = constant.len();
    let Some(text) = text.get(..length) else { return false };
    match length {
        16.. => {
            let whole = text.chunks_exact(16).zip(constant.chunks_exact(16));
            whole.into_iter().all(|(one, two)| same::<16>(one, two))
                && same::<16>(&text[length - 16..], &constant[length - 16..])
        }
        8.. => same::<8>(text, constant) && same::<8>(&text[length - 8..], &constant[length - 8..]),
        4.. => same::<4>(text, constant) && same::<4>(&text[length - 4..], &constant[length - 4..]),
        _ => text.iter().zip(constant).all(|(one, two)| one == two),
    }
}

#[inline]
fn same<const N: usize>(one: &[u8], two: &[u8]) -> bool {
    one.first_chunk::<N>() == two.first_chunk::<N>()
}
