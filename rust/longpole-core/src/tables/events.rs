//! The events of a trace as columns, which every later stage reads and none changes.
//!
//! A row costs a few dozen bytes whatever its names are: names are numbers into `strings`, places
//! are rows of `lanes`. A value that the file does not give is a marked integer, not an `Option`.

use super::Packed;
use super::columns::columns;
use crate::ids::{EventId, InColumn, LaneId, NO_INTEGER, StringId};
use crate::names::Names;
use crate::vocabulary::EventKind;

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
    category: Packed,
    name: Packed,
    lane: Packed,
    start_ns: Vec<i64>,
    duration_ns: Vec<i64>,
    correlation: Vec<i64>,
    external_id: Vec<i64>,
    position: Packed,
    /// Whether the rows are left as they come, for who appends them to another table.
    is_part: bool,
}

/// How many rows are appended before they are packed.
const BATCH: usize = 1024;

columns! {
    EventTable:
    kind Bytes,
    category PackedRows,
    name PackedRows,
    lane PackedRows,
    start_ns Integers,
    duration_ns Integers,
    correlation Integers,
    external_id Integers,
    position PackedRows,
}

impl EventTable {
    /// The events of a part of the file, which are left as they come.
    pub(crate) fn of_part() -> Self {
        Self { is_part: true, ..Self::default() }
    }

    /// Leaves no event, and the room for as many.
    pub(crate) fn clear(&mut self) {
        let columns = [&mut self.category, &mut self.name, &mut self.lane, &mut self.position];
        columns.into_iter().for_each(Packed::clear);
        let columns = [&mut self.start_ns, &mut self.duration_ns];
        columns.into_iter().for_each(Vec::clear);
        let columns = [&mut self.correlation, &mut self.external_id];
        columns.into_iter().for_each(Vec::clear);
        self.kind.clear();
    }

    /// Appends an event and returns its handle.
    #[inline]
    pub fn push(&mut self, row: &EventRow) -> EventId {
        let id = EventId::from_row(self.kind.len());
        if !self.is_part && self.len().is_multiple_of(BATCH) {
            self.seal();
        }
        self.kind.push(row.kind as u8);
        self.category.push_row(row.category.in_column());
        self.name.push_row(row.name.in_column());
        self.lane.push_row(Some(row.lane).in_column());
        self.start_ns.push(row.start_ns);
        self.duration_ns.push(row.duration_ns.unwrap_or(NO_INTEGER));
        self.correlation.push(row.correlation.unwrap_or(NO_INTEGER));
        self.external_id.push(row.external_id.unwrap_or(NO_INTEGER));
        self.position.push(row.position.into());
        id
    }

    /// Packs the rows so far.
    #[cold]
    fn seal(&mut self) {
        self.category.seal();
        self.name.seal();
        self.lane.seal();
        self.position.seal();
    }

    /// Gives back the room that was kept for more: nothing is added any more.
    pub(crate) fn finish(&mut self) {
        self.category.finish();
        self.name.finish();
        self.lane.finish();
        self.position.finish();
        self.kind.shrink_to_fit();
        self.start_ns.shrink_to_fit();
        self.duration_ns.shrink_to_fit();
        self.correlation.shrink_to_fit();
        self.external_id.shrink_to_fit();
    }

    /// Appends the events of a later part of the file, whose texts and lanes have these numbers
    /// here, and whose elements stand behind `position` others.
    pub(crate) fn append(&mut self, later: &Self, texts: &[u32], lanes: &[u32], position: u32) {
        self.kind.extend_from_slice(&later.kind);
        self.category.append_renumbered(&later.category, texts);
        self.name.append_renumbered(&later.name, texts);
        self.lane.append_renumbered(&later.lane, lanes);
        self.start_ns.extend_from_slice(&later.start_ns);
        self.duration_ns.extend_from_slice(&later.duration_ns);
        self.correlation.extend_from_slice(&later.correlation);
        self.external_id.extend_from_slice(&later.external_id);
        self.position.append_shifted(&later.position, position);
        self.seal();
    }

    /// Leaves out the events that are not kept; gives the others new handles.
    pub(crate) fn retain(&mut self, is_kept: &[bool]) {
        for column in self.columns_mut() {
            column.1.retain(is_kept);
        }
    }

    /// Clears the durations that `is_wrong`; returns how many.
    pub(crate) fn clear_durations(&mut self, is_wrong: impl Fn(i64) -> bool) -> u64 {
        let mut n_cleared = 0;
        for duration_ns in self.duration_ns.iter_mut().filter(|ns| is_wrong(**ns)) {
            *duration_ns = NO_INTEGER;
            n_cleared += 1;
        }
        n_cleared
    }

    /// The reader found the end of a begin event.
    pub(crate) fn close(&mut self, event: EventId, end_ns: i64) {
        self.duration_ns[event.row()] = end_ns.saturating_sub(self.start_ns[event.row()]);
    }

    /// The reader found out what the event is from what stands elsewhere in the file.
    pub(crate) fn assign_kind(&mut self, event: EventId, kind: EventKind) {
        self.kind[event.row()] = kind as u8;
    }

    /// The reader found times that are more exact than those at their usual place.
    pub(crate) fn assign_span(&mut self, event: EventId, start_ns: i64, end_ns: i64) {
        self.start_ns[event.row()] = start_ns;
        self.close(event, end_ns);
    }

    /// The same events at other times, one row for each.
    pub(crate) fn retimed(&self, start_ns: Vec<i64>, duration_ns: Vec<i64>) -> Self {
        Self { start_ns, duration_ns, ..self.clone() }
    }

    /// The reader found the number that a call and what it launched have in common.
    pub(crate) fn assign_correlation(&mut self, event: EventId, number: i64) {
        self.correlation[event.row()] = number;
    }

    /// Lets [`assign_lane`](Self::assign_lane) change any row, until [`finish`](Self::finish).
    pub(crate) fn reopen_lanes(&mut self) {
        self.lane.reopen();
    }

    /// Lets [`assign_name`](Self::assign_name) change any row, until [`finish`](Self::finish).
    pub(crate) fn reopen_names(&mut self) {
        self.name.reopen();
    }

    /// The reader found out what longpole calls it.
    pub(crate) fn assign_name(&mut self, event: EventId, name: StringId) {
        self.name.replace(event.row(), i64::from(Some(name).in_column()));
    }

    /// The reader found out where it happened.
    pub(crate) fn assign_lane(&mut self, event: EventId, lane: LaneId) {
        self.lane.replace(event.row(), i64::from(Some(lane).in_column()));
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
    pub fn ids(&self) -> impl ExactSizeIterator<Item = EventId> + use<> {
        (0..self.len()).map(EventId::from_row)
    }

    /// What the event is.
    pub fn kind(&self, event: EventId) -> EventKind {
        EventKind::ALL[usize::from(self.kind[event.row()])]
    }

    /// What the profiler called its kind.
    pub fn category(&self, event: EventId) -> Option<StringId> {
        StringId::from_column(self.category.row(event.row()))
    }

    /// Its name.
    pub fn name(&self, event: EventId) -> Option<StringId> {
        StringId::from_column(self.name.row(event.row()))
    }

    /// Where it happened.
    pub fn lane(&self, event: EventId) -> LaneId {
        LaneId::from_row(self.lane.row(event.row()) as usize)
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
        self.position.row(event.row())
    }

    /// The column of kinds, as [`EventKind::ALL`] counts them.
    pub fn kinds(&self) -> &[u8] {
        &self.kind
    }

    /// The column of categories, [`NO_ROW`](crate::ids::NO_ROW) for none.
    pub fn categories(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.category.rows()
    }

    /// The column of names, [`NO_ROW`](crate::ids::NO_ROW) for none.
    pub fn names(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.name.rows()
    }

    /// The column of lanes.
    pub fn lanes(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.lane.rows()
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
    pub fn positions(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.position.rows()
    }
}

fn some(value: i64) -> Option<i64> {
    (value != NO_INTEGER).then_some(value)
}
