//! A part of the list of events -> tables of its own.
//!
//! A thread reads one part after the other. What it has learned stays with it, and so do its
//! texts, lanes and keys: a part hands on those that are new. A part that is not made of whole
//! events with a comma behind each is not sound, and nothing of it counts.

use std::sync::Arc;

use super::collect::{Collector, Phases};
use super::event::EventScanner;
use super::reader::{EventReader, WholeEnd};
use super::stream::EventStream;
use crate::diagnostics::Diagnostics;
use crate::error::Result;
use crate::progress::silent;
use crate::read::Options;
use crate::read::elements::Elements;
use crate::read::pairs::Brackets;
use crate::read::window::Window;
use crate::tables::{ArgTables, CounterTable, EventTable, FlowSource, FlowTable, Place};

/// Where a part stands, which begins at an event or at the white space before it.
pub(super) struct Piece {
    /// What stands there; nothing where whoever reads the part has the file.
    pub(super) bytes: Vec<u8>,
    pub(super) length: usize,
    /// The place of the first byte in the file.
    pub(super) offset: u64,
    /// Whether the indent of its first event was taken already, and must not be learned anew.
    pub(super) is_indent_taken: bool,
    /// Tables without a row, to use again.
    pub(super) rows: Rows,
}

/// The rows of a part.
pub(super) struct Rows {
    pub(super) events: EventTable,
    pub(super) args: ArgTables,
    pub(super) flows: FlowTable,
    pub(super) asyncs: FlowTable,
    pub(super) counters: CounterTable,
    pub(super) statements: Vec<(usize, u32)>,
    pub(super) brackets: Brackets,
}

impl Default for Rows {
    fn default() -> Self {
        Self {
            events: EventTable::of_part(),
            args: ArgTables::of_part(),
            flows: FlowTable::of_part(),
            asyncs: FlowTable::of_part(),
            counters: CounterTable::default(),
            statements: Vec::new(),
            brackets: Brackets::default(),
        }
    }
}

impl Rows {
    /// Leaves none, and the room for as many, so that tables need not grow anew in every part.
    pub(super) fn clear(&mut self) {
        self.events.clear();
        self.args.clear();
        self.flows.clear();
        self.asyncs.clear();
        self.counters.clear();
        self.statements.clear();
        self.brackets.clear();
    }

    /// Changes them for those that a collector has.
    fn swap(&mut self, collector: &mut Collector) {
        std::mem::swap(&mut self.events, &mut collector.events);
        std::mem::swap(&mut self.args, &mut collector.args);
        self.flows.swap_rows(&mut collector.flows);
        self.asyncs.swap_rows(&mut collector.asyncs);
        std::mem::swap(&mut self.counters, &mut collector.counters);
        let own = std::mem::take(&mut self.statements);
        self.statements = collector.statements.replace(own).unwrap_or_default();
        std::mem::swap(&mut self.brackets, &mut collector.brackets);
    }
}

impl Piece {
    /// The place behind its last byte.
    pub(super) fn end(&self) -> u64 {
        self.offset + self.length as u64
    }
}

/// What was read of a part. Texts, lanes, sources and statements are numbered as the thread
/// that read it numbers them.
pub(super) struct Part {
    /// Texts, lanes, keys, sources and statements that no part before it had, of this thread.
    pub(super) texts: Vec<String>,
    pub(super) lanes: Vec<Place>,
    pub(super) keys: Vec<String>,
    pub(super) flow_sources: Vec<FlowSource>,
    pub(super) async_sources: Vec<FlowSource>,
    pub(super) new_statements: Vec<[u32; 4]>,
    pub(super) rows: Rows,
    pub(super) phases: Phases,
    pub(super) n_events: u64,
    /// How many elements it has.
    pub(super) n_elements: u32,
    pub(super) diagnostics: Diagnostics,
    /// The indent that was learned last.
    pub(super) indent: Vec<u8>,
}

/// A thread's reader of parts.
pub(super) struct PartReader {
    events: EventReader<'static>,
    known: Known,
    is_strict: bool,
}

/// How much of what is numbered was handed on.
#[derive(Default)]
struct Known {
    texts: usize,
    lanes: usize,
    keys: usize,
    flow_sources: usize,
    async_sources: usize,
    statements: usize,
}

impl PartReader {
    /// A reader for files in which events are indented by `indent`; `window` is on the file that
    /// parts are in, unless they have their bytes with them.
    pub(super) fn new(options: &Options, indent: Vec<u8>, window: Option<Window<'static>>) -> Self {
        let window = window.unwrap_or_else(|| Window::on(Vec::new(), 0, 0));
        let elements = Elements::new(window, Diagnostics::default(), &silent, false);
        let scanner = EventScanner::new(options.arguments.keys());
        let known = Known { keys: scanner.argument_keys.len(), ..Known::default() };
        let mut stream = EventStream::new(elements, scanner);
        stream.indent = indent;
        let mut collector = Collector::new(Arc::clone(&options.vocabulary));
        // So that statements are kept, and no row is packed.
        (collector.flows, collector.asyncs) = (FlowTable::of_part(), FlowTable::of_part());
        Rows::default().swap(&mut collector);
        let events = EventReader::new(stream, collector, !options.scan_all);
        Self { events, known, is_strict: options.strict }
    }

    /// Reads a part; none where it is not sound. What is no part any more is the piece.
    pub(super) fn read(&mut self, piece: &mut Piece) -> Option<Part> {
        let end = self.events.take_piece(piece);
        let is_whole = matches!(end, Ok(end) if end.is_whole);
        let elements = &mut self.events.stream.elements;
        let is_refused = self.is_strict && !elements.diagnostics.is_empty();
        let is_joinable = !self.events.collector.strings.is_order_bound
            && !self.events.stream.scanner.argument_keys.is_full();
        (is_whole && !is_refused && is_joinable).then(|| self.part(std::mem::take(&mut piece.rows)))
    }

    /// Takes what was read, and what is new in what stays; leaves `rows`, which are empty.
    fn part(&mut self, mut rows: Rows) -> Part {
        let EventReader { stream, collector, position, .. } = &mut self.events;
        let keys = &stream.scanner.argument_keys;
        let known = &mut self.known;
        let new_texts = fresh(&mut known.texts, collector.strings.len());
        let new_keys = fresh(&mut known.keys, keys.len());
        rows.swap(collector);
        let new_statements = fresh(&mut known.statements, collector.metadata.len());
        Part {
            texts: collector.strings.iter().skip(new_texts.start).map(str::to_owned).collect(),
            lanes: fresh_rows(&mut known.lanes, collector.lanes.places()),
            keys: new_keys.map(|row| keys.name(row).to_owned()).collect(),
            flow_sources: fresh_rows(&mut known.flow_sources, collector.flows.sources()),
            async_sources: fresh_rows(&mut known.async_sources, collector.asyncs.sources()),
            new_statements: new_statements.map(|row| collector.metadata.statement(row)).collect(),
            rows,
            phases: std::mem::take(&mut collector.phases),
            n_events: std::mem::take(&mut collector.n_events),
            n_elements: std::mem::take(position),
            diagnostics: std::mem::take(&mut stream.elements.diagnostics),
            indent: stream.indent.clone(),
        }
    }
}

impl EventReader<'_> {
    /// Reads the whole events of a part with a comma behind each; the window is then what it was.
    pub(super) fn take_piece(&mut self, piece: &mut Piece) -> Result<WholeEnd> {
        let window = &mut self.stream.elements.window;
        let bytes = std::mem::take(&mut piece.bytes);
        let outside = window.enter(bytes, piece.length, piece.offset);
        let end = self.take_whole(piece.is_indent_taken);
        piece.bytes = self.stream.elements.window.leave(outside);
        let end = end?;
        // A file may have become shorter.
        Ok(WholeEnd { is_whole: end.is_whole && end.offset == piece.end(), ..end })
    }
}

/// The rows that are new where so many were known.
fn fresh(known: &mut usize, length: usize) -> std::ops::Range<usize> {
    std::mem::replace(known, length)..length
}

fn fresh_rows<T: Copy>(known: &mut usize, rows: &[T]) -> Vec<T> {
    rows[fresh(known, rows.len())].to_vec()
}
