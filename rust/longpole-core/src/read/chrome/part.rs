//! Reads a part of the event list into separate tables.
//!
//! Each thread reads one part after the other. It keeps its predictions, strings, lanes and keys,
//! and a part passes on only the new ones. A part is valid only if it consists of whole events,
//! each followed by a comma; otherwise all of it is discarded.

use std::sync::Arc;

use super::collect::Collector;
use super::event::EventScanner;
use super::reader::{EventReader, WholeEnd};
use super::stream::EventStream;
use crate::diagnostics::Diagnostics;
use crate::error::Result;
use crate::progress::silent;
use crate::read::Options;
use crate::read::elements::Elements;
use crate::read::pairs::Brackets;
use crate::read::rows::Phases;
use crate::read::window::Window;
use crate::tables::{ArgTables, CounterTable, EventTable, FlowSource, FlowTable, Place};

/// A part of the file, which begins at an event or at the white space before it.
pub(super) struct Piece {
    /// Its bytes; empty if the reader of the part fetches them from the file.
    pub(super) bytes: Vec<u8>,
    pub(super) length: usize,
    /// The offset of its first byte in the file.
    pub(super) offset: u64,
    /// Whether the indent of its first event was already consumed and must not be learned again.
    pub(super) is_indent_taken: bool,
    /// Empty tables for reuse.
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
    /// Removes all rows but keeps the capacity, so that tables need not grow again in every part.
    pub(super) fn clear(&mut self) {
        self.events.clear();
        self.args.clear();
        self.flows.clear();
        self.asyncs.clear();
        self.counters.clear();
        self.statements.clear();
        self.brackets.clear();
    }

    /// Swaps the rows with those of a collector.
    fn swap(&mut self, collector: &mut Collector) {
        std::mem::swap(&mut self.events, &mut collector.tables.events);
        std::mem::swap(&mut self.args, &mut collector.tables.args);
        self.flows.swap_rows(&mut collector.tables.flows);
        self.asyncs.swap_rows(&mut collector.tables.asyncs);
        std::mem::swap(&mut self.counters, &mut collector.tables.counters);
        let own = std::mem::take(&mut self.statements);
        self.statements = collector.statements.replace(own).unwrap_or_default();
        std::mem::swap(&mut self.brackets, &mut collector.brackets);
    }
}

impl Piece {
    /// Returns the offset after its last byte.
    pub(super) fn end(&self) -> u64 {
        self.offset + self.length as u64
    }
}

/// The result of reading a part. Strings, lanes, sources and statements have the numbers of the
/// thread that read it.
pub(super) struct Part {
    /// Strings, lanes, keys, sources and statements that are new to this thread.
    pub(super) texts: Vec<String>,
    pub(super) lanes: Vec<Place>,
    pub(super) keys: Vec<String>,
    pub(super) flow_sources: Vec<FlowSource>,
    pub(super) async_sources: Vec<FlowSource>,
    pub(super) new_statements: Vec<[u32; 4]>,
    pub(super) rows: Rows,
    pub(super) phases: Phases,
    pub(super) n_events: u64,
    /// Number of its elements.
    pub(super) n_elements: u32,
    pub(super) diagnostics: Diagnostics,
    /// The indent learned last.
    pub(super) indent: Vec<u8>,
}

/// The reader of parts in a thread.
pub(super) struct PartReader {
    events: EventReader<'static>,
    known: Known,
    is_strict: bool,
}

/// The number of entries of each kind already passed on.
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
    /// Creates a reader for files with events indented by `indent`. `window` is on the file that
    /// contains the parts, unless they carry their bytes.
    pub(super) fn new(options: &Options, indent: Vec<u8>, window: Option<Window<'static>>) -> Self {
        let window = window.unwrap_or_else(|| Window::on(Vec::new(), 0, 0));
        let elements = Elements::new(window, Diagnostics::default(), &silent, false);
        let scanner = EventScanner::new(options.arguments.keys());
        let known = Known { keys: scanner.argument_keys.len(), ..Known::default() };
        let mut stream = EventStream::new(elements, scanner);
        stream.indent = indent;
        let mut collector = Collector::new(Arc::clone(&options.vocabulary));
        // This keeps statements and leaves rows unpacked.
        (collector.tables.flows, collector.tables.asyncs) =
            (FlowTable::of_part(), FlowTable::of_part());
        Rows::default().swap(&mut collector);
        let events = EventReader::new(stream, collector, !options.scan_all);
        Self { events, known, is_strict: options.strict }
    }

    /// Reads a part; `None` if it is not valid. On return, `piece` is the text that was not read.
    pub(super) fn read(&mut self, piece: &mut Piece) -> Option<Part> {
        let end = self.events.take_piece(piece);
        let is_whole = matches!(end, Ok(end) if end.is_whole);
        let elements = &mut self.events.stream.elements;
        let is_refused = self.is_strict && !elements.diagnostics.is_empty();
        let is_joinable = !self.events.collector.tables.strings.is_order_bound
            && !self.events.stream.scanner.argument_keys.is_full();
        (is_whole && !is_refused && is_joinable).then(|| self.part(std::mem::take(&mut piece.rows)))
    }

    /// Returns the rows and the new entries, and leaves the empty `rows` in their place.
    fn part(&mut self, mut rows: Rows) -> Part {
        let EventReader { stream, collector, position, .. } = &mut self.events;
        let keys = &stream.scanner.argument_keys;
        let known = &mut self.known;
        let new_texts = fresh(&mut known.texts, collector.tables.strings.len());
        let new_keys = fresh(&mut known.keys, keys.len());
        rows.swap(collector);
        let new_statements = fresh(&mut known.statements, collector.tables.metadata.len());
        Part {
            texts: collector
                .tables
                .strings
                .iter()
                .skip(new_texts.start)
                .map(str::to_owned)
                .collect(),
            lanes: fresh_rows(&mut known.lanes, collector.tables.lanes.places()),
            keys: new_keys.map(|row| keys.name(row).to_owned()).collect(),
            flow_sources: fresh_rows(&mut known.flow_sources, collector.tables.flows.sources()),
            async_sources: fresh_rows(&mut known.async_sources, collector.tables.asyncs.sources()),
            new_statements: new_statements
                .map(|row| collector.tables.metadata.statement(row))
                .collect(),
            rows,
            phases: std::mem::take(&mut collector.tables.phases),
            n_events: std::mem::take(&mut collector.tables.n_events),
            n_elements: std::mem::take(position),
            diagnostics: std::mem::take(&mut stream.elements.diagnostics),
            indent: stream.indent.clone(),
        }
    }
}

impl EventReader<'_> {
    /// Reads the whole events of a part, each with its comma, and restores the window.
    pub(super) fn take_piece(&mut self, piece: &mut Piece) -> Result<WholeEnd> {
        let window = &mut self.stream.elements.window;
        let bytes = std::mem::take(&mut piece.bytes);
        let outside = window.enter(bytes, piece.length, piece.offset);
        let end = self.take_whole(piece.is_indent_taken);
        piece.bytes = self.stream.elements.window.leave(outside);
        let end = end?;
        // The file may have been truncated meanwhile.
        Ok(WholeEnd { is_whole: end.is_whole && end.offset == piece.end(), ..end })
    }
}

/// Returns the range of rows that are new since `known`.
fn fresh(known: &mut usize, length: usize) -> std::ops::Range<usize> {
    std::mem::replace(known, length)..length
}

fn fresh_rows<T: Copy>(known: &mut usize, rows: &[T]) -> Vec<T> {
    rows[fresh(known, rows.len())].to_vec()
}
