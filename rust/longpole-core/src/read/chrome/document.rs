//! The frame of the document: header fields and the list of events.

use std::sync::Arc;

use super::collect::{Collector, Whereabouts};
use super::event::EventScanner;
use super::header;
use super::recovery::Found;
use crate::diagnostics::{Code, Diagnostics};
use crate::error::{Error, ErrorKind, Result};
use crate::progress::{report, Progress};
use crate::read::json::{is_whitespace, Scan, Scanner, Span, Stop, Token};
use crate::read::sniff;
use crate::read::window::{Window, MAX_ELEMENT_BYTES};
use crate::read::Options;
use crate::strings::spelled_text;
use crate::tables::Tables;

/// Header fields above this are skipped: they are facts, not data.
const MAX_FIELD_BYTES: usize = 1 << 20;

/// More white space than this before an event is not taken for its indent.
pub(super) const MAX_INDENT: usize = 64;

/// Reads a document into tables. `diagnostics` says what was found wrong with the bytes that
/// are already in the window.
pub(in crate::read) fn read(
    window: Window<'_>,
    diagnostics: Diagnostics,
    options: &Options,
    progress: Progress<'_>,
) -> Result<Tables> {
    let mut document = Document {
        window,
        options,
        progress,
        scanner: EventScanner::new(options.arguments.keys()),
        collector: Collector::new(Arc::clone(&options.vocabulary)),
        diagnostics,
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

pub(super) struct Document<'a> {
    pub(super) window: Window<'a>,
    options: &'a Options,
    progress: Progress<'a>,
    pub(super) scanner: EventScanner,
    collector: Collector,
    diagnostics: Diagnostics,
    /// What the scanner noted in the element at hand, by place in the window.
    pub(super) findings: Vec<(Code, usize)>,
    /// What the collector said of it, by byte of the file.
    said: Vec<(Code, u64)>,
    fields: Vec<(String, String)>,
    position: u32,
    n_lists: usize,
    /// The white space before the last event, as far as it holds a line break.
    pub(super) indent: Vec<u8>,
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
pub(super) enum Outcome<T> {
    /// It is whole, and ends at this place of the window.
    Whole(T, usize),
    /// It is damaged at this place of the window.
    Fault(Code, usize),
    /// It is longer than an element may be.
    TooLarge,
    /// The file ends inside it.
    Cut,
}

impl Document<'_> {
    fn whole(&mut self) -> Result<End> {
        let first = self.first_byte()?;
        self.window.consume(1);
        let end = if first == b'[' { self.list(true)? } else { self.object()? };
        if end == End::Closed {
            if self.next_significant()?.is_some() {
                self.note_here(Code::TextAfterEnd)?;
            }
            // To the end, where gzip has its checksum.
            self.drain()?;
        }
        Ok(end)
    }

    /// The bracket that opens the document, or the error that says what the file
    /// is instead.
    fn first_byte(&mut self) -> Result<u8> {
        if self.window.text().starts_with(b"\xef\xbb\xbf") {
            self.window.consume(3);
            self.note(Code::ByteOrderMark, 0)?;
        }
        match self.next_significant()? {
            Some(byte @ (b'{' | b'[')) => Ok(byte),
            Some(_) => Err(sniff::unknown(self.window.text())),
            None if self.window.is_limited() => Err(Error::new(ErrorKind::EndsBeforeEvents, 0)),
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
                let name = spelled_text(span.of(self.window.text()));
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
                b'[' | b']' if self.is_stray_bracket()? => {
                    self.skip_bracket()?;
                    after_value &= byte == b']';
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
            if self.options.max_events.is_some_and(|limit| self.collector.n_events() >= limit) {
                self.note_here(Code::LimitReached)?;
                return Ok(End::Limit);
            }
            match self.element(byte == b'{')? {
                Some(End::Closed) => after_value = true,
                Some(end) => return Ok(end),
                // Damage was skipped: the next byte begins an event or ends the list.
                None => (after_value, after_comma) = (false, None),
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
    pub(super) fn attempt_event(&mut self) -> Result<Outcome<()>> {
        self.attempt_with(EventScanner::scan)
    }

    /// Tries to read an element of the list that is no object. Words that JSON
    /// does not know are not elements but text that was written in between.
    fn attempt_other(&mut self) -> Result<Outcome<()>> {
        self.attempt(|scanner| match scanner.value()? {
            Token::Null if !scanner.findings.is_empty() => scanner.stop(Code::MalformedEvent),
            _ => Ok(()),
        })
    }

    /// Tries to read something that is no event.
    fn attempt<T>(&mut self, read: impl Fn(&mut Scanner<'_>) -> Scan<T>) -> Result<Outcome<T>> {
        self.attempt_with(|_, scanner| read(scanner))
    }

    /// Tries to read something at the front of the window, in a longer and longer one
    /// until it ends.
    fn attempt_with<T>(
        &mut self,
        read: impl Fn(&mut EventScanner, &mut Scanner<'_>) -> Scan<T>,
    ) -> Result<Outcome<T>> {
        loop {
            self.findings.clear();
            let mut scanner = Scanner::new(self.window.text(), 0, &mut self.findings);
            match read(&mut self.scanner, &mut scanner) {
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
            let blank = self.blank_length();
            let next = self.window.text().get(blank).copied();
            self.window.consume(blank);
            if next.is_some() || !self.more()? {
                return Ok(next);
            }
        }
    }

    /// How much white space is at the front of the window.
    fn blank_length(&self) -> usize {
        self.window.text().iter().take_while(|&&byte| is_whitespace(byte)).count()
    }

    /// As [`next_significant`](Self::next_significant), between events: keeps how
    /// the writer indents them.
    fn next_separated(&mut self) -> Result<Option<u8>> {
        let text = self.window.text();
        if let Some([b'{', ..]) = text.strip_prefix(self.indent.as_slice()) {
            self.window.consume(self.indent.len());
            return Ok(Some(b'{'));
        }
        // An indent that the window cuts through is looked at whole, or what is kept
        // would depend on where windows end.
        while self.blank_length() == self.window.text().len()
            && self.window.text().len() <= MAX_INDENT
            && self.more()?
        {}
        let (text, blank) = (self.window.text(), self.blank_length());
        if text.get(blank) == Some(&b'{') && blank <= MAX_INDENT {
            self.indent = text[..blank].to_vec();
        }
        self.next_significant()
    }

    pub(super) fn more(&mut self) -> Result<bool> {
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

    pub(super) fn note_skipped(&mut self, code: Code, offset: u64, bytes: u64) -> Result<()> {
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
            vocabulary: Arc::clone(&self.options.vocabulary),
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
