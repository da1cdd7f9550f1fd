//! The events of a trace as columns, which every later stage reads and none changes.
//!
//! A row costs a few dozen bytes whatever its names are: names are numbers into `strings`, places
//! are rows of `lanes`. A value that the file does not give is a marked integer, not an `Option`.

use super::args::renamed;
use super::columns::columns;
use crate::ids::{EventId, InColumn, LaneId, StringId, NO_INTEGER};
use crate::vocabulary::{EventKind, Names};

/// One event, as the reader appends it.
#[derive(Debug, Clone, Copy)]
pub struct EventRow {
    /// What it is.
    pub kind: EventKind,
    /// What the profiler called that.
    pub category: Option<StringId>,
    /// Its name.
    pub name: Option<StringId>,
    /// Where it happened.
    pub lane: LaneId,
    /// When it began.
    pub start_ns: i64,
    /// How long it took; none for instants and what never ended.
    pub duration_ns: Option<i64>,
    /// The number that a call and what it launched have in common.
    pub correlation: Option<i64>,
    /// The number that the profiler of the framework gave to its operator.
    pub external_id: Option<i64>,
    /// Its place among the elements of the event list.
    pub position: u32,
}

/// The events of one trace that have a place in time, in the order of the file.
///
/// Written once, by the reader, and never changed after.
#[derive(Debug, Clone, Default)]
pub struct EventTable {
    kind: Vec<u8>,
    category: Vec<u32>,
    name: Vec<u32>,
    lane: Vec<u32>,
    start_ns: Vec<i64>,
    duration_ns: Vec<i64>,
    correlation: Vec<i64>,
    external_id: Vec<i64>,
    position: Vec<u32>,
}

columns! {
    EventTable:
    kind Bytes,
    category Rows,
    name Rows,
    lane Rows,
    start_ns Integers,
    duration_ns Integers,
    correlation Integers,
    external_id Integers,
    position Rows,
}

impl EventTable {
    /// Appends an event and returns its handle.
    pub fn push(&mut self, row: &EventRow) -> EventId {
        let id = EventId::from_row(self.kind.len());
        self.kind.push(row.kind as u8);
        self.category.push(row.category.in_column());
        self.name.push(row.name.in_column());
        self.lane.push(Some(row.lane).in_column());
        self.start_ns.push(row.start_ns);
        self.duration_ns.push(row.duration_ns.unwrap_or(NO_INTEGER));
        self.correlation.push(row.correlation.unwrap_or(NO_INTEGER));
        self.external_id.push(row.external_id.unwrap_or(NO_INTEGER));
        self.position.push(row.position);
        id
    }

    /// Appends the events of a later part of the file, whose texts and lanes have these numbers
    /// here, and whose elements stand behind `position` others.
    pub(crate) fn append(&mut self, later: &Self, texts: &[u32], lanes: &[u32], position: u32) {
        self.kind.extend_from_slice(&later.kind);
        self.category.extend(later.category.iter().map(|&text| renamed(text, texts)));
        self.name.extend(later.name.iter().map(|&text| renamed(text, texts)));
        self.lane.extend(later.lane.iter().map(|&lane| renamed(lane, lanes)));
        self.start_ns.extend_from_slice(&later.start_ns);
        self.duration_ns.extend_from_slice(&later.duration_ns);
        self.correlation.extend_from_slice(&later.correlation);
        self.external_id.extend_from_slice(&later.external_id);
        self.position.extend(later.position.iter().map(|&place| place + position));
    }

    /// The reader found the end of a begin event.
    pub(crate) fn close(&mut self, event: EventId, end_ns: i64) {
        self.duration_ns[event.row()] = end_ns.saturating_sub(self.start_ns[event.row()]);
    }

    /// The reader found out what the event is from what stands elsewhere in the file.
    pub(crate) fn assign_kind(&mut self, event: EventId, kind: EventKind) {
        self.kind[event.row()] = kind as u8;
    }

    /// The reader found out where it happened.
    pub(crate) fn assign_lane(&mut self, event: EventId, lane: LaneId) {
        self.lane[event.row()] = Some(lane).in_column();
    }

    /// How many events there are.
    pub fn len(&self) -> usize {
        self.kind.len()
    }

    /// Whether the trace held no event.
    pub fn is_empty(&self) -> bool {
        self.kind.is_empty()
    }

    /// Every handle, in the order of the file.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = EventId> {
        (0..self.len()).map(EventId::from_row)
    }

    /// What the event is.
    pub fn kind(&self, event: EventId) -> EventKind {
        EventKind::ALL[usize::from(self.kind[event.row()])]
    }

    /// What the profiler called its kind.
    pub fn category(&self, event: EventId) -> Option<StringId> {
        StringId::from_column(self.category[event.row()])
    }

    /// Its name.
    pub fn name(&self, event: EventId) -> Option<StringId> {
        StringId::from_column(self.name[event.row()])
    }

    /// Where it happened.
    pub fn lane(&self, event: EventId) -> LaneId {
        LaneId::from_row(self.lane[event.row()] as usize)
    }

    /// When it began.
    pub fn start_ns(&self, event: EventId) -> i64 {
        self.start_ns[event.row()]
    }

    /// How long it took. None for instants and for what never ended.
    pub fn duration_ns(&self, event: EventId) -> Option<i64> {
        some(self.duration_ns[event.row()])
    }

    /// When it ended: none without a duration, with a negative one, or beyond
    /// what 64 bits hold.
    pub fn end_ns(&self, event: EventId) -> Option<i64> {
        let duration = self.duration_ns(event).filter(|&duration| duration >= 0)?;
        self.start_ns(event).checked_add(duration)
    }

    /// When it began and ended, where both are known and in order.
    pub fn span(&self, event: EventId) -> Option<(i64, i64)> {
        Some((self.start_ns(event), self.end_ns(event)?))
    }

    /// The number that a runtime call and what it launched have in common.
    /// Zero means "none" to the profilers, but is kept as they wrote it.
    pub fn correlation(&self, event: EventId) -> Option<i64> {
        some(self.correlation[event.row()])
    }

    /// The number that the framework gave to the operator around it.
    pub fn external_id(&self, event: EventId) -> Option<i64> {
        some(self.external_id[event.row()])
    }

    /// Its place among the elements of the event list of the file.
    pub fn position(&self, event: EventId) -> u32 {
        self.position[event.row()]
    }

    /// The column of kinds, as [`EventKind::ALL`] counts them.
    pub fn kinds(&self) -> &[u8] {
        &self.kind
    }

    /// The column of categories, [`NO_ROW`](crate::ids::NO_ROW) for none.
    pub fn categories(&self) -> &[u32] {
        &self.category
    }

    /// The column of names, [`NO_ROW`](crate::ids::NO_ROW) for none.
    pub fn names(&self) -> &[u32] {
        &self.name
    }

    /// The column of lanes.
    pub fn lanes(&self) -> &[u32] {
        &self.lane
    }

    /// The column of starts.
    pub fn starts_ns(&self) -> &[i64] {
        &self.start_ns
    }

    /// The column of durations, [`NO_INTEGER`] for none.
    pub fn durations_ns(&self) -> &[i64] {
        &self.duration_ns
    }

    /// The column of correlations, [`NO_INTEGER`] for none.
    pub fn correlations(&self) -> &[i64] {
        &self.correlation
    }

    /// The column of external ids, [`NO_INTEGER`] for none.
    pub fn external_ids(&self) -> &[i64] {
        &self.external_id
    }

    /// The column of positions.
    pub fn positions(&self) -> &[u32] {
        &self.position
    }
}

fn some(value: i64) -> Option<i64> {
    (value != NO_INTEGER).then_some(value)
}
