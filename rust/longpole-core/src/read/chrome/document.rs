//! The frame of the document: header fields and the list of events.

use std::sync::Arc;

use super::collect::Collector;
use super::event::EventScanner;
use super::header;
use super::place::Whereabouts;
use super::recovery::Found;
use super::stream::EventStream;
use crate::diagnostics::{Code, Diagnostics};
use crate::error::{Error, ErrorKind, Result};
use crate::progress::Progress;
use crate::read::elements::{Elements, Outcome};
use crate::read::json::Token;
use crate::read::sniff;
use crate::read::window::Window;
use crate::read::Options;
use crate::strings::spelled_text;
use crate::tables::Tables;

/// Header fields above this are skipped: they are facts, not data.
const MAX_FIELD_BYTES: usize = 1 << 20;

/// Reads a document into tables. `diagnostics` says what was found wrong with the bytes that
/// are already in the window.
pub(in crate::read) fn read(
    window: Window<'_>,
    diagnostics: Diagnostics,
    options: &Options,
    progress: Progress<'_>,
) -> Result<Tables> {
    let elements = Elements::new(window, diagnostics, progress, options.strict);
    let scanner = EventScanner::new(options.arguments.keys());
    let mut document = Document {
        stream: EventStream::new(elements, scanner),
        options,
        collector: Collector::new(Arc::clone(&options.vocabulary)),
        said: Vec::new(),
        fields: Vec::new(),
        position: 0,
        n_lists: 0,
    };
    let end = document.whole()?;
    document.finish(end)
}

struct Document<'a> {
    stream: EventStream<'a>,
    options: &'a Options,
    collector: Collector,
    /// What the collector said of the element at hand, by byte of the file.
    said: Vec<(Code, u64)>,
    fields: Vec<(String, String)>,
    position: u32,
    n_lists: usize,
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

impl Document<'_> {
    fn whole(&mut self) -> Result<End> {
        let first = self.first_byte()?;
        self.stream.elements.window.consume(1);
        let end = if first == b'[' { self.list(true)? } else { self.object()? };
        if end == End::Closed {
            if self.stream.elements.next_significant()?.is_some() {
                self.stream.elements.note_here(Code::TextAfterEnd)?;
            }
            // To the end, where gzip has its checksum.
            self.stream.elements.drain()?;
        }
        Ok(end)
    }

    /// The bracket that opens the document, or the error that says what the file
    /// is instead.
    fn first_byte(&mut self) -> Result<u8> {
        self.stream.elements.skip_byte_order_mark()?;
        match self.stream.elements.next_significant()? {
            Some(byte @ (b'{' | b'[')) => Ok(byte),
            Some(_) => Err(sniff::unknown(self.stream.elements.window.text())),
            None if self.stream.elements.window.is_limited() => {
                Err(Error::new(ErrorKind::EndsBeforeEvents, 0))
            }
            None => Err(Error::new(ErrorKind::Empty, 0)),
        }
    }

    /// The members of the outermost object.
    fn object(&mut self) -> Result<End> {
        let mut after_value = false;
        loop {
            let Some(byte) = self.stream.elements.next_significant()? else { return self.cut() };
            match byte {
                b'}' => {
                    self.stream.elements.window.consume(1);
                    return Ok(End::Closed);
                }
                b',' => {
                    if !after_value {
                        self.stream.elements.note_here(Code::ExtraComma)?;
                    }
                    after_value = false;
                    self.stream.elements.window.consume(1);
                    if self.stream.elements.next_significant()? == Some(b'}') {
                        self.stream.elements.note_here(Code::TrailingComma)?;
                    }
                }
                b'"' => {
                    if after_value {
                        self.stream.elements.note_here(Code::MissingComma)?;
                    }
                    match self.member()? {
                        Some(End::Closed) => after_value = true,
                        Some(end) => return Ok(end),
                        // Damage was skipped: the next byte begins a member.
                        None => after_value = false,
                    }
                }
                _ => {
                    if !self.stream.skip_to_field(Code::MalformedHeader)? {
                        return Ok(End::Cut);
                    }
                    after_value = false;
                }
            }
        }
    }

    /// One member of the outermost object; none where damage was skipped.
    fn member(&mut self) -> Result<Option<End>> {
        let key = self.stream.elements.attempt_key()?;
        let name = match key {
            Outcome::Whole(span, end) => {
                let name = spelled_text(span.of(self.stream.elements.window.text()));
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
            let error = sniff::without_events(&self.fields, self.stream.elements.window.offset());
            if matches!(error.kind(), ErrorKind::OtherKind { .. }) {
                return Err(error);
            }
            return self.field(None);
        }
        self.field(Some(name))
    }

    /// The value of a header field.
    fn field(&mut self, name: Option<String>) -> Result<Option<End>> {
        let value = self.stream.elements.attempt_value()?;
        match value {
            Outcome::Whole(span, end) => {
                let text = span.of(self.stream.elements.window.text());
                let fits = text.len() <= MAX_FIELD_BYTES;
                if let Some(name) = name.filter(|_| fits) {
                    self.fields.push((name, String::from_utf8_lossy(text).into_owned()));
                }
                self.accept(end)?;
                if !fits {
                    self.stream.elements.note_here(Code::HeaderTooLarge)?;
                }
                Ok(Some(End::Closed))
            }
            Outcome::Cut => self.cut().map(Some),
            Outcome::Fault(..) => self.skip_field(Code::MalformedHeader),
            Outcome::TooLarge => self.skip_field(Code::HeaderTooLarge),
        }
    }

    fn trace_events(&mut self) -> Result<End> {
        match self.stream.elements.next_significant()? {
            Some(b'[') => {
                if self.n_lists > 0 {
                    self.stream.elements.note_here(Code::RepeatedEvents)?;
                }
                self.stream.elements.window.consume(1);
                self.list(false)
            }
            Some(_) => {
                Err(Error::new(ErrorKind::EventsNotAnArray, self.stream.elements.window.offset()))
            }
            None => self.cut(),
        }
    }

    /// The elements of the list of events, behind its bracket.
    fn list(&mut self, outermost: bool) -> Result<End> {
        self.n_lists += 1;
        let (mut after_value, mut after_comma) = (false, None);
        loop {
            let Some(byte) = self.stream.next_separated()? else {
                let code = if after_value { Code::MissingEnd } else { Code::Truncated };
                return self.cut_as(code);
            };
            match byte {
                b',' => {
                    if !after_value {
                        self.stream.elements.note_here(Code::ExtraComma)?;
                    }
                    (after_value, after_comma) =
                        (false, Some(self.stream.elements.window.offset()));
                    self.stream.elements.window.consume(1);
                    continue;
                }
                b'[' | b']' if self.stream.is_stray_bracket()? => {
                    self.stream.skip_bracket()?;
                    after_value &= byte == b']';
                    continue;
                }
                b']' => {
                    if let Some(offset) = after_comma.filter(|_| !after_value) {
                        self.stream.elements.note(Code::TrailingComma, offset)?;
                    }
                    self.stream.elements.window.consume(1);
                    return Ok(End::Closed);
                }
                b'}' if !outermost && self.stream.is_end_of_object()? => {
                    self.stream.elements.note_here(Code::MissingEnd)?;
                    return Ok(End::Closed);
                }
                b'{' if after_value => self.stream.elements.note_here(Code::MissingComma)?,
                b'[' if outermost && self.position == 0 => {
                    return Err(sniff::array_of_arrays(self.stream.elements.window.offset()));
                }
                _ => {}
            }
            if self.options.max_events.is_some_and(|limit| self.collector.n_events() >= limit) {
                self.stream.elements.note_here(Code::LimitReached)?;
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
        let offset = self.stream.elements.window.offset();
        let outcome = if is_object { self.stream.attempt_event()? } else { self.attempt_other()? };
        let here = Whereabouts { offset, position: self.position };
        match outcome {
            Outcome::Whole((), end) => {
                if is_object {
                    self.collector.add(
                        &self.stream.scanner,
                        self.stream.elements.window.text(),
                        here,
                        &mut self.said,
                    );
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

    /// Tries to read an element of the list that is no object. Words that JSON
    /// does not know are not elements but text that was written in between.
    fn attempt_other(&mut self) -> Result<Outcome<()>> {
        self.stream.elements.attempt(|scanner| match scanner.value()? {
            Token::Null if !scanner.findings.is_empty() => scanner.stop(Code::MalformedEvent),
            _ => Ok(()),
        })
    }

    /// What was read up to `end` is taken: its findings count.
    fn accept(&mut self, end: usize) -> Result<()> {
        self.stream.elements.accept(end)?;
        if self.said.is_empty() {
            return Ok(());
        }
        for (code, offset) in std::mem::take(&mut self.said) {
            self.stream.elements.note(code, offset)?;
        }
        Ok(())
    }

    /// Skips a damaged element up to where reading can go on.
    fn skip_element(&mut self, code: Code) -> Result<Option<End>> {
        let start = self.stream.elements.window.offset();
        let found = self.stream.resync()?;
        self.stream.elements.note_skipped(
            code,
            start,
            self.stream.elements.window.offset() - start,
        )?;
        self.next_position();
        match found {
            Found::Event | Found::EndOfList => Ok(None),
            Found::Nothing => self.cut().map(Some),
        }
    }

    fn skip_field(&mut self, code: Code) -> Result<Option<End>> {
        if self.stream.skip_to_field(code)? {
            Ok(None)
        } else {
            self.cut().map(Some)
        }
    }

    /// The file ends inside the document.
    fn cut(&mut self) -> Result<End> {
        self.cut_as(Code::Truncated)
    }

    fn cut_as(&mut self, code: Code) -> Result<End> {
        self.stream.elements.cut_as(code)?;
        Ok(End::Cut)
    }

    fn finish(mut self, end: End) -> Result<Tables> {
        let offset = self.stream.elements.window.offset();
        if self.n_lists == 0 {
            return Err(match end {
                End::Closed | End::Limit => sniff::without_events(&self.fields, offset),
                End::Cut => Error::new(ErrorKind::EndsBeforeEvents, offset),
            });
        }
        if self.collector.n_events() == 0
            && self.stream.elements.diagnostics.count(Code::NotAnEvent) > 0
        {
            return Err(Error::new(ErrorKind::NoEvents, offset));
        }
        let mut said = Vec::new();
        self.collector.pair_brackets(&mut said);
        let header = header::facts(
            std::mem::take(&mut self.fields),
            &self.stream.elements.window,
            &mut said,
        );
        for (code, offset) in said {
            self.stream.elements.note(code, offset)?;
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
            diagnostics: self.stream.elements.diagnostics,
            phases,
            bytes: offset,
        })
    }
}
