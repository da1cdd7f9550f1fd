//! The shape of an event: its text with holes for values, and its plan.

use super::value::{Found, Value, begins_with};
use crate::ids::{LaneId, StringId};
use crate::read::chrome::arguments::{
    CONNECTION_ID, CORR_ID, CORRELATION, DEVICE, EXTERNAL_ID, EXTERNAL_ID_LOWER, QUEUE_ID, STREAM,
    Wanted,
};
use crate::read::json::{Keys, Scan, Scanner, Span, Token};
use crate::strings::Strings;
use crate::tables::{ArgValue, EventKind};
use crate::time::MAX_TIME_NS;

/// Events with more values, or more text between them, are left to the scanner.
const MAX_HOLES: usize = 64;

const MAX_CONSTANT_BYTES: usize = 4096;

/// The text of one event with holes.
pub(super) struct Shape {
    /// The values, each with the constant text before it.
    holes: Box<[Hole]>,
    /// The constant text after the last value.
    tail: Box<[u8]>,
    pub(super) plan: Plan,
}

/// A value, and the constant text before it.
#[derive(Debug, PartialEq, Eq)]
struct Hole {
    constant: Box<[u8]>,
    value: Value,
}

/// What to do with an event of a shape, apart from the values in its holes.
pub(in crate::read::chrome) enum Plan {
    Event(EventPlan),
    Arrow {
        phase: u8,
        source: u32,
    },
    /// A metadata statement that was already made, with the same text.
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
    /// Arguments in the constant text, after all others.
    pub(in crate::read::chrome) fixed: Vec<(usize, ArgValue)>,
}

impl Plan {
    /// Whether the name is in the constant text.
    fn fixes_name(&self) -> bool {
        match self {
            Self::Event(plan) => plan.name.is_some(),
            Self::Arrow { .. } | Self::Statement { .. } => true,
        }
    }
}

impl Shape {
    /// Returns the shape of the event in `text`, which had no findings and for which the collector
    /// made `plan`.
    pub(super) fn new(text: &[u8], plan: Plan, keys: &Keys, wanted: &Wanted) -> Option<Self> {
        let mut holes: Vec<Hole> = Vec::new();
        let mut n_constant = text.len();
        let (mut here, mut ids) = (0, 0);
        for member in outline(text)? {
            let value = match hole(&member, text, &plan, keys, wanted) {
                Part::Constant => continue,
                Part::Hole(value) => value,
                Part::Unusual => return None,
            };
            ids += usize::from(value == Value::ExternalId);
            // The quotes belong to the constant text.
            let quotes = usize::from(value.is_quoted());
            let place = member.place.start() + quotes..member.place.end() - quotes;
            holes.push(Hole { constant: text[here..place.start].into(), value });
            here = place.end;
            n_constant -= place.len();
        }
        let fits = holes.len() <= MAX_HOLES && n_constant <= MAX_CONSTANT_BYTES && ids <= 1;
        fits.then_some(Self { holes: holes.into(), tail: text[here..].into(), plan })
    }

    /// Whether two shapes match the same events.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.holes == other.holes && self.tail == other.tail
    }

    /// Reads the values of the event at the front of `text`, if it has this shape. Returns its
    /// length. `guess` is its likely name.
    pub(super) fn read(
        &self,
        text: &[u8],
        guess: Option<StringId>,
        strings: &Strings,
        found: &mut Found,
    ) -> Option<usize> {
        found.clear();
        let mut at = 0;
        for hole in &self.holes {
            if !begins_with(text.get(at..)?, &hole.constant) {
                return None;
            }
            at += hole.constant.len();
            at = hole.value.read(text, at, guess, strings, found)?;
        }
        let is_whole = begins_with(text.get(at..)?, &self.tail) && self.is_sound(found);
        is_whole.then_some(at + self.tail.len())
    }

    /// Whether the collector would have no findings for these values.
    fn is_sound(&self, found: &Found) -> bool {
        let Plan::Event(plan) = &self.plan else { return true };
        let end_ns = found.start_ns + found.duration_ns.unwrap_or(0);
        end_ns <= MAX_TIME_NS && (found.start_ns != 0 || !plan.kind.is_device_work())
    }
}

/// The role of an event member in a shape.
enum Part {
    Constant,
    Hole(Value),
    Unusual,
}

fn hole(member: &Member, text: &[u8], plan: &Plan, keys: &Keys, wanted: &Wanted) -> Part {
    if matches!(plan, Plan::Statement { .. }) {
        return if !member.is_argument && member.key.of(text) == b"ts" {
            time(member.value, Value::Start, Value::QuotedStart)
        } else {
            Part::Constant
        };
    }
    if member.is_argument {
        return argument(member, text, plan, keys, wanted);
    }
    match (member.key.of(text), plan) {
        (b"ph" | b"cat" | b"pid" | b"tid" | b"bp" | b"s", _) => Part::Constant,
        (b"ts", _) => time(member.value, Value::Start, Value::QuotedStart),
        (b"dur", Plan::Event(EventPlan { phase: b'X', .. })) => {
            time(member.value, Value::Duration, Value::QuotedDuration)
        }
        (b"dur" | b"args", _) => Part::Unusual,
        (b"id", Plan::Arrow { .. }) => id(member, text, Value::ArrowId, Value::QuotedArrowId),
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
        CORRELATION | CONNECTION_ID | QUEUE_ID | CORR_ID => {
            id(member, text, Value::Correlation, Value::QuotedCorrelation)
        }
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

/// Returns a time as a number or a quoted string.
fn time(token: Token, plain: Value, quoted: Value) -> Part {
    match token {
        Token::Integer(_) | Token::Number(_) => Part::Hole(plain),
        Token::Text(span) if span.is_plain() => Part::Hole(quoted),
        _ => Part::Unusual,
    }
}

/// Returns a number that some writers quote.
fn id(member: &Member, text: &[u8], plain: Value, quoted: Value) -> Part {
    match member.value {
        Token::Text(span) if is_digits(span.of(text)) => Part::Hole(quoted),
        value => integer(value, plain),
    }
}

fn is_digits(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(u8::is_ascii_digit)
}

fn integer(token: Token, value: Value) -> Part {
    match token {
        Token::Integer(_) => Part::Hole(value),
        _ => Part::Unusual,
    }
}

/// Returns a value of any type, kept under `row` if given.
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

// The members of one event: position and type of each value.

/// A value of an event.
pub(super) struct Member {
    /// Its key, as written.
    pub(super) key: Span,
    /// Whether it is an argument.
    pub(super) is_argument: bool,
    pub(super) value: Token,
    /// Its span, including quotes and brackets.
    pub(super) place: Span,
}

/// Returns the members of the event in `text`, in order; `None` if anything about it is unusual.
pub(super) fn outline(text: &[u8]) -> Option<Vec<Member>> {
    let mut findings = Vec::new();
    let mut members = Vec::new();
    let mut scanner = Scanner::new(text, 0, &mut findings);
    object(&mut scanner, false, &mut members).ok()?;
    let is_whole = scanner.at == text.len();
    (is_whole && findings.is_empty() && !has_repeated_key(&members, text)).then_some(members)
}

fn object(scanner: &mut Scanner<'_>, is_argument: bool, members: &mut Vec<Member>) -> Scan<()> {
    scanner.expect(b'{')?;
    if scanner.peek_significant()? == b'}' {
        return scanner.expect(b'}');
    }
    loop {
        scanner.peek_significant()?;
        let key = scanner.quoted()?;
        scanner.expect(b':')?;
        let byte = scanner.peek_significant()?;
        if !is_argument && byte == b'{' && key.of(scanner.text) == b"args" {
            object(scanner, true, members)?;
        } else {
            let start = scanner.at;
            let value = scanner.value()?;
            members.push(Member { key, is_argument, value, place: Span::new(start, scanner.at) });
        }
        if scanner.peek_significant()? == b'}' {
            return scanner.expect(b'}');
        }
        scanner.expect(b',')?;
    }
}

/// Whether a key occurs twice. The last one would count, which shapes cannot represent.
fn has_repeated_key(members: &[Member], text: &[u8]) -> bool {
    let name = |member: &Member| (member.is_argument, member.key);
    members.iter().enumerate().any(|(row, member)| {
        let (is_argument, key) = name(member);
        !key.is_plain()
            || members[..row].iter().map(name).any(|(other_is_argument, other)| {
                other_is_argument == is_argument && other.of(text) == key.of(text)
            })
    })
}

#[cfg(test)]
mod tests {
    use super::super::value::Name;
    use super::*;
    use crate::read::Arguments;

    const EVENT: &str = r#"{"ph": "X", "cat": "c", "name": "a", "ts": 5.5, "dur": 2, "args": {"External id": 7, "cbid": 3.25}}"#;

    fn read(text: &str) -> Option<(usize, Found)> {
        let (keys, wanted) = Arguments::Default.keys();
        let plan = EventPlan {
            phase: b'X',
            kind: EventKind::Kernel,
            category: None,
            name: None,
            lane: LaneId::from_row(0),
            fixed: Vec::new(),
        };
        let shape = Shape::new(EVENT.as_bytes(), Plan::Event(plan), &keys, &wanted).unwrap();
        let mut found = Found::default();
        let length = shape.read(text.as_bytes(), None, &Strings::default(), &mut found)?;
        Some((length, found))
    }

    #[test]
    fn other_values_are_read_out_of_the_same_text() {
        let text = EVENT.replace("5.5", "1712195495506752.812").replace("\"a\"", "\"gemm\"");
        let (length, found) = read(&format!("{text}, rest")).unwrap();
        assert_eq!((length, found.start_ns), (text.len(), 1_712_195_495_506_752_812));
        assert_eq!((found.duration_ns, found.external_id), (Some(2_000), Some(7)));
        let Some(Name::At(span)) = found.name else { panic!("no name") };
        assert_eq!(span.of(text.as_bytes()), b"gemm");
        let Token::Number(span) = found.arguments[0].token else { panic!("no number") };
        assert_eq!(span.of(text.as_bytes()), b"3.25");
    }

    #[test]
    fn a_correlation_id_in_quotes_is_read_and_other_text_there_is_left_to_the_scanner() {
        let (keys, wanted) = Arguments::Default.keys();
        let event = r#"{"ph": "X", "ts": 5, "dur": 2, "args": {"correlation_id": "12"}}"#;
        let plan = EventPlan {
            phase: b'X',
            kind: EventKind::Other,
            category: None,
            name: None,
            lane: LaneId::from_row(0),
            fixed: Vec::new(),
        };
        let shape = Shape::new(event.as_bytes(), Plan::Event(plan), &keys, &wanted).unwrap();
        let correlation = |id: &str| {
            let (text, mut found) = (event.replace("12", id), Found::default());
            shape.read(text.as_bytes(), None, &Strings::default(), &mut found)?;
            found.correlation
        };
        assert_eq!(correlation("3456789"), Some(3_456_789));
        for other in ["", "-1", "0x1f", "1.5", "12345678901234567890", "1 "] {
            assert_eq!(correlation(other), None, "{other}");
        }
    }

    #[test]
    fn whatever_needs_care_is_left_to_the_scanner() {
        for (from, to) in [
            ("5.5", "05.5"),
            ("5.5", "-5.5"),
            ("5.5", "0"),
            ("5.5", "1e3"),
            ("5.5", "9999999999999999.9"),
            ("2,", "4611686018427387,"),
            ("7,", "\"7\","),
            ("7,", "12345678901234567,"),
            ("3.25", "3."),
            ("3.25", "3.25e1"),
            ("3.25", "nan"),
            ("\"a\"", "\"a\\n\""),
            ("\"a\"", "\"\u{e9}\""),
            ("\"a\"", "\"a\"b\""),
            ("\"dur\"", "\"dut\""),
            ("}}", "} }"),
        ] {
            let text = EVENT.replacen(from, to, 1) + ",";
            assert!(read(&text).is_none(), "{text}");
        }
        for end in 0..EVENT.len() {
            assert!(read(&EVENT[..end]).is_none(), "{end}");
        }
    }
}
