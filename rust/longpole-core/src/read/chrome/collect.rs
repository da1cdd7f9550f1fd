//! Turns drafts of events into table rows.
//!
//! One file, because every event phase adds to the same tables.

use std::sync::Arc;

use super::arguments::{DEVICE, STREAM, integer, is_integer, number, token_text};
use super::event::{Argument, Draft, EventScanner, Findings, Number, Whereabouts};
use crate::diagnostics::Code;
use crate::ids::{EventId, LaneId, StringId};
use crate::read::json::{Keys, Span, Token};
use crate::read::pairs::{Brackets, Track};
use crate::read::profile::{Profile, statements};
use crate::read::recent::Recent;
use crate::read::rows::TableBuilder;
use crate::read::{ascend, rocm, xprof};
use crate::strings::Strings;
use crate::tables::{ArgValue, EventKind, EventRow, FlowSource, NO_INTEGER, Place};
use crate::vocabulary::Vocabulary;

/// The tables under construction.
#[derive(Default)]
pub(super) struct Collector {
    pub(super) tables: TableBuilder,
    pub(super) kinds: Kinds,
    /// The row of the last metadata statement.
    pub(super) last_statement: usize,
    /// All metadata statements with their positions, if the collector reads a part of the file.
    pub(super) statements: Option<Vec<(usize, u32)>>,
    last_category: Option<(StringId, Vec<u8>)>,
    tracks: Recent<(Number, Number), (StringId, StringId)>,
    places: Recent<Place, LaneId>,
    sources: Recent<(bool, FlowSource), u32>,
    pub(super) brackets: Brackets,
}

impl Collector {
    pub(super) fn new(vocabulary: Arc<Vocabulary>) -> Self {
        Self { kinds: Kinds::new(vocabulary), ..Self::default() }
    }

    /// Adds one event. Problems with it are added to `findings`.
    pub(super) fn add(
        &mut self,
        scanner: &EventScanner,
        text: &[u8],
        at: Whereabouts,
        findings: &mut Findings,
    ) {
        let draft = &scanner.draft;
        // Some writers end the list with an empty object to avoid handling the last comma.
        if draft.is_empty {
            return;
        }
        let say = |findings: &mut Findings, code| findings.push((code, at.offset));
        if draft.phase != b'M'
            && let Some(code) = draft.time_fault()
        {
            return say(findings, code);
        }
        findings.extend(draft.unread_faults().map(|code| (code, at.offset)));
        self.tables.count(draft.phase);
        if draft.name.is_none() && !matches!(draft.phase, b'E' | b's' | b't' | b'f') {
            say(findings, Code::MissingName);
        }
        match draft.phase {
            b'X' | b'B' | b'i' | b'I' | b'R' => self.event(scanner, text, at, findings),
            b'E' => self.end(draft, text, at, findings),
            b's' | b't' | b'f' | b'b' | b'n' | b'e' | b'S' | b'T' | b'p' | b'F' => {
                let source = self.flow_source(draft, text);
                let id = draft.id.and_then(|token| self.flow_id(token, text));
                let is_arrow = matches!(draft.phase, b's' | b't' | b'f');
                let table = if is_arrow { &mut self.tables.flows } else { &mut self.tables.asyncs };
                let row = self.sources.get((is_arrow, source), || table.source_row(source));
                let strings = &mut self.tables.strings;
                table.push(draft.phase, id, row, draft.start_ns(), at.position, strings);
            }
            b'C' => self.counter(scanner, text, at),
            b'M' => self.metadata(scanner, text, at),
            _ => {
                let code = if draft.has_phase { Code::UnknownPhase } else { Code::MissingPhase };
                say(findings, code);
                self.event(scanner, text, at, findings);
            }
        }
    }

    fn event(
        &mut self,
        scanner: &EventScanner,
        text: &[u8],
        at: Whereabouts,
        findings: &mut Findings,
    ) {
        let draft = &scanner.draft;
        let category = draft.category.map(|span| self.category(span, text));
        let kind = self.kind(scanner, category, text);
        let lane = self.lane(draft, text, kind);
        let start_ns = draft.start_ns();
        let (duration_ns, warning) = draft.duration_ns();
        findings.extend(warning.map(|code| (code, at.offset)));
        if start_ns < 0 {
            findings.push((Code::NegativeTimestamp, at.offset));
        }
        if start_ns == 0 && kind.is_device_work() {
            findings.push((Code::ZeroTimestamp, at.offset));
        }
        let name = draft.name.map(|span| self.quoted(span, text));
        let correlation = id(draft.correlation, text, at, findings);
        let external_id = id(draft.external_id, text, at, findings);
        let row = EventRow {
            kind,
            category,
            name,
            lane,
            start_ns,
            duration_ns,
            correlation,
            external_id,
            position: at.position,
        };
        let event = self.tables.events.push(&row);
        if draft.phase == b'B' {
            let track = self.track(draft, text);
            self.brackets.push(Some(event), track, start_ns, (at.position, at.offset));
        }
        self.arguments(scanner, text, event, category, kind);
    }

    /// Adds the end of a begin event.
    fn end(&mut self, draft: &Draft, text: &[u8], at: Whereabouts, findings: &mut Findings) {
        let track = self.track(draft, text);
        self.brackets.push(None, track, draft.start_ns(), (at.position, at.offset));
        if !draft.arguments.is_empty() {
            findings.push((Code::EndArguments, at.offset));
        }
    }

    fn kind(
        &mut self,
        scanner: &EventScanner,
        category: Option<StringId>,
        text: &[u8],
    ) -> EventKind {
        let draft = &scanner.draft;
        match (draft.phase, category) {
            (b'X' | b'B', Some(category)) => {
                let name = draft.name.map_or(&[][..], |name| name.of(text));
                self.kinds
                    .of(category, &self.tables.strings)
                    .kind(name, || scanner.says_stream_waited_for())
            }
            (b'i' | b'I' | b'R', _) => EventKind::Instant,
            _ => EventKind::Other,
        }
    }

    /// Keeps the requested arguments.
    fn arguments(
        &mut self,
        scanner: &EventScanner,
        text: &[u8],
        event: EventId,
        category: Option<StringId>,
        kind: EventKind,
    ) {
        let draft = &scanner.draft;
        let all = scanner.wanted.counters && kind == EventKind::CounterRange;
        for argument in &draft.arguments {
            if all || scanner.wanted.keeps(argument.row) {
                self.argument(&scanner.argument_keys, text, event, category, *argument);
            }
        }
        // On a stream, the lane contains the stream number. Elsewhere it is an ordinary argument.
        if !kind.is_on_device() {
            for (key, token) in [(STREAM, draft.stream), (DEVICE, draft.device)] {
                if let (Some(row), Some(token)) = (key.row(), token) {
                    let argument = Argument { row, token };
                    self.argument(&scanner.argument_keys, text, event, category, argument);
                }
            }
        }
    }

    #[inline]
    pub(super) fn argument(
        &mut self,
        keys: &Keys,
        text: &[u8],
        event: EventId,
        category: Option<StringId>,
        argument: Argument,
    ) {
        if let Some(value) = argument_value(argument.token, text, &mut self.tables.strings) {
            let key = keys.name(argument.row);
            let table = self.tables.args.of_mut(category);
            table.push(event, argument.row, key, value, &mut self.tables.strings);
        }
    }

    /// Returns the source of a flow event or a part of an asynchronous event.
    fn flow_source(&mut self, draft: &Draft, text: &[u8]) -> FlowSource {
        let (process, thread) = self.track(draft, text);
        FlowSource {
            category: draft.category.map(|span| self.category(span, text)),
            name: draft.name.map(|span| self.quoted(span, text)),
            process,
            thread,
        }
    }

    /// Returns the id of a flow event: a number or any string.
    fn flow_id(&mut self, token: Token, text: &[u8]) -> Option<ArgValue> {
        if let Some(id) = integer(token, text) {
            return Some(ArgValue::Integer(id));
        }
        match token {
            Token::Text(span) => Some(ArgValue::Text(self.quoted(span, text))),
            Token::Null => None,
            token => Some(ArgValue::Text(self.tables.strings.intern(&token_text(token, text)))),
        }
    }

    fn counter(&mut self, scanner: &EventScanner, text: &[u8], at: Whereabouts) {
        let draft = &scanner.draft;
        let (process, _) = self.track(draft, text);
        let name = draft.name.map(|span| self.quoted(span, text));
        for argument in &draft.arguments {
            let value = match argument.token {
                Token::Integer(_) | Token::Number(_) => {
                    number(token_text(argument.token, text).as_bytes())
                }
                Token::Text(span) => number(span.of(text)),
                _ => None,
            };
            let series = self.tables.strings.intern(scanner.argument_keys.name(argument.row));
            self.tables.counters.push(
                name,
                series,
                process,
                draft.start_ns(),
                value.unwrap_or(f64::NAN),
                at.position,
            );
        }
    }

    fn metadata(&mut self, scanner: &EventScanner, text: &[u8], at: Whereabouts) {
        let draft = &scanner.draft;
        let (process, thread) = self.track(draft, text);
        let name = draft.name.map(|span| self.quoted(span, text));
        let is_statement = |argument: &&Argument| {
            let key = scanner.argument_keys.name(argument.row);
            matches!(key, "name" | "labels" | "sort_index" | "uptime")
        };
        let argument = draft.arguments.iter().find(is_statement).or(draft.arguments.first());
        let value = argument.map(|argument| match argument.token {
            Token::Text(span) => self.quoted(span, text),
            token => self.tables.strings.intern(&token_text(token, text)),
        });
        self.last_statement = self.tables.metadata.push(name, process, thread, value, at.position);
        self.note_statement(self.last_statement, at.position);
    }

    /// Records a metadata statement for joining the parts of the file.
    #[inline]
    pub(super) fn note_statement(&mut self, row: usize, position: u32) {
        if let Some(statements) = &mut self.statements {
            statements.push((row, position));
        }
    }

    /// Returns the handle of a category. Consecutive events often have the same category, so the
    /// last one is cached.
    #[inline]
    fn category(&mut self, span: Span, text: &[u8]) -> StringId {
        let raw = span.of(text);
        if let Some((id, spelling)) = &self.last_category
            && spelling == raw
        {
            return *id;
        }
        let id = self.quoted(span, text);
        self.last_category = Some((id, raw.to_vec()));
        id
    }

    fn quoted(&mut self, span: Span, text: &[u8]) -> StringId {
        quoted(span, text, &mut self.tables.strings)
    }

    fn lane(&mut self, draft: &Draft, text: &[u8], kind: EventKind) -> LaneId {
        let (process, thread) = self.track(draft, text);
        let on_device = |own: Option<Token>, track: Option<Token>| {
            let token = own.or(track).filter(|_| kind.is_on_device());
            token.and_then(|token| integer(token, text))
        };
        let place = Place {
            process,
            thread,
            device: on_device(draft.device, draft.process),
            stream: on_device(draft.stream, draft.thread),
        };
        let lanes = &mut self.tables.lanes;
        self.places.get(place, || lanes.intern(place))
    }

    /// Returns the process and the thread, which may be numbers or names.
    fn track(&mut self, draft: &Draft, text: &[u8]) -> Track {
        let mut number = |token: Option<Token>| match token {
            Some(Token::Integer(value)) => Number::Integer(value),
            Some(Token::Text(span)) => Number::Text(self.quoted(span, text)),
            Some(token) => Number::Text(self.tables.strings.intern(&token_text(token, text))),
            None => Number::Text(self.tables.strings.intern("")),
        };
        let track = (number(draft.process), number(draft.thread));
        let strings = &mut self.tables.strings;
        self.tracks.get(track, || (track.0.text(strings), track.1.text(strings)))
    }

    /// Pairs begin events with their end events.
    pub(super) fn pair_brackets(&mut self, findings: &mut Findings) {
        std::mem::take(&mut self.brackets).pair(&mut self.tables.events, findings);
    }

    /// Interprets an Ascend profile. Returns the number of tasks of an unknown type.
    pub(super) fn interpret(&mut self) -> u64 {
        ascend::interpret(ascend::Parts {
            strings: &self.tables.strings,
            events: &mut self.tables.events,
            lanes: &mut self.tables.lanes,
            args: &self.tables.args,
            metadata: &self.tables.metadata,
        })
    }

    /// Interprets an XProf profile; `None` for other traces.
    pub(super) fn interpret_xprof(&mut self, vocabulary: &Vocabulary) -> Option<u64> {
        xprof::interpret(self.profile(vocabulary))
    }

    /// Interprets a rocprof timeline. Returns false for other traces.
    pub(super) fn interpret_rocprof(&mut self, vocabulary: &Vocabulary) -> bool {
        let flows = std::mem::take(&mut self.tables.flows);
        let is_rocprof = rocm::interpret(self.profile(vocabulary), &flows);
        self.tables.flows = flows;
        is_rocprof
    }

    /// Whether the trace was written by `timeline.py` of `TensorFlow` 1: no event has a known kind,
    /// some have the category `Op`, and processes are named after devices.
    pub(super) fn is_timeline_of_tensorflow(&self) -> bool {
        let Some(op) = self.tables.strings.lookup("Op") else { return false };
        let is_op = |event| self.tables.events.category(event) == Some(op);
        let is_unknown = |event| self.tables.events.kind(event) == EventKind::Other;
        let mut processes = statements(&self.tables.metadata, &self.tables.strings, "process_name");
        self.tables.events.ids().any(is_op)
            && self.tables.events.ids().all(is_unknown)
            && processes.any(|process| process.value.ends_with(" Compute"))
    }

    fn profile<'a>(&'a mut self, vocabulary: &'a Vocabulary) -> Profile<'a> {
        Profile {
            strings: &mut self.tables.strings,
            events: &mut self.tables.events,
            lanes: &mut self.tables.lanes,
            args: &mut self.tables.args,
            metadata: &self.tables.metadata,
            vocabulary,
        }
    }
}

/// Returns the value of an argument; `None` for null.
#[inline]
pub(super) fn argument_value(token: Token, text: &[u8], strings: &mut Strings) -> Option<ArgValue> {
    Some(match token {
        Token::Integer(value) => ArgValue::Integer(value),
        // Integers beyond 64 bits are kept as text, because a float would lose digits.
        Token::Number(span) if is_integer(span.of(text)) => {
            ArgValue::Text(strings.intern_plain(span.of(text)))
        }
        Token::Number(span) => number(span.of(text))
            .map_or_else(|| ArgValue::Text(strings.intern_plain(span.of(text))), ArgValue::Float),
        Token::Text(span) => ArgValue::Text(quoted(span, text, strings)),
        Token::Nested(span) => ArgValue::Text(strings.intern_spelled(span.of(text))),
        Token::True => ArgValue::Text(strings.intern("true")),
        Token::False => ArgValue::Text(strings.intern("false")),
        Token::Null => return None,
    })
}

fn quoted(span: Span, text: &[u8], strings: &mut Strings) -> StringId {
    let raw = span.of(text);
    if span.is_plain() { strings.intern_plain(raw) } else { strings.intern_spelled(raw) }
}

/// Parses an id, which some writers quote.
fn id(token: Option<Token>, text: &[u8], at: Whereabouts, findings: &mut Findings) -> Option<i64> {
    let token = token?;
    // The smallest integer represents null in columns.
    let id = integer(token, text).filter(|&id| id != NO_INTEGER);
    if id.is_none() && token != Token::Null {
        findings.push((Code::BadId, at.offset));
    }
    id
}

/// The kind of each category seen so far.
#[derive(Default)]
pub(super) struct Kinds {
    of_category: Vec<Option<Meaning>>,
    vocabulary: Arc<Vocabulary>,
}

/// What a category implies for its events.
#[derive(Clone)]
pub(super) struct Meaning {
    kind: EventKind,
    exceptions: Vec<(&'static str, EventKind)>,
}

impl Kinds {
    pub(super) fn new(vocabulary: Arc<Vocabulary>) -> Self {
        Self { vocabulary, ..Self::default() }
    }

    pub(super) fn of(&mut self, category: StringId, strings: &Strings) -> &Meaning {
        if category.row() >= self.of_category.len() {
            self.of_category.resize(category.row() + 1, None);
        }
        self.of_category[category.row()].get_or_insert_with(|| {
            let category = strings.get(category);
            let kind = self.vocabulary.kind(category);
            Meaning { kind, exceptions: EventKind::exceptions(category).collect() }
        })
    }
}

impl Meaning {
    /// Whether the kind also depends on the event name.
    pub(super) fn depends_on_name(&self) -> bool {
        !self.exceptions.is_empty()
    }

    /// Returns the kind of an event by its name. A name for a wait counts only if the event records
    /// the awaited stream.
    #[inline]
    pub(super) fn kind(&self, name: &[u8], says_stream: impl FnOnce() -> bool) -> EventKind {
        let named = self.exceptions.iter().find(|(begin, _)| name.starts_with(begin.as_bytes()));
        match named {
            Some((_, EventKind::Synchronization)) if !says_stream() => self.kind,
            Some(&(_, kind)) => kind,
            None => self.kind,
        }
    }
}
