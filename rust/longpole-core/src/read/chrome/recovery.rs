//! Finds the position at which reading continues after damage.
//!
//! No event is ever invented: an event that is kept is contiguous in the file, between other
//! elements of the list. Reading therefore continues only at a complete event that cannot be part
//! of the damaged one.

use super::event::EVENT_KEYS;
use super::stream::{EventStream, MAX_INDENT};
use crate::diagnostics::Code;
use crate::error::Result;
use crate::read::elements::Outcome;
use crate::read::header;
use crate::read::json::{is_whitespace, significant, starts_with_key};

/// Maximum effort of failed attempts to find the next event, as a multiple of the skipped bytes,
/// before attempts are skipped too.
const RESYNC_EFFORT: u64 = 32;
const RESYNC_ALLOWANCE: u64 = 16 << 20;

/// How far to look for the text after a closing bracket.
const LOOK_AHEAD: usize = 64 << 10;

/// Where reading can continue after damage.
pub(super) enum Found {
    Event,
    EndOfList,
    Nothing,
}

impl EventStream<'_> {
    /// Moves the window from a damaged element to the next whole event, or to the bracket that ends
    /// the list.
    pub(super) fn resync(&mut self) -> Result<Found> {
        let start = self.elements.window.offset();
        let mut before = Before::default();
        let mut spent = 0;
        before.take(self.text()[0]);
        self.elements.window.consume(1);
        loop {
            let text = self.text();
            let Some(at) = text.iter().position(|&byte| before.stops_at(byte)) else {
                let length = text.len();
                self.elements.window.consume(length);
                if !self.elements.more()? {
                    return Ok(Found::Nothing);
                }
                continue;
            };
            let bracket = text[at];
            self.elements.window.consume(at);
            if bracket == b']' && self.is_end_of_list()? {
                return Ok(Found::EndOfList);
            }
            if bracket == b'{' && before.allows_event(&self.indent) {
                match self.attempt_candidate()? {
                    Outcome::Whole((), _) => return Ok(Found::Event),
                    Outcome::Fault(_, cost) => spent += cost as u64,
                    Outcome::TooLarge | Outcome::Cut => spent += self.text().len() as u64,
                }
            }
            let skipped = self.elements.window.offset() - start;
            let affordable = skipped * RESYNC_EFFORT + RESYNC_ALLOWANCE;
            if spent > affordable {
                // The file may be crafted to be slow to read, so the search continues in the next
                // window.
                let length = self.text().len();
                self.elements.window.consume(length.min(1 << 16));
                before = Before::default();
                continue;
            }
            before.take(bracket);
            self.elements.window.consume(1);
        }
    }

    /// Whether a whole event with a phase is at the front of the window.
    fn attempt_candidate(&mut self) -> Result<Outcome<()>> {
        if !self.looks_like(starts_with_event, false)? {
            return Ok(Outcome::Fault(Code::MalformedEvent, 1));
        }
        let outcome = self.attempt_event()?;
        self.elements.findings.clear();
        match outcome {
            Outcome::Whole((), end) if !self.scanner.draft.has_phase => {
                Ok(Outcome::Fault(Code::MalformedEvent, end))
            }
            outcome => Ok(outcome),
        }
    }

    /// Whether the `]` at the front of the window ends the list: it is followed by a header field,
    /// or by the end of the object and the file.
    fn is_end_of_list(&mut self) -> Result<bool> {
        let ends = |text: &[u8]| match significant(&text[1..]) {
            [] => None,
            [b'}', rest @ ..] if significant(rest).is_empty() => None,
            [b',', rest @ ..] => header::starts_with_field(significant(rest)),
            _ => Some(false),
        };
        self.looks_like(ends, true)
    }

    /// Whether the `}` at the front of the window ends the file.
    pub(super) fn is_end_of_object(&mut self) -> Result<bool> {
        let ends = |text: &[u8]| (!significant(&text[1..]).is_empty()).then_some(false);
        self.looks_like(ends, true)
    }

    /// Whether the bracket at the front of the window does not end the list: it is followed by
    /// another event, or by the inside of one. A key after a comma is a header field.
    pub(super) fn is_stray_bracket(&mut self) -> Result<bool> {
        let next_is_event = |text: &[u8]| {
            let rest = significant(&text[1..]);
            let behind_comma = rest.strip_prefix(b",").map(significant);
            match (behind_comma, behind_comma.unwrap_or(rest)) {
                (_, [b'{', rest @ ..]) => starts_with_key(rest, EVENT_KEYS),
                (Some([_, ..]), _) => Some(false),
                (_, rest) => starts_with_key(rest, EVENT_KEYS),
            }
        };
        self.looks_like(next_is_event, false)
    }

    /// Skips a bracket that does not end the list.
    pub(super) fn skip_bracket(&mut self) -> Result<()> {
        self.elements.note_skipped(Code::MalformedEvent, self.elements.window.offset(), 1)?;
        self.elements.window.consume(1);
        Ok(())
    }

    /// Applies `test` to longer and longer windows until it decides. If the file ends first, the
    /// result is `at_end`, unless the text contradicts it.
    fn looks_like(&mut self, test: impl Fn(&[u8]) -> Option<bool>, at_end: bool) -> Result<bool> {
        loop {
            match test(self.text()) {
                Some(known) => return Ok(known),
                None if self.text().len() > LOOK_AHEAD => return Ok(false),
                None if self.elements.more()? => {}
                None => return Ok(at_end),
            }
        }
    }

    /// Skips damage in the header up to the next known field.
    pub(super) fn skip_to_field(&mut self, code: Code) -> Result<bool> {
        let start = self.elements.window.offset();
        self.elements.window.consume(1);
        let found = loop {
            let text = self.text();
            let quote = text.iter().position(|&byte| byte == b'"');
            self.elements.window.consume(quote.unwrap_or(text.len()));
            if quote.is_none() {
                if self.elements.more()? {
                    continue;
                }
                break false;
            }
            if self.looks_like(header::starts_with_field, true)? {
                // A file that ends in the middle of a name has no field here.
                break header::starts_with_field(self.text()) == Some(true);
            }
            self.elements.window.consume(1);
        };
        self.elements.note_skipped(code, start, self.elements.window.offset() - start)?;
        Ok(found)
    }
}

/// The text before a possible start of an event.
#[derive(Default)]
struct Before {
    /// The last two bytes that are not white space.
    last: [u8; 2],
    /// The white space after them.
    blank: Vec<u8>,
}

impl Before {
    /// Processes a byte. Returns true if it is a bracket to examine.
    fn stops_at(&mut self, byte: u8) -> bool {
        if matches!(byte, b'{' | b']') {
            return true;
        }
        self.take(byte);
        false
    }

    fn take(&mut self, byte: u8) {
        if is_whitespace(byte) {
            if self.blank.len() <= MAX_INDENT {
                self.blank.push(byte);
            }
        } else {
            self.blank.clear();
            if byte != 0 {
                self.last = [self.last[1], byte];
            }
        }
    }

    /// Whether an object that begins here may be an element of the list instead of part of the
    /// damaged one: it is not the value of a key or the first element of a list and, if it follows
    /// a comma, it follows an object and has the indent of events.
    fn allows_event(&self, indent: &[u8]) -> bool {
        match self.last {
            [_, b':' | b'['] => false,
            [before, b','] => {
                matches!(before, b'}' | b',' | 0)
                    && (!indent.contains(&b'\n') || self.blank == indent)
            }
            _ => true,
        }
    }
}

/// Whether `text` begins with an object whose first key is an event key; `None` if it is too short
/// to decide.
fn starts_with_event(text: &[u8]) -> Option<bool> {
    text.split_first().and_then(|(_, inside)| starts_with_key(inside, EVENT_KEYS))
}
