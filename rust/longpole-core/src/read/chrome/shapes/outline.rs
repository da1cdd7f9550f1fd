//! The members of one event: position and type of each value.

use crate::read::json::{Scan, Scanner, Span, Token};

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
