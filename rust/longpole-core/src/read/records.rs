//! Turns records of binary formats into table rows, with the same checks as for JSON events.

use std::sync::Arc;

use super::options::Options;
use super::recent::Recent;
use crate::diagnostics::{Code, Diagnostics};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{EventId, LaneId, NO_ROW, StringId};
use crate::strings::Strings;
use crate::tables::{
    ArgTables, ArgValue, CounterTable, EventKind, EventRow, EventTable, FlowTable, Header,
    LaneTable, MetadataTable, Place, Tables,
};
use crate::time::MAX_TIME_NS;

/// The tables under construction.
pub(super) struct Records<'a> {
    pub(super) strings: Strings,
    pub(super) diagnostics: Diagnostics,
    /// The offset of the current record, if the format has offsets.
    pub(super) offset: Option<u64>,
    events: EventTable,
    lanes: LaneTable,
    args: ArgTables,
    counters: CounterTable,
    metadata: MetadataTable,
    options: &'a Options,
    /// The arguments of the format, and whether each is kept.
    arguments: &'static [&'static str],
    is_kept: Vec<bool>,
    places: Recent<Place, LaneId>,
    n_events: u32,
    n_counters: u64,
    n_statements: u64,
}

/// A record of an event.
pub(super) struct Record {
    pub(super) kind: EventKind,
    pub(super) category: StringId,
    pub(super) name: Option<StringId>,
    pub(super) lane: LaneId,
    pub(super) start_ns: Option<i64>,
    /// `None` for an event that never ended.
    pub(super) end_ns: Option<i64>,
    pub(super) correlation: Option<i64>,
}

impl<'a> Records<'a> {
    pub(super) fn new(arguments: &'static [&'static str], options: &'a Options) -> Self {
        Self {
            is_kept: arguments.iter().map(|name| options.arguments.keeps(name)).collect(),
            arguments,
            options,
            strings: Strings::default(),
            diagnostics: Diagnostics::default(),
            offset: None,
            events: EventTable::default(),
            lanes: LaneTable::default(),
            args: ArgTables::default(),
            counters: CounterTable::default(),
            metadata: MetadataTable::default(),
            places: Recent::default(),
            n_events: 0,
            n_counters: 0,
            n_statements: 0,
        }
    }

    /// Returns the number of records read.
    pub(super) fn n_records(&self) -> u64 {
        u64::from(self.n_events)
    }

    /// Whether the maximum number of records is reached, which is reported.
    pub(super) fn is_full(&mut self) -> bool {
        let limit = self.options.max_events.unwrap_or(u64::MAX).min(u64::from(NO_ROW) - 1);
        let is_full = self.n_records() >= limit;
        if is_full && self.diagnostics.count(Code::LimitReached) == 0 {
            self.note(Code::LimitReached);
        }
        is_full
    }

    /// Reports a problem with the current record.
    pub(super) fn note(&mut self, code: Code) {
        self.note_many(code, 1);
    }

    /// Reports a problem with several records after those read so far.
    pub(super) fn note_many(&mut self, code: Code, count: u64) {
        let place = self.offset.unwrap_or(self.n_records());
        self.diagnostics.add_many(code, place, count);
    }

    /// Whether an argument is kept, by its index in the list of the format.
    pub(super) fn keeps(&self, argument: usize) -> bool {
        self.is_kept[argument]
    }

    /// Returns a string from bytes that may be invalid UTF-8. Valid text has no zero bytes, but a
    /// lost page has.
    pub(super) fn text(&mut self, bytes: &[u8]) -> StringId {
        let whole = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
        if whole.len() < bytes.len() {
            self.note(Code::DamagedText);
        }
        let (text, is_altered) = utf8(whole);
        if is_altered {
            self.note(Code::InvalidUtf8);
        }
        self.strings.intern(&text)
    }

    /// Returns the handle of a lane.
    pub(super) fn lane(&mut self, place: Place) -> LaneId {
        let lanes = &mut self.lanes;
        self.places.get(place, || lanes.intern(place))
    }

    /// Adds an event; `None` if it has no time.
    pub(super) fn add(&mut self, record: &Record) -> Option<EventId> {
        let start_ns = self.start_ns(record)?;
        let duration_ns = self.duration_ns(start_ns, record);
        if record.name.is_none() {
            self.note(Code::MissingName);
        }
        let event = self.events.push(&EventRow {
            kind: record.kind,
            category: Some(record.category),
            name: record.name,
            lane: record.lane,
            start_ns,
            duration_ns,
            correlation: record.correlation,
            external_id: None,
            position: self.n_events,
        });
        self.n_events += 1;
        Some(event)
    }

    fn start_ns(&mut self, record: &Record) -> Option<i64> {
        let fault = match record.start_ns {
            None => Code::MissingTimestamp,
            Some(ns) if !(-MAX_TIME_NS..=MAX_TIME_NS).contains(&ns) => Code::BadTimestamp,
            Some(ns) => {
                if ns < 0 {
                    self.note(Code::NegativeTimestamp);
                } else if ns == 0 && record.kind.is_device_work() {
                    self.note(Code::ZeroTimestamp);
                }
                return Some(ns);
            }
        };
        self.note(fault);
        None
    }

    fn duration_ns(&mut self, start_ns: i64, record: &Record) -> Option<i64> {
        if record.kind == EventKind::Instant {
            return None;
        }
        let is_range = matches!(record.kind, EventKind::Annotation | EventKind::Operator);
        let (fault, duration_ns) = match record.end_ns {
            None if is_range => (Code::UnmatchedBegin, None),
            None => (Code::MissingDuration, None),
            Some(ns) if !(-MAX_TIME_NS..=MAX_TIME_NS).contains(&ns) => (Code::HugeDuration, None),
            Some(ns) if ns < start_ns => (Code::NegativeDuration, Some(ns - start_ns)),
            Some(ns) => return Some(ns - start_ns),
        };
        self.note(fault);
        duration_ns
    }

    /// Keeps an argument of the last event, by its index in the list of the format.
    #[inline]
    pub(super) fn argument(
        &mut self,
        event: EventId,
        category: StringId,
        argument: usize,
        value: Option<ArgValue>,
    ) {
        if let Some(value) = value.filter(|_| self.is_kept[argument]) {
            let key = self.arguments[argument];
            let table = self.args.of_mut(Some(category));
            table.push(event, argument, key, value, &mut self.strings);
        }
    }

    /// Adds a sample of a counter.
    pub(super) fn sample(
        &mut self,
        name: StringId,
        series: StringId,
        process: StringId,
        time_ns: Option<i64>,
        value: Option<f64>,
    ) {
        let time_ns = time_ns.filter(|ns| (-MAX_TIME_NS..=MAX_TIME_NS).contains(ns));
        let Some(time_ns) = time_ns else { return self.note(Code::BadTimestamp) };
        let value = value.unwrap_or(f64::NAN);
        self.counters.push(Some(name), series, process, time_ns, value, self.n_events);
        self.n_events += 1;
        self.n_counters += 1;
    }

    /// Adds metadata of a process or a thread, such as its name.
    pub(super) fn state(
        &mut self,
        what: &str,
        process: StringId,
        thread: StringId,
        value: StringId,
    ) {
        let what = self.strings.intern(what);
        self.metadata.push(Some(what), process, thread, Some(value), self.n_events);
        self.n_events += 1;
        self.n_statements += 1;
    }

    /// Returns the lanes of the events so far, each once.
    pub(super) fn places(&self) -> &[Place] {
        self.lanes.places()
    }

    /// Returns the tables, if strict reading accepts the findings.
    pub(super) fn finish(mut self, header: Header, bytes: u64) -> Result<Tables> {
        let refused = self.diagnostics.iter().find(|row| row.code.is_refused_by_strict());
        if let Some(row) = refused.filter(|_| self.options.strict) {
            return Err(Error::new(ErrorKind::Strict(row.code), row.first_offset));
        }
        self.events.finish();
        self.args.finish();
        let counts = [
            (b'C', self.n_counters),
            (b'M', self.n_statements),
            (b'X', u64::from(self.n_events) - self.n_counters - self.n_statements),
        ];
        Ok(Tables {
            strings: self.strings.freeze(),
            vocabulary: Arc::clone(&self.options.vocabulary),
            events: Arc::new(self.events),
            lanes: Arc::new(self.lanes),
            arguments: self.options.arguments.clone(),
            args: Arc::new(self.args),
            flows: Arc::new(FlowTable::default()),
            counters: Arc::new(self.counters),
            asyncs: Arc::new(FlowTable::default()),
            metadata: Arc::new(self.metadata),
            header: Arc::new(header),
            diagnostics: self.diagnostics,
            phases: counts.into_iter().filter(|&(_, count)| count > 0).collect(),
            bytes,
        })
    }
}

/// Returns bytes as text, and whether the conversion changed them.
fn utf8(bytes: &[u8]) -> (std::borrow::Cow<'_, str>, bool) {
    let text = String::from_utf8_lossy(bytes);
    let is_altered = matches!(text, std::borrow::Cow::Owned(_));
    (text, is_altered)
}
