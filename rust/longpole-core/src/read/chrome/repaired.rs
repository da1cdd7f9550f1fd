//! Writes the events that a reader keeps as valid JSON (RFC 8259).
//!
//! Every event that becomes a row is copied, and problems in its text are written as they were
//! read: invalid UTF-8 is replaced, and words that are not numbers become null. Skipped events are
//! left out, and header fields are written after the events.

use std::io::Write;

use super::event::Findings;
use crate::diagnostics::Code;
use crate::error::Result;
use crate::read::json::{Scanner, is_number, is_whitespace};
use crate::read::source::io_error;
use crate::strings::{SpellingFaults, spelled_text, spelling_faults};

/// A valid document under construction.
pub(in crate::read) struct Repaired<'a> {
    out: &'a mut dyn Write,
    rank: Option<u64>,
    as_object: bool,
    is_list: bool,
    n_written: u64,
}

impl<'a> Repaired<'a> {
    /// Creates a document. The rank is written if the header has none. With `as_object`, a list is
    /// written as an object.
    pub(in crate::read) fn new(out: &'a mut dyn Write, rank: Option<u64>, as_object: bool) -> Self {
        Self { out, rank, as_object, is_list: false, n_written: 0 }
    }

    /// Begins the document, as a bare list of events or as an object. A list has no rank.
    pub(super) fn begin(&mut self, is_list: bool) -> Result<()> {
        self.is_list = is_list && self.rank.is_none() && !self.as_object;
        self.write(if self.is_list { b"[" } else { b"{\"traceEvents\": [" })
    }

    /// Writes the text of an event that became rows; `said` are its findings.
    pub(super) fn event(&mut self, text: &[u8], said: &Findings) -> Result<()> {
        let has_bad_duration = said.iter().any(|(code, _)| *code == Code::BadDuration);
        let mut sound = if self.n_written == 0 { b"\n".to_vec() } else { b",\n".to_vec() };
        push_sound(&mut sound, text, has_bad_duration);
        self.n_written += 1;
        self.write(&sound)
    }

    /// Ends the document with its header fields, which must be valid JSON. Returns the number of
    /// events, or `None` if the document is a list, which has no place for the fields.
    pub(super) fn finish(mut self, fields: &[(String, String)]) -> Result<Option<u64>> {
        self.write(b"\n]")?;
        if self.is_list {
            self.write(b"\n")?;
            return Ok(fields.is_empty().then_some(self.n_written));
        }
        for (name, value) in fields {
            let mut field = b",\n".to_vec();
            push_text(&mut field, name);
            field.extend(b": ");
            field.extend(value.as_bytes());
            self.write(&field)?;
        }
        if let Some(rank) = self.rank.filter(|_| !names_rank(fields)) {
            self.write(format!(",\n\"distributedInfo\": {{\"rank\": {rank}}}").as_bytes())?;
        }
        self.write(b"}\n")?;
        Ok(Some(self.n_written))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.out.write_all(bytes).map_err(|error| io_error(&error, 0))
    }
}

/// Returns the value of a field as valid JSON; valid text stays the same.
pub(in crate::read) fn sound_value(text: &str) -> String {
    let mut sound = Vec::with_capacity(text.len());
    push_sound(&mut sound, text.as_bytes(), false);
    String::from_utf8_lossy(&sound).into_owned()
}

/// Whether the fields contain a rank. A second field of that name would hide the first.
fn names_rank(fields: &[(String, String)]) -> bool {
    fields.iter().any(|(name, _)| name == "distributedInfo")
}

/// Appends a value in the form in which the scanner accepted it. Arguments that are lists are kept
/// as written. With `is_without_duration`, the duration of an event is left out.
fn push_sound(sound: &mut Vec<u8>, text: &[u8], is_without_duration: bool) {
    let (mut at, mut depth, mut last, mut comma) = (0, 0_usize, 0, 0);
    while let Some(&byte) = text.get(at) {
        if is_whitespace(byte) {
            sound.push(byte);
            at += 1;
            continue;
        }
        let begins = matches!(last, b',' | b'{' | b'[');
        if is_without_duration && depth == 1 && begins && text[at..].starts_with(b"\"dur\"") {
            at = end_of_member(text, at);
            continue;
        }
        match byte {
            b',' if begins => {
                at += 1;
                continue;
            }
            b',' => comma = sound.len(),
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if last == b',' {
                    sound.remove(comma);
                }
            }
            _ => {}
        }
        last = byte;
        at = push_token(sound, text, at);
    }
}

/// Appends a bracket, a colon, a string or a word. Returns where it ends.
fn push_token(sound: &mut Vec<u8>, text: &[u8], at: usize) -> usize {
    match text[at] {
        b'"' => push_quoted(sound, text, at + 1),
        byte @ (b'{' | b'}' | b'[' | b']' | b':' | b',') => {
            sound.push(byte);
            at + 1
        }
        _ => push_word(sound, text, at),
    }
}

fn push_quoted(sound: &mut Vec<u8>, text: &[u8], start: usize) -> usize {
    let mut end = start;
    while text.get(end).is_some_and(|&byte| byte != b'"') {
        end += if text[end] == b'\\' { 2 } else { 1 };
    }
    let end = end.min(text.len());
    let raw = &text[start..end];
    if spelling_faults(raw) == SpellingFaults::default() {
        sound.push(b'"');
        sound.extend(raw);
        sound.push(b'"');
    } else {
        push_text(sound, &spelled_text(raw));
    }
    end + 1
}

fn push_text(sound: &mut Vec<u8>, text: &str) {
    sound.extend(serde_json::Value::from(text).to_string().as_bytes());
}

fn push_word(sound: &mut Vec<u8>, text: &[u8], at: usize) -> usize {
    let is_over = |byte: &u8| is_whitespace(*byte) || b",:{}[]\"".contains(byte);
    let length = text[at..].iter().position(is_over).unwrap_or(text.len() - at);
    let word = &text[at..at + length];
    let is_sound = is_number(word) || matches!(word, b"true" | b"false" | b"null");
    sound.extend(if is_sound { word } else { b"null" });
    at + length
}

/// Returns the end of the object member that begins here.
fn end_of_member(text: &[u8], at: usize) -> usize {
    let mut findings = Vec::new();
    let mut scanner = Scanner::new(text, at, &mut findings);
    let member = scanner.quoted().and_then(|_| scanner.expect(b':'));
    let is_whole = member.and_then(|()| scanner.value()).is_ok();
    if is_whole { scanner.at } else { text.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sound(text: &[u8], is_without_duration: bool) -> String {
        let mut sound = Vec::new();
        push_sound(&mut sound, text, is_without_duration);
        String::from_utf8(sound).unwrap()
    }

    #[test]
    fn what_is_sound_stays_and_what_is_not_is_as_it_was_read() {
        let text =
            br#"{"a": "x\n\"", "b": [1, -2.5e3, true, null,],  "c": NaN, "d": "\q", "e": {},}"#;
        assert_eq!(
            sound(text, false),
            r#"{"a": "x\n\"", "b": [1, -2.5e3, true, null],  "c": null, "d": "\\q", "e": {}}"#
        );
        assert_eq!(sound(b"[\"\xff\", \"a\tb\", 007]", false), "[\"\u{fffd}\", \"a\\tb\", null]");
    }

    #[test]
    fn a_bad_duration_is_left_out_wherever_it_stands() {
        for text in
            [&br#"{"dur": nan, "a": {"dur": 1}}"#[..], br#"{"a": {"dur": 1}, "dur": [1, "}"]}"#]
        {
            assert_eq!(sound(text, true).replace(' ', ""), r#"{"a":{"dur":1}}"#);
        }
        assert_eq!(sound(br#"{"a": "dur", "dur": x, "b": 1}"#, true), r#"{"a": "dur",  "b": 1}"#);
    }
}
