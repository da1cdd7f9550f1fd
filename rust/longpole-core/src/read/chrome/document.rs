//! The document: header fields and the event list.
//!
//! One file, because it is the state machine of one pass over the document.

use std::sync::Arc;

use super::collect::Collector;
use super::event::{EventScanner, Whereabouts};
use super::parts::Parts;
use super::predicted::RunEnd;
use super::reader::EventReader;
use super::recovery::Found;
use super::repaired::Repaired;
use super::stream::EventStream;
use crate::diagnostics::{Code, Diagnostics};
use crate::error::{Error, ErrorKind, Result};
use crate::progress::Progress;
use crate::read::elements::{Elements, Outcome};
use crate::read::header::with_losses;
use crate::read::json::Token;
use crate::read::window::Window;
use crate::read::{Options, header, sniff};
use crate::strings::spelled_text;
use crate::tables::{Header, Tables};

/// Longer header fields are skipped; the header contains metadata, not data.
const MAX_FIELD_BYTES: usize = 1 << 20;

/// The error for traces that do not distinguish kernels from their operators.
const TENSORFLOW_TIMELINE: ErrorKind = ErrorKind::OtherKind {
    what: "a timeline of TensorFlow 1 (`timeline.Timeline`)",
    hint: "record with `tf.profiler.experimental.start` and give the `*.xplane.pb` file",
};

/// Reads a document into tables. `diagnostics` contains the problems of bytes already in the
/// window.
pub(in crate::read) fn read(
    window: Window<'_>,
    diagnostics: Diagnostics,
    options: &Options,
    progress: Progress<'_>,
) -> Result<Tables> {
    let mut document = document(window, diagnostics, options, progress);
    document.parts = Parts::new(options);
    let end = document.whole()?;
    document.finish(end)
}

/// Writes the readable part of a document as valid JSON. Returns the number of its events, or
/// `None` if the result is a list, which has no place to record what was lost.
pub(in crate::read) fn repair<'a>(
    window: Window<'a>,
    diagnostics: Diagnostics,
    options: &'a Options,
    repaired: Repaired<'a>,
    progress: Progress<'a>,
) -> Result<Option<u64>> {
    let mut document = document(window, diagnostics, options, progress);
    document.events.repaired = Some(repaired);
    let end = document.whole()?;
    let (fields, repaired) = (document.fields.clone(), document.events.repaired.take());
    let tables = document.finish(end)?;
    repaired.map_or(Ok(None), |repaired| repaired.finish(&with_losses(fields.into_iter(), &tables)))
}

fn document<'a>(
    window: Window<'a>,
    diagnostics: Diagnostics,
    options: &'a Options,
    progress: Progress<'a>,
) -> Document<'a> {
    let elements = Elements::new(window, diagnostics, progress, options.strict);
    let scanner = EventScanner::new(options.arguments.keys());
    let collector = Collector::new(Arc::clone(&options.vocabulary));
    Document {
        events: EventReader::new(EventStream::new(elements, scanner), collector, !options.scan_all),
        parts: None,
        options,
        fields: Vec::new(),
        n_lists: 0,
    }
}

struct Document<'a> {
    events: EventReader<'a>,
    /// The state of reading the list with several threads, if enabled.
    parts: Option<Parts<'a>>,
    options: &'a Options,
    fields: Vec<(String, String)>,
    n_lists: usize,
}

/// How a part of the document ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// With its closing bracket.
    Closed,
    /// With the end of the file.
    Cut,
    /// At the maximum number of events.
    Limit,
}

impl Document<'_> {
    fn whole(&mut self) -> Result<End> {
        let first = self.first_byte()?;
        self.events.stream.elements.window.consume(1);
        if let Some(repaired) = &mut self.events.repaired {
            repaired.begin(first == b'[')?;
        }
        let end = if first == b'[' { self.list(true)? } else { self.object()? };
        if end == End::Closed {
            if self.events.stream.elements.next_significant()?.is_some() {
                self.events.stream.elements.note_here(Code::TextAfterEnd)?;
            }
            // Reads to the end, where gzip has its checksum.
            self.events.stream.elements.drain()?;
        }
        Ok(end)
    }

    /// Returns the bracket that opens the document, or the error for another file format.
    fn first_byte(&mut self) -> Result<u8> {
        self.events.stream.elements.skip_byte_order_mark()?;
        match self.events.stream.elements.next_significant()? {
            Some(byte @ (b'{' | b'[')) => Ok(byte),
            Some(_) => Err(sniff::unknown(self.events.stream.elements.window.text())),
            None if self.events.stream.elements.window.is_limited() => {
                Err(Error::new(ErrorKind::EndsBeforeEvents, 0))
            }
            None => Err(Error::new(ErrorKind::Empty, 0)),
        }
    }

    /// Reads the members of the outermost object.
    fn object(&mut self) -> Result<End> {
        let mut after_value = false;
        loop {
            let Some(byte) = self.events.stream.elements.next_significant()? else {
                return self.cut();
            };
            match byte {
                b'}' => {
                    self.events.stream.elements.window.consume(1);
                    return Ok(End::Closed);
                }
                b',' => {
                    if !after_value {
                        self.events.stream.elements.note_here(Code::ExtraComma)?;
                    }
                    after_value = false;
                    self.events.stream.elements.window.consume(1);
                    if self.events.stream.elements.next_significant()? == Some(b'}') {
                        self.events.stream.elements.note_here(Code::TrailingComma)?;
                    }
                }
                b'"' => {
                    if after_value {
                        self.events.stream.elements.note_here(Code::MissingComma)?;
                    }
                    match self.member()? {
                        Some(End::Closed) => after_value = true,
                        Some(end) => return Ok(end),
                        // A damaged part was skipped, so the next byte begins a member.
                        None => after_value = false,
                    }
                }
                _ => {
                    if !self.events.stream.skip_to_field(Code::MalformedHeader)? {
                        return Ok(End::Cut);
                    }
                    after_value = false;
                }
            }
        }
    }

    /// Reads one member of the outermost object; `None` if a damaged part was skipped.
    fn member(&mut self) -> Result<Option<End>> {
        let key = self.events.stream.elements.attempt_key()?;
        let name = match key {
            Outcome::Whole(span, end) => {
                let name = spelled_text(span.of(self.events.stream.elements.window.text()));
                self.events.accept(end)?;
                name
            }
            Outcome::Cut => return self.cut().map(Some),
            Outcome::Fault(..) | Outcome::TooLarge => {
                return self.skip_field(Code::MalformedHeader);
            }
        };
        if name == "traceEvents" {
            return self.trace_events().map(Some);
        }
        if name == "nodes" && self.n_lists == 0 {
            self.fields.push((name, String::new()));
            let error =
                sniff::without_events(&self.fields, self.events.stream.elements.window.offset());
            if matches!(error.kind(), ErrorKind::OtherKind { .. }) {
                return Err(error);
            }
            return self.field(None);
        }
        self.field(Some(name))
    }

    /// Reads the value of a header field.
    fn field(&mut self, name: Option<String>) -> Result<Option<End>> {
        let value = self.events.stream.elements.attempt_value()?;
        match value {
            Outcome::Whole(span, end) => {
                let text = span.of(self.events.stream.elements.window.text());
                let fits = text.len() <= MAX_FIELD_BYTES;
                if let Some(name) = name.filter(|_| fits) {
                    self.fields.push((name, String::from_utf8_lossy(text).into_owned()));
                }
                self.events.accept(end)?;
                if !fits {
                    self.events.stream.elements.note_here(Code::HeaderTooLarge)?;
                }
                Ok(Some(End::Closed))
            }
            Outcome::Cut => self.cut().map(Some),
            Outcome::Fault(..) => self.skip_field(Code::MalformedHeader),
            Outcome::TooLarge => self.skip_field(Code::HeaderTooLarge),
        }
    }

    fn trace_events(&mut self) -> Result<End> {
        match self.events.stream.elements.next_significant()? {
            Some(b'[') => {
                if self.n_lists > 0 {
                    self.events.stream.elements.note_here(Code::RepeatedEvents)?;
                }
                self.events.stream.elements.window.consume(1);
                self.list(false)
            }
            Some(_) => Err(Error::new(
                ErrorKind::EventsNotAnArray,
                self.events.stream.elements.window.offset(),
            )),
            None => self.cut(),
        }
    }

    /// Reads the elements of the event list, after its opening bracket.
    fn list(&mut self, outermost: bool) -> Result<End> {
        self.n_lists += 1;
        let limit = self.options.max_events.unwrap_or(u64::MAX);
        let (mut after_value, mut after_comma) = (false, None);
        loop {
            let Some(byte) = self.events.stream.next_separated()? else {
                let code = if after_value { Code::MissingEnd } else { Code::Truncated };
                return self.cut_as(code);
            };
            match byte {
                b',' => {
                    if !after_value {
                        self.events.stream.elements.note_here(Code::ExtraComma)?;
                    }
                    (after_value, after_comma) =
                        (false, Some(self.events.stream.elements.window.offset()));
                    self.events.stream.elements.window.consume(1);
                    continue;
                }
                b'[' | b']' if self.events.stream.is_stray_bracket()? => {
                    self.events.stream.skip_bracket()?;
                    after_value &= byte == b']';
                    continue;
                }
                b']' => {
                    if let Some(offset) = after_comma.filter(|_| !after_value) {
                        self.events.stream.elements.note(Code::TrailingComma, offset)?;
                    }
                    self.events.stream.elements.window.consume(1);
                    return Ok(End::Closed);
                }
                b'}' if !outermost && self.events.stream.is_end_of_object()? => {
                    self.events.stream.elements.note_here(Code::MissingEnd)?;
                    return Ok(End::Closed);
                }
                b'{' if after_value => self.events.stream.elements.note_here(Code::MissingComma)?,
                b'[' if outermost && self.events.position == 0 => {
                    return Err(sniff::array_of_arrays(
                        self.events.stream.elements.window.offset(),
                    ));
                }
                _ => {}
            }
            if self
                .options
                .max_events
                .is_some_and(|limit| self.events.collector.tables.n_events >= limit)
            {
                self.events.stream.elements.note_here(Code::LimitReached)?;
                return Ok(End::Limit);
            }
            if byte == b'{' {
                self.events.fetch_ahead()?;
                let end = match self.take_parts()? {
                    Some(end) => Some(end),
                    None => self.events.take_predicted(limit),
                };
                match end {
                    Some(RunEnd::BehindEvent) => {
                        after_value = true;
                        continue;
                    }
                    Some(RunEnd::BehindComma(offset)) => {
                        (after_value, after_comma) = (false, Some(offset));
                        continue;
                    }
                    None => {}
                }
            }
            match self.element(byte == b'{')? {
                Some(End::Closed) => after_value = true,
                Some(end) => return Ok(end),
                // A damaged part was skipped, so the next byte begins an event or ends the list.
                None => (after_value, after_comma) = (false, None),
            }
        }
    }

    /// Reads as many parts as possible with several threads.
    fn take_parts(&mut self) -> Result<Option<RunEnd>> {
        match &mut self.parts {
            Some(parts) => parts.take(&mut self.events),
            None => Ok(None),
        }
    }

    /// Reads one element of the list; `None` if a damaged part was skipped.
    fn element(&mut self, is_object: bool) -> Result<Option<End>> {
        let offset = self.events.stream.elements.window.offset();
        let outcome =
            if is_object { self.events.stream.attempt_event()? } else { self.attempt_other()? };
        let here = Whereabouts { offset, position: self.events.position };
        match outcome {
            Outcome::Whole((), end) => {
                if is_object {
                    self.events.keep(here, end)?;
                } else {
                    self.events.said.push((Code::NotAnEvent, offset));
                }
                self.events.accept(end)?;
                self.events.next_position();
                Ok(Some(End::Closed))
            }
            Outcome::Cut => self.cut().map(Some),
            Outcome::Fault(code, _) => self.skip_element(code),
            Outcome::TooLarge => self.skip_element(Code::EventTooLarge),
        }
    }

    /// Tries to read a list element that is not an object. Words that are not JSON are not
    /// elements, but text inserted by another program.
    fn attempt_other(&mut self) -> Result<Outcome<()>> {
        self.events.stream.elements.attempt(|scanner| match scanner.value()? {
            Token::Null if !scanner.findings.is_empty() => scanner.stop(Code::MalformedEvent),
            _ => Ok(()),
        })
    }

    /// Skips a damaged element up to the next readable one.
    fn skip_element(&mut self, code: Code) -> Result<Option<End>> {
        let start = self.events.stream.elements.window.offset();
        let found = self.events.stream.resync()?;
        self.events.stream.elements.note_skipped(
            code,
            start,
            self.events.stream.elements.window.offset() - start,
        )?;
        self.events.next_position();
        match found {
            Found::Event | Found::EndOfList => Ok(None),
            Found::Nothing => self.cut().map(Some),
        }
    }

    fn skip_field(&mut self, code: Code) -> Result<Option<End>> {
        if self.events.stream.skip_to_field(code)? { Ok(None) } else { self.cut().map(Some) }
    }

    /// Handles the end of the file inside the document.
    fn cut(&mut self) -> Result<End> {
        self.cut_as(Code::Truncated)
    }

    fn cut_as(&mut self, code: Code) -> Result<End> {
        self.events.stream.elements.cut_as(code)?;
        Ok(End::Cut)
    }

    /// Detects the program that wrote the document, and assigns the kinds of events accordingly.
    fn interpret(&mut self, header: &mut Header) -> Result<()> {
        for _ in 0..self.events.collector.interpret() {
            self.events.stream.elements.note(Code::UnknownTaskType, 0)?;
        }
        if header.format == "chrome-json" && self.events.collector.is_timeline_of_tensorflow() {
            return Err(Error::new(TENSORFLOW_TIMELINE, 0));
        }
        // Files of Kineto, and files that longpole writes in the same format, have categories.
        if header.format == "chrome-json"
            && let Some(n_unknown) = self.events.collector.interpret_xprof(&self.options.vocabulary)
        {
            header.format = "xprof-json";
            for _ in 0..n_unknown {
                self.events.stream.elements.note(Code::UnknownDeviceLine, 0)?;
            }
        }
        if header.format == "chrome-json"
            && self.events.collector.interpret_rocprof(&self.options.vocabulary)
        {
            header.format = "rocprof-json";
        }
        Ok(())
    }

    fn finish(mut self, end: End) -> Result<Tables> {
        let offset = self.events.stream.elements.window.offset();
        if self.n_lists == 0 {
            return Err(match end {
                End::Closed | End::Limit => sniff::without_events(&self.fields, offset),
                End::Cut => Error::new(ErrorKind::EndsBeforeEvents, offset),
            });
        }
        if self.events.collector.tables.n_events == 0
            && self.events.stream.elements.diagnostics.count(Code::NotAnEvent) > 0
        {
            return Err(Error::new(ErrorKind::NoEvents, offset));
        }
        let mut said = Vec::new();
        self.events.collector.pair_brackets(&mut said);
        let mut header = header::facts(
            std::mem::take(&mut self.fields),
            self.events.stream.elements.window.compression(),
            &mut said,
        );
        for (code, offset) in said {
            self.events.stream.elements.note(code, offset)?;
        }
        header::count_losses(&header.fields, &mut self.events.stream.elements)?;
        self.events.collector.tables.seal();
        self.interpret(&mut header)?;
        let diagnostics = self.events.stream.elements.diagnostics;
        Ok(self.events.collector.tables.finish(self.options, header, diagnostics, offset))
    }
}
