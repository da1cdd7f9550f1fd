//! The frame of the document: header fields and the list of events, with what
//! there is to do when it is damaged.
//!
//! Nothing is made up: an event that is kept stands in the file in one piece,
//! between other elements of the list. After damage, reading goes on at the next
//! place that is an event as a whole and cannot be a part of the damaged one.

use std::sync::Arc;

use super::collect::{Collector, Whereabouts};
use super::event::{EventScanner, EVENT_KEYS};
use super::header;
use super::scan::{is_whitespace, Scan, Scanner, Span, Stop, Token};
use super::sniff;
use super::source::{Window, MAX_ELEMENT_BYTES};
use super::Options;
use crate::diagnostics::{Code, Diagnostics};
use crate::error::{Error, ErrorKind, Result};
use crate::progress::{report, Progress};
use crate::tables::Tables;

/// Header fields above this are skipped: they are facts, not data.
const MAX_FIELD_BYTES: usize = 1 << 20;

/// Failed attempts to find the next event may cost this many times the bytes
/// that are skipped, and a little more, before whole attempts are skipped too.
const RESYNC_EFFORT: u64 = 32;
const RESYNC_ALLOWANCE: u64 = 16 << 20;

/// Reads a document into tables.
pub(super) fn read(
    window: Window<'_>,
    options: &Options,
    progress: Progress<'_>,
) -> Result<Tables> {
    let mut document = Document {
        window,
        options,
        progress,
        scanner: EventScanner::new(options.arguments.keys()),
        collector: Collector::default(),
        diagnostics: Diagnostics::default(),
        findings: Vec::new(),
        said: Vec::new(),
        fields: Vec::new(),
        position: 0,
        n_lists: 0,
        indent: Vec::new(),
    };
    let end = document.whole()?;
    document.finish(end)
}

struct Document<'a> {
    window: Window<'a>,
    options: &'a Options,
    progress: Progress<'a>,
    scanner: EventScanner,
    collector: Collector,
    diagnostics: Diagnostics,
    /// What the scanner noted in the element at hand, by place in the window.
    findings: Vec<(Code, usize)>,
    /// What the collector said of it, by byte of the file.
    said: Vec<(Code, u64)>,
    fields: Vec<(String, String)>,
    position: u32,
    n_lists: usize,
    /// The white space before the last event, as far as it holds a line break.
    indent: Vec<u8>,
}

/// How a part of the document came to its end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// With its bracket.
    Closed,
    /// With the file.
    Cut,
    /// At the limit of events.
    Limit,
}

/// What became of an element.
enum Outcome<T> {
    /// It is whole, and ends at this place of the window.
    Whole(T, usize),
    /// It is damaged at this place of the window.
    Fault(Code, usize),
    /// It is longer than an element may be.
    TooLarge,
    /// The file ends inside it.
    Cut,
}

/// Where reading can go on after damage.
enum Found {
    Event,
    EndOfList,
    Nothing,
}

impl Document<'_> {
    fn whole(&mut self) -> Result<End> {
        let first = self.first_byte()?;
        self.window.consume(1);
        let end = if first == b'[' { self.list(true)? } else { self.object()? };
        if end == End::Closed && self.next_significant()?.is_some() {
            let offset = self.window.offset();
            self.note(Code::TextAfterEnd, offset)?;
            self.drain()?;
        }
        if end == End::Closed && self.window.compression_fault().is_none() {
            self.drain()?;
        }
        Ok(end)
    }

    /// The bracket that opens the document, or the error that says what the file
    /// is instead.
    fn first_byte(&mut self) -> Result<u8> {
        while self.window.text().len() < 512 && self.more()? {}
        if self.window.text().is_empty() {
            if let Some(fault) = self.window.compression_fault() {
                return Err(Error::new(ErrorKind::Compression(fault), 0));
            }
        }
        let compressed = self.window.compression().is_some();
        if let text @ ([b'{' | b'[' | 0, b'{' | b'[' | 0, ..] | [0xfe | 0xff, ..]) =
            self.window.text()
        {
            if text[..2].contains(&0) || text[0] >= 0xfe {
                return Err(sniff::other_kind(text, compressed));
            }
        }
        if self.window.text().starts_with(b"\xef\xbb\xbf") {
            self.window.consume(3);
            self.note(Code::ByteOrderMark, 0)?;
        }
        match self.next_significant()? {
            Some(byte @ (b'{' | b'[')) => Ok(byte),
            Some(_) => Err(sniff::other_kind(self.window.text(), compressed)),
            None => Err(Error::new(ErrorKind::Empty, 0)),
        }
    }

    /// The members of the outermost object.
    fn object(&mut self) -> Result<End> {
        let mut after_value = false;
        loop {
            let Some(byte) = self.next_significant()? else { return self.cut() };
            match byte {
                b'}' => {
                    self.window.consume(1);
                    return Ok(End::Closed);
                }
                b',' => {
                    if !after_value {
                        self.note_here(Code::ExtraComma)?;
                    }
                    after_value = false;
                    self.window.consume(1);
                    if self.next_significant()? == Some(b'}') {
                        self.note_here(Code::TrailingComma)?;
                    }
                }
                b'"' => {
                    if after_value {
                        self.note_here(Code::MissingComma)?;
                    }
                    match self.member()? {
                        Some(End::Closed) => after_value = true,
                        Some(end) => return Ok(end),
                        // Damage was skipped: the next byte begins a member.
                        None => after_value = false,
                    }
                }
                _ => {
                    if !self.skip_to_field(Code::MalformedHeader)? {
                        return Ok(End::Cut);
                    }
                    after_value = false;
                }
            }
        }
    }

    /// One member of the outermost object; none where damage was skipped.
    fn member(&mut self) -> Result<Option<End>> {
        let key = self.attempt(|scanner| {
            let key = scanner.quoted()?;
            scanner.expect(b':')?;
            Ok(key)
        })?;
        let name = match key {
            Outcome::Whole(span, end) => {
                let name = String::from_utf8_lossy(span.of(self.window.text())).into_owned();
                self.accept(end)?;
                name
            }
            Outcome::Cut => return self.cut().map(Some),
            Outcome::Fault(..) | Outcome::TooLarge => {
                return self.skip_field(Code::MalformedHeader)
            }
        };
        if name == "traceEvents" {
            return self.trace_events().map(Some);
        }
        if name == "nodes" && self.n_lists == 0 {
            self.fields.push((name, String::new()));
            let error = sniff::without_events(&self.fields, self.window.offset());
            if matches!(error.kind(), ErrorKind::OtherKind { .. }) {
                return Err(error);
            }
            return self.field(None);
        }
        self.field(Some(name))
    }

    /// The value of a header field.
    fn field(&mut self, name: Option<String>) -> Result<Option<End>> {
        let value = self.attempt(|scanner| {
            scanner.peek_significant()?;
            let start = scanner.at;
            scanner.value()?;
            Ok(Span::new(start, scanner.at))
        })?;
        match value {
            Outcome::Whole(span, end) => {
                let text = span.of(self.window.text());
                let fits = text.len() <= MAX_FIELD_BYTES;
                if let Some(name) = name.filter(|_| fits) {
                    self.fields.push((name, String::from_utf8_lossy(text).into_owned()));
                }
                self.accept(end)?;
                if !fits {
                    self.note_here(Code::HeaderTooLarge)?;
                }
                Ok(Some(End::Closed))
            }
            Outcome::Cut => self.cut().map(Some),
            Outcome::Fault(..) => self.skip_field(Code::MalformedHeader),
            Outcome::TooLarge => self.skip_field(Code::HeaderTooLarge),
        }
    }

    fn trace_events(&mut self) -> Result<End> {
        match self.next_significant()? {
            Some(b'[') => {
                if self.n_lists > 0 {
                    self.note_here(Code::RepeatedEvents)?;
                }
                self.window.consume(1);
                self.list(false)
            }
            Some(_) => Err(Error::new(ErrorKind::EventsNotAnArray, self.window.offset())),
            None => self.cut(),
        }
    }

    /// The elements of the list of events, behind its bracket.
    fn list(&mut self, outermost: bool) -> Result<End> {
        self.n_lists += 1;
        let (mut after_value, mut after_comma) = (false, None);
        loop {
            let Some(byte) = self.next_separated()? else {
                let code = if after_value { Code::MissingEnd } else { Code::Truncated };
                return self.cut_as(code);
            };
            match byte {
                b',' => {
                    if !after_value {
                        self.note_here(Code::ExtraComma)?;
                    }
                    (after_value, after_comma) = (false, Some(self.window.offset()));
                    self.window.consume(1);
                    continue;
                }
                b']' => {
                    if let Some(offset) = after_comma.filter(|_| !after_value) {
                        self.note(Code::TrailingComma, offset)?;
                    }
                    self.window.consume(1);
                    return Ok(End::Closed);
                }
                b'}' if !outermost && self.is_end_of_object()? => {
                    self.note_here(Code::MissingEnd)?;
                    return Ok(End::Closed);
                }
                b'{' if after_value => self.note_here(Code::MissingComma)?,
                b'[' if outermost && self.position == 0 => {
                    return Err(sniff::array_of_arrays(self.window.offset()));
                }
                _ => {}
            }
            match self.element(byte == b'{')? {
                Some(End::Closed) => after_value = true,
                Some(end) => return Ok(end),
                // Damage was skipped: the next byte begins an event or ends the list.
                None => (after_value, after_comma) = (false, None),
            }
            if self.options.max_events.is_some_and(|limit| self.collector.n_events() >= limit) {
                self.note_here(Code::LimitReached)?;
                return Ok(End::Limit);
            }
        }
    }

    /// One element of the list; none where damage was skipped.
    fn element(&mut self, is_object: bool) -> Result<Option<End>> {
        let offset = self.window.offset();
        let outcome = if is_object { self.attempt_event()? } else { self.attempt_other()? };
        let here = Whereabouts { offset, position: self.position };
        match outcome {
            Outcome::Whole((), end) => {
                if is_object {
                    self.collector.add(&self.scanner, self.window.text(), here, &mut self.said);
                } else {
                    self.said.push((Code::NotAnEvent, offset));
                }
                self.accept(end)?;
                self.next_position();
                Ok(Some(End::Closed))
            }
            Outcome::Cut => self.cut().map(Some),
            Outcome::Fault(code, _) => self.skip_element(code),
            Outcome::TooLarge => self.skip_element(Code::EventTooLarge),
        }
    }

    /// Another element than 2^32 would not fit the tables; the last number is shared.
    fn next_position(&mut self) {
        self.position = self.position.saturating_add(1);
    }

    /// Tries to read an event at the front of the window.
    fn attempt_event(&mut self) -> Result<Outcome<()>> {
        loop {
            self.findings.clear();
            let mut scanner = Scanner::new(self.window.text(), 0, &mut self.findings);
            match self.scanner.scan(&mut scanner) {
                Ok(()) if scanner.at > MAX_ELEMENT_BYTES => return Ok(Outcome::TooLarge),
                Ok(()) => return Ok(Outcome::Whole((), scanner.at)),
                Err(Stop::Fault) => return Ok(Outcome::Fault(scanner.fault.0, scanner.fault.1)),
                Err(Stop::NeedMore) if self.window.text().len() > MAX_ELEMENT_BYTES => {
                    return Ok(Outcome::TooLarge)
                }
                Err(Stop::NeedMore) => {}
            }
            if !self.more()? {
                return Ok(Outcome::Cut);
            }
        }
    }

    /// Tries to read an element of the list that is no object. Words that JSON
    /// does not know are not elements but text that was written in between.
    fn attempt_other(&mut self) -> Result<Outcome<()>> {
        self.attempt(|scanner| match scanner.value()? {
            Token::Null if !scanner.findings.is_empty() => scanner.stop(Code::MalformedEvent),
            _ => Ok(()),
        })
    }

    /// Tries to read something at the front of the window.
    fn attempt<T>(&mut self, read: impl Fn(&mut Scanner<'_>) -> Scan<T>) -> Result<Outcome<T>> {
        loop {
            self.findings.clear();
            let mut scanner = Scanner::new(self.window.text(), 0, &mut self.findings);
            match read(&mut scanner) {
                Ok(_) if scanner.at > MAX_ELEMENT_BYTES => return Ok(Outcome::TooLarge),
                Ok(value) => return Ok(Outcome::Whole(value, scanner.at)),
                Err(Stop::Fault) => return Ok(Outcome::Fault(scanner.fault.0, scanner.fault.1)),
                Err(Stop::NeedMore) if self.window.text().len() > MAX_ELEMENT_BYTES => {
                    return Ok(Outcome::TooLarge)
                }
                Err(Stop::NeedMore) => {}
            }
            if !self.more()? {
                return Ok(Outcome::Cut);
            }
        }
    }

    /// What was read up to `end` is taken: its findings count.
    fn accept(&mut self, end: usize) -> Result<()> {
        let offset = self.window.offset();
        self.window.consume(end);
        if self.findings.is_empty() && self.said.is_empty() {
            return Ok(());
        }
        for (code, at) in std::mem::take(&mut self.findings) {
            self.note(code, offset + at as u64)?;
        }
        for (code, offset) in std::mem::take(&mut self.said) {
            self.note(code, offset)?;
        }
        Ok(())
    }

    /// Skips a damaged element up to where reading can go on.
    fn skip_element(&mut self, code: Code) -> Result<Option<End>> {
        let start = self.window.offset();
        let found = self.resync()?;
        self.note_skipped(code, start, self.window.offset() - start)?;
        self.next_position();
        match found {
            Found::Event | Found::EndOfList => Ok(None),
            Found::Nothing => self.cut().map(Some),
        }
    }

    /// Moves the window from a damaged element to the next whole event, or to the
    /// bracket that ends the list.
    fn resync(&mut self) -> Result<Found> {
        let start = self.window.offset();
        let mut before = Before::default();
        let mut spent = 0;
        before.take(self.window.text()[0]);
        self.window.consume(1);
        loop {
            let text = self.window.text();
            let Some(at) = text.iter().position(|&byte| before.stops_at(byte)) else {
                let length = text.len();
                self.window.consume(length);
                if !self.more()? {
                    return Ok(Found::Nothing);
                }
                continue;
            };
            let bracket = text[at];
            self.window.consume(at);
            if bracket == b']' && self.is_end_of_list()? {
                return Ok(Found::EndOfList);
            }
            if bracket == b'{' && before.allows_event(&self.indent) {
                match self.attempt_candidate()? {
                    Outcome::Whole((), _) => return Ok(Found::Event),
                    Outcome::Fault(_, cost) => spent += cost as u64,
                    Outcome::TooLarge | Outcome::Cut => spent += self.window.text().len() as u64,
                }
            }
            let skipped = self.window.offset() - start;
            let affordable = skipped * RESYNC_EFFORT + RESYNC_ALLOWANCE;
            if spent > affordable {
                // Somebody made this file to be slow to read: go on a window later.
                let length = self.window.text().len();
                self.window.consume(length.min(1 << 16));
                before = Before::default();
                continue;
            }
            before.take(bracket);
            self.window.consume(1);
        }
    }

    /// Whether a whole event with a phase stands at the front of the window.
    fn attempt_candidate(&mut self) -> Result<Outcome<()>> {
        let first_key = self.attempt(|scanner| {
            scanner.expect(b'{')?;
            if scanner.peek_significant()? != b'"' {
                return scanner.stop(Code::MalformedEvent);
            }
            let key = scanner.quoted()?;
            scanner.expect(b':')?;
            let is_known = EVENT_KEYS.iter().any(|known| known.as_bytes() == key.of(scanner.text));
            if is_known {
                Ok(())
            } else {
                scanner.stop(Code::MalformedEvent)
            }
        })?;
        if !matches!(first_key, Outcome::Whole(..)) {
            return Ok(first_key);
        }
        let outcome = self.attempt_event()?;
        self.findings.clear();
        match outcome {
            Outcome::Whole((), end) if !self.scanner.draft.has_phase => {
                Ok(Outcome::Fault(Code::MalformedEvent, end))
            }
            outcome => Ok(outcome),
        }
    }

    /// Whether the `]` at the front of the window ends the list: behind it comes
    /// a header field, or the end of the object and the file.
    fn is_end_of_list(&mut self) -> Result<bool> {
        self.looks_like(|text| match significant(&text[1..]) {
            [] => None,
            [b'}', rest @ ..] => Some(significant(rest).is_empty()),
            [b',', rest @ ..] => header::starts_with_field(significant(rest)),
            _ => Some(false),
        })
    }

    /// Whether the `}` at the front of the window ends the file.
    fn is_end_of_object(&mut self) -> Result<bool> {
        self.looks_like(|text| {
            let rest = significant(&text[1..]);
            if rest.is_empty() {
                None
            } else {
                Some(false)
            }
        })
    }

    /// Asks `test` with a longer and longer window until it knows; a file that
    /// ends first says yes, if what is there does not speak against it.
    fn looks_like(&mut self, test: impl Fn(&[u8]) -> Option<bool>) -> Result<bool> {
        loop {
            match test(self.window.text()) {
                Some(true) if self.is_all_there()? => return Ok(true),
                Some(true) => {}
                Some(false) => return Ok(false),
                None if self.window.text().len() > WHITE_SPACE_BEFORE_THE_END => return Ok(false),
                None if self.more()? => {}
                None => return Ok(true),
            }
        }
    }

    /// Whether no more bytes come; brings more where they do.
    fn is_all_there(&mut self) -> Result<bool> {
        Ok(self.window.text().len() >= LOOK_AHEAD || !self.more()?)
    }

    /// Skips damage in the header up to the next field that is known.
    fn skip_to_field(&mut self, code: Code) -> Result<bool> {
        let start = self.window.offset();
        let found = loop {
            let text = self.window.text();
            let quote = text[1..].iter().position(|&byte| byte == b'"');
            let length = quote.map_or(text.len(), |at| at + 1);
            self.window.consume(length);
            if quote.is_none() && !self.more()? {
                break false;
            }
            if quote.is_some() && self.looks_like(header::starts_with_field)? {
                // A file that ends in the middle of a name has no field here.
                break header::starts_with_field(self.window.text()) == Some(true);
            }
        };
        self.note_skipped(code, start, self.window.offset() - start)?;
        Ok(found)
    }

    fn skip_field(&mut self, code: Code) -> Result<Option<End>> {
        if self.skip_to_field(code)? {
            Ok(None)
        } else {
            self.cut().map(Some)
        }
    }

    /// The next byte that is no white space, left at the front of the window.
    fn next_significant(&mut self) -> Result<Option<u8>> {
        loop {
            let text = self.window.text();
            let blank = text.iter().take_while(|&&byte| is_whitespace(byte)).count();
            let next = text.get(blank).copied();
            self.window.consume(blank);
            if next.is_some() || !self.more()? {
                return Ok(next);
            }
        }
    }

    /// As [`next_significant`](Self::next_significant), between events: keeps how
    /// the writer indents them.
    fn next_separated(&mut self) -> Result<Option<u8>> {
        let text = self.window.text();
        if let Some([b'{', ..]) = text.strip_prefix(self.indent.as_slice()) {
            self.window.consume(self.indent.len());
            return Ok(Some(b'{'));
        }
        let blank = text.iter().take_while(|&&byte| is_whitespace(byte)).count();
        if text.get(blank) == Some(&b'{') && blank <= MAX_INDENT {
            self.indent = text[..blank].to_vec();
        }
        self.next_significant()
    }

    fn more(&mut self) -> Result<bool> {
        report(self.progress, self.window.offset())?;
        let came = self.window.more(&mut self.diagnostics)?;
        if self.options.strict {
            // The window notes what is wrong with the compression by itself.
            let refused = self.diagnostics.iter().find(|row| row.code.is_refused_by_strict());
            if let Some(row) = refused {
                return Err(Error::new(ErrorKind::Strict(row.code), row.first_offset));
            }
        }
        Ok(came)
    }

    fn drain(&mut self) -> Result<()> {
        loop {
            let length = self.window.text().len();
            self.window.consume(length);
            if !self.more()? {
                return Ok(());
            }
        }
    }

    /// The file ends inside the document.
    fn cut(&mut self) -> Result<End> {
        self.cut_as(Code::Truncated)
    }

    fn cut_as(&mut self, code: Code) -> Result<End> {
        self.drain()?;
        let code = if self.window.is_limited() { Code::LimitReached } else { code };
        self.note_here(code)?;
        Ok(End::Cut)
    }

    fn note_here(&mut self, code: Code) -> Result<()> {
        self.note(code, self.window.offset())
    }

    fn note(&mut self, code: Code, offset: u64) -> Result<()> {
        self.note_skipped(code, offset, 0)
    }

    fn note_skipped(&mut self, code: Code, offset: u64, bytes: u64) -> Result<()> {
        if self.options.strict && code.is_refused_by_strict() {
            return Err(Error::new(ErrorKind::Strict(code), offset));
        }
        self.diagnostics.add_skipped(code, offset, bytes);
        Ok(())
    }

    fn finish(mut self, end: End) -> Result<Tables> {
        let offset = self.window.offset();
        if self.n_lists == 0 {
            return Err(match end {
                End::Closed | End::Limit => sniff::without_events(&self.fields, offset),
                End::Cut => Error::new(ErrorKind::EndsBeforeEvents, offset),
            });
        }
        if self.collector.n_events() == 0 && self.diagnostics.count(Code::NotAnEvent) > 0 {
            return Err(Error::new(ErrorKind::NoEvents, offset));
        }
        let mut said = Vec::new();
        self.collector.pair_brackets(&mut said);
        let header = header::facts(std::mem::take(&mut self.fields), &self.window, &mut said);
        for (code, offset) in said {
            self.note(code, offset)?;
        }
        self.collector.args.pad();
        let phases = self.collector.phases();
        let strings = self.collector.freeze_strings();
        let collector = self.collector;
        Ok(Tables {
            strings,
            events: Arc::new(collector.events),
            lanes: Arc::new(collector.lanes),
            args: Arc::new(collector.args),
            flows: Arc::new(collector.flows),
            counters: Arc::new(collector.counters),
            asyncs: Arc::new(collector.asyncs),
            metadata: Arc::new(collector.metadata),
            header: Arc::new(header),
            diagnostics: self.diagnostics,
            phases,
            bytes: offset,
        })
    }
}

/// How far one looks behind a closing bracket for what follows it.
const LOOK_AHEAD: usize = 256;
const WHITE_SPACE_BEFORE_THE_END: usize = 64 << 10;
const MAX_INDENT: usize = 64;

/// What stands before a place at which an event may begin.
#[derive(Default)]
struct Before {
    /// The last two bytes that are no white space.
    last: [u8; 2],
    /// The white space since.
    blank: Vec<u8>,
}

impl Before {
    /// Takes note of `byte`, or says that it is a bracket to look at.
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

    /// Whether an object that begins here may be an element of the list, rather
    /// than a part of the damaged one: not the value of a key or the first in a
    /// list; and where it follows a comma, it follows an object and is indented as
    /// events are.
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

/// Without leading white space.
fn significant(text: &[u8]) -> &[u8] {
    let blank = text.iter().take_while(|&&byte| is_whitespace(byte)).count();
    &text[blank..]
}
