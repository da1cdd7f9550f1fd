//! The tables of a trace while its file is read.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use super::Options;
use crate::diagnostics::{Code, Diagnostics};
use crate::ids::{EventId, StringId};
use crate::strings::Strings;
use crate::tables::{
    ArgTables, ArgValue, Arguments, CounterTable, EventRow, EventTable, FlowSource, FlowTable,
    Header, LaneTable, MetadataTable, Tables,
};
use crate::time::MAX_TIME_NS;
use crate::vocabulary::EventKind;

/// The tables of a trace under construction, for every format.
#[derive(Default)]
pub(super) struct TableBuilder {
    pub(super) strings: Strings,
    pub(super) events: EventTable,
    pub(super) lanes: LaneTable,
    pub(super) args: ArgTables,
    pub(super) flows: FlowTable,
    pub(super) asyncs: FlowTable,
    pub(super) counters: CounterTable,
    pub(super) metadata: MetadataTable,
    pub(super) phases: Phases,
    /// Number of entries of any phase.
    pub(super) n_events: u64,
}

/// The number of entries of each phase letter.
pub(super) struct Phases(pub(super) [u64; 256]);

impl Default for Phases {
    fn default() -> Self {
        Self([0; 256])
    }
}

impl TableBuilder {
    /// Counts an entry of the file with a given phase. Returns its position among all entries.
    #[inline]
    pub(super) fn count(&mut self, phase: u8) -> u32 {
        self.phases.0[usize::from(phase)] += 1;
        self.n_events += 1;
        u32::try_from(self.n_events - 1).unwrap_or(u32::MAX)
    }

    /// Releases spare memory before the last changes; no rows can be added afterwards.
    pub(super) fn seal(&mut self) {
        self.events.finish();
        self.args.finish();
        self.flows.finish();
        self.asyncs.finish();
    }

    /// Returns the finished tables.
    pub(super) fn finish(
        mut self,
        options: &Options,
        header: Header,
        diagnostics: Diagnostics,
        bytes: u64,
    ) -> Tables {
        self.seal();
        let phases = (0..=u8::MAX).zip(self.phases.0).filter(|&(_, count)| count > 0).collect();
        Tables {
            strings: self.strings.freeze(),
            vocabulary: Arc::clone(&options.vocabulary),
            arguments: options.arguments.clone(),
            events: Arc::new(self.events),
            lanes: Arc::new(self.lanes),
            args: Arc::new(self.args),
            flows: Arc::new(self.flows),
            counters: Arc::new(self.counters),
            asyncs: Arc::new(self.asyncs),
            metadata: Arc::new(self.metadata),
            header: Arc::new(header),
            diagnostics,
            phases,
            bytes,
        }
    }
}

/// Tables to which readers of formats other than JSON append.
///
/// Events are numbered in the order in which they are appended, and only the requested arguments
/// are kept.
pub(super) struct Rows<'a> {
    pub(super) options: &'a Options,
    pub(super) tables: TableBuilder,
    kinds: HashMap<StringId, EventKind>,
    /// The number of each key that is kept; `None` for the others.
    keys: HashMap<String, Option<usize>>,
    /// The number of each counter of counter ranges that is kept only for its range.
    counter_keys: HashMap<String, usize>,
    n_kept: usize,
    /// Number of strings altered since the last call of [`take_altered`](Self::take_altered).
    n_altered: u64,
}

impl<'a> Rows<'a> {
    pub(super) fn new(options: &'a Options) -> Self {
        Self {
            options,
            tables: TableBuilder::default(),
            kinds: HashMap::new(),
            keys: HashMap::new(),
            counter_keys: HashMap::new(),
            n_kept: 0,
            n_altered: 0,
        }
    }

    /// Whether the requested number of events was read.
    pub(super) fn is_full(&self) -> bool {
        self.options.max_events.is_some_and(|most| self.tables.n_events >= most)
    }

    /// Counts an entry of the file with a given phase. Returns its position.
    pub(super) fn count(&mut self, phase: u8) -> u32 {
        self.tables.count(phase)
    }

    pub(super) fn event(&mut self, phase: u8, row: EventRow) -> EventId {
        let position = self.count(phase);
        self.tables.events.push(&EventRow { position, ..row })
    }

    /// Returns a string. Invalid UTF-8 is replaced and counted.
    pub(super) fn text(&mut self, bytes: &[u8]) -> StringId {
        let text = String::from_utf8_lossy(bytes);
        self.n_altered += u64::from(matches!(text, Cow::Owned(_)));
        self.tables.strings.intern(&text)
    }

    /// Returns the number of strings altered since the last call.
    pub(super) fn take_altered(&mut self) -> u64 {
        std::mem::take(&mut self.n_altered)
    }

    /// Returns the kind of the events of a category.
    pub(super) fn kind(&mut self, category: StringId) -> EventKind {
        let Self { kinds, options, tables, .. } = self;
        let kind = || options.vocabulary.kind(tables.strings.get(category));
        *kinds.entry(category).or_insert_with(kind)
    }

    /// Whether arguments with this name are kept.
    pub(super) fn keeps(&mut self, key: &str) -> bool {
        self.key(key).is_some()
    }

    fn key(&mut self, key: &str) -> Option<usize> {
        if let Some(&number) = self.keys.get(key) {
            return number;
        }
        let number = self.options.arguments.keeps(key).then_some(self.n_kept);
        self.n_kept += usize::from(number.is_some());
        // Names come from the file, so those that are not kept must not fill memory.
        if number.is_some() || self.keys.len() < MOST_KEYS {
            self.keys.insert(key.to_owned(), number);
        }
        number
    }

    /// Keeps an argument of the last event with arguments, or a later one, if it was requested.
    pub(super) fn argument(
        &mut self,
        event: EventId,
        category: Option<StringId>,
        key: &str,
        value: ArgValue,
    ) {
        if let Some(number) = self.key(key) {
            self.tables.args.of_mut(category).push(
                event,
                number,
                key,
                value,
                &mut self.tables.strings,
            );
        }
    }

    /// Whether all counters of a counter range are kept.
    pub(super) fn keeps_counters(&self) -> bool {
        self.options.arguments == Arguments::Default
    }

    /// Keeps a counter of the last event with arguments, or a later one.
    pub(super) fn counter_of_range(
        &mut self,
        event: EventId,
        category: Option<StringId>,
        key: &str,
        value: ArgValue,
    ) {
        let number = self.key(key).or_else(|| self.counter_keys.get(key).copied());
        let number = number.unwrap_or_else(|| {
            self.counter_keys.insert(key.to_owned(), self.n_kept);
            self.n_kept += 1;
            self.n_kept - 1
        });
        self.tables.args.of_mut(category).push(event, number, key, value, &mut self.tables.strings);
    }

    /// Adds metadata of a process or a thread.
    pub(super) fn statement(&mut self, name: &str, process: &str, thread: &str, value: &str) {
        let position = self.count(b'M');
        let name = self.tables.strings.intern(name);
        let (process, thread) =
            (self.tables.strings.intern(process), self.tables.strings.intern(thread));
        let value = self.tables.strings.intern(value);
        self.tables.metadata.push(Some(name), process, thread, Some(value), position);
    }

    /// Adds an end of a flow arrow.
    pub(super) fn arrow(&mut self, phase: u8, id: u64, source: FlowSource, time_ns: i64) {
        let position = self.count(phase);
        let id = match i64::try_from(id) {
            Ok(id) => ArgValue::Integer(id),
            Err(_) => ArgValue::Text(self.tables.strings.intern(&id.to_string())),
        };
        self.arrow_at(position, phase, Some(id), source, time_ns);
    }

    /// Adds an end of a flow arrow, or a part of an asynchronous event, whose position was already
    /// counted.
    pub(super) fn arrow_at(
        &mut self,
        position: u32,
        phase: u8,
        id: Option<ArgValue>,
        source: FlowSource,
        time_ns: i64,
    ) {
        let is_arrow = matches!(phase, b's' | b't' | b'f');
        let table = if is_arrow { &mut self.tables.flows } else { &mut self.tables.asyncs };
        let source = table.source_row(source);
        table.push(phase, id, source, time_ns, position, &mut self.tables.strings);
    }

    pub(super) fn finish(self, header: Header, diagnostics: Diagnostics, bytes: u64) -> Tables {
        self.tables.finish(self.options, header, diagnostics, bytes)
    }
}

/// Returns the duration to keep, and the problem with it.
pub(super) fn kept_duration(start_ns: i64, duration_ns: i128) -> (Option<i64>, Option<Code>) {
    match i64::try_from(duration_ns) {
        Ok(ns) if ns < 0 => (Some(ns), Some(Code::NegativeDuration)),
        Ok(ns) if start_ns.saturating_add(ns) <= MAX_TIME_NS => (Some(ns), None),
        _ => (None, Some(Code::HugeDuration)),
    }
}

/// Maximum number of remembered argument names that are not kept.
const MOST_KEYS: usize = 4096;
