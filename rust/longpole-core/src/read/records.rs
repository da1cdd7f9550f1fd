//! Turns records of binary formats into table rows, with the same checks as for JSON events.

use super::options::Options;
use super::recent::Recent;
use super::rows::TableBuilder;
use crate::diagnostics::{Code, Diagnostics};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{EventId, LaneId, NO_ROW, StringId};
use crate::tables::{ArgValue, EventKind, EventRow, Header, Place, Tables};
use crate::time::MAX_TIME_NS;

/// The tables under construction.
pub(super) struct Records<'a> {
    pub(super) tables: TableBuilder,
    options: &'a Options,
    pub(super) diagnostics: Diagnostics,
    /// The offset of the current record, if the format has offsets.
    pub(super) offset: Option<u64>,
    /// The arguments of the format, and whether each is kept.
    arguments: &'static [&'static str],
    is_kept: Vec<bool>,
    places: Recent<Place, LaneId>,
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
            tables: TableBuilder::default(),
            options,
            diagnostics: Diagnostics::default(),
            offset: None,
            places: Recent::default(),
        }
    }

    /// Returns the number of records read.
    pub(super) fn n_records(&self) -> u64 {
        self.tables.n_events
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
        self.tables.strings.intern(&text)
    }

    /// Returns the handle of a lane.
    pub(super) fn lane(&mut self, place: Place) -> LaneId {
        let lanes = &mut self.tables.lanes;
        self.places.get(place, || lanes.intern(place))
    }

    /// Adds an event; `None` if it has no time.
    pub(super) fn add(&mut self, record: &Record) -> Option<EventId> {
        let start_ns = self.start_ns(record)?;
        let duration_ns = self.duration_ns(start_ns, record);
        if record.name.is_none() {
            self.note(Code::MissingName);
        }
        let row = EventRow {
            kind: record.kind,
            category: Some(record.category),
            name: record.name,
            lane: record.lane,
            start_ns,
            duration_ns,
            correlation: record.correlation,
            external_id: None,
            position: self.tables.count(b'X'),
        };
        Some(self.tables.events.push(&row))
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
            let tables = &mut self.tables;
            tables.args.of_mut(Some(category)).push(
                event,
                argument,
                key,
                value,
                &mut tables.strings,
            );
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
        let position = self.tables.count(b'C');
        self.tables.counters.push(Some(name), series, process, time_ns, value, position);
    }

    /// Adds metadata of a process or a thread, such as its name.
    pub(super) fn state(
        &mut self,
        what: &str,
        process: StringId,
        thread: StringId,
        value: StringId,
    ) {
        let position = self.tables.count(b'M');
        let what = self.tables.strings.intern(what);
        self.tables.metadata.push(Some(what), process, thread, Some(value), position);
    }

    /// Returns the lanes of the events so far, each once.
    pub(super) fn places(&self) -> &[Place] {
        self.tables.lanes.places()
    }

    /// Returns the tables, if strict reading accepts the findings.
    pub(super) fn finish(self, header: Header, bytes: u64) -> Result<Tables> {
        let refused = self.diagnostics.iter().find(|row| row.code.is_refused_by_strict());
        if let Some(row) = refused.filter(|_| self.options.strict) {
            return Err(Error::new(ErrorKind::Strict(row.code), row.first_offset));
        }
        Ok(self.tables.finish(self.options, header, self.diagnostics, bytes))
    }
}

/// Returns bytes as text, and whether the conversion changed them.
fn utf8(bytes: &[u8]) -> (std::borrow::Cow<'_, str>, bool) {
    let text = String::from_utf8_lossy(bytes);
    let is_altered = matches!(text, std::borrow::Cow::Owned(_));
    (text, is_altered)
}
