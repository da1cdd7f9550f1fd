//! The events of a trace as columns. Later stages read them and never change them.
//!
//! A row takes a few dozen bytes, regardless of its names: names are indices into `strings`, places
//! are rows of `lanes`. A missing value is a marked integer, not an `Option`.

use std::cell::Cell;

use super::columns::columns;
use super::{EventKind, Packed, Tables, Values, argument_text};
use crate::ids::{EventId, InColumn, LaneId, NO_INTEGER, StringId};
use crate::names::Names;
use crate::vocabulary::{MEMORY_KINDS, WorkClass, pageable_ends};

/// An event to be appended.
#[derive(Debug, Clone, Copy)]
pub struct EventRow {
    /// Its kind.
    pub kind: EventKind,
    /// The profiler's name for its kind.
    pub category: Option<StringId>,
    /// Its name.
    pub name: Option<StringId>,
    /// The lane of the event.
    pub lane: LaneId,
    /// Start time.
    pub start_ns: i64,
    /// Duration; `None` for instants and events without an end.
    pub duration_ns: Option<i64>,
    /// The correlation id that a call and its activities share.
    pub correlation: Option<i64>,
    /// The id that the framework's profiler assigned to its operator.
    pub external_id: Option<i64>,
    /// The index in the event list.
    pub position: u32,
}

/// The events of one trace that have a time, in file order.
///
/// The reader writes them once, and they are never changed afterwards.
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
    /// Whether the rows are left unpacked, because they are appended to another table.
    is_part: bool,
}

/// Number of rows that are packed together.
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
    /// Creates a table for a part of the file, whose rows are left unpacked.
    pub(crate) fn of_part() -> Self {
        Self { is_part: true, ..Self::default() }
    }

    /// Removes all events but keeps the capacity.
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

    /// Finishes the table and frees unused capacity. Nothing can be added afterwards.
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

    /// Appends the events of a later part of the file. `texts` and `lanes` are the numbers of its
    /// strings and lanes in this table; `position` elements precede it.
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

    /// Removes the events that are not kept. The others get new handles.
    pub(crate) fn retain(&mut self, is_kept: &[bool]) {
        for column in self.columns_mut() {
            column.1.retain(is_kept);
        }
    }

    /// Clears the durations for which `is_wrong` returns true. Returns their number.
    pub(crate) fn clear_durations(&mut self, is_wrong: impl Fn(i64) -> bool) -> u64 {
        let mut n_cleared = 0;
        for duration_ns in self.duration_ns.iter_mut().filter(|ns| is_wrong(**ns)) {
            *duration_ns = NO_INTEGER;
            n_cleared += 1;
        }
        n_cleared
    }

    /// Sets the end of a begin event.
    pub(crate) fn close(&mut self, event: EventId, end_ns: i64) {
        self.duration_ns[event.row()] = end_ns.saturating_sub(self.start_ns[event.row()]);
    }

    /// Sets the kind of an event that depends on other parts of the file.
    pub(crate) fn assign_kind(&mut self, event: EventId, kind: EventKind) {
        self.kind[event.row()] = kind as u8;
    }

    /// Sets times that are more exact than those at the usual place.
    pub(crate) fn assign_span(&mut self, event: EventId, start_ns: i64, end_ns: i64) {
        self.start_ns[event.row()] = start_ns;
        self.close(event, end_ns);
    }

    /// Returns the same events at other times, one for each row.
    pub(crate) fn retimed(&self, start_ns: Vec<i64>, duration_ns: Vec<i64>) -> Self {
        Self { start_ns, duration_ns, ..self.clone() }
    }

    /// Sets the correlation id of an event.
    pub(crate) fn assign_correlation(&mut self, event: EventId, number: i64) {
        self.correlation[event.row()] = number;
    }

    /// Allows [`assign_lane`](Self::assign_lane) to change any row, until [`finish`](Self::finish).
    pub(crate) fn reopen_lanes(&mut self) {
        self.lane.reopen();
    }

    /// Allows [`assign_name`](Self::assign_name) to change any row, until [`finish`](Self::finish).
    pub(crate) fn reopen_names(&mut self) {
        self.name.reopen();
    }

    /// Sets the name of an event to the one that longpole uses.
    pub(crate) fn assign_name(&mut self, event: EventId, name: StringId) {
        self.name.replace(event.row(), i64::from(Some(name).in_column()));
    }

    /// Sets the lane of an event.
    pub(crate) fn assign_lane(&mut self, event: EventId, lane: LaneId) {
        self.lane.replace(event.row(), i64::from(Some(lane).in_column()));
    }

    /// Returns the number of events.
    pub fn len(&self) -> usize {
        self.kind.len()
    }

    /// Whether there are no events.
    pub fn is_empty(&self) -> bool {
        self.kind.is_empty()
    }

    /// Returns all handles, in file order.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = EventId> + Clone + use<> {
        (0..self.len()).map(EventId::from_row)
    }

    /// Returns the kind of an event.
    pub fn kind(&self, event: EventId) -> EventKind {
        EventKind::ALL[usize::from(self.kind[event.row()])]
    }

    /// Returns the profiler's name for the kind of an event.
    pub fn category(&self, event: EventId) -> Option<StringId> {
        StringId::from_column(self.category.row(event.row()))
    }

    /// Returns the name of an event.
    pub fn name(&self, event: EventId) -> Option<StringId> {
        StringId::from_column(self.name.row(event.row()))
    }

    /// Returns the lane of an event.
    pub fn lane(&self, event: EventId) -> LaneId {
        LaneId::from_row(self.lane.row(event.row()) as usize)
    }

    /// Returns the start time of an event.
    pub fn start_ns(&self, event: EventId) -> i64 {
        self.start_ns[event.row()]
    }

    /// Returns the duration of an event; `None` for instants and events without an end.
    pub fn duration_ns(&self, event: EventId) -> Option<i64> {
        some(self.duration_ns[event.row()])
    }

    /// Returns the end time of an event; `None` without a duration, with a negative one, or beyond
    /// 64 bits.
    pub fn end_ns(&self, event: EventId) -> Option<i64> {
        let duration = self.duration_ns(event).filter(|&duration| duration >= 0)?;
        self.start_ns(event).checked_add(duration)
    }

    /// Returns the start and end of an event, if both are known and in order.
    pub fn span(&self, event: EventId) -> Option<(i64, i64)> {
        Some((self.start_ns(event), self.end_ns(event)?))
    }

    /// Returns the correlation id that a runtime call and its activities share. Zero means none to
    /// profilers, but is kept as written.
    pub fn correlation(&self, event: EventId) -> Option<i64> {
        some(self.correlation[event.row()])
    }

    /// Returns the id that the framework assigned to the operator around the event.
    pub fn external_id(&self, event: EventId) -> Option<i64> {
        some(self.external_id[event.row()])
    }

    /// Returns the index of an event in the event list of the file.
    pub fn position(&self, event: EventId) -> u32 {
        self.position.row(event.row())
    }

    /// Returns the column of kinds, as indices into [`EventKind::ALL`].
    pub fn kinds(&self) -> &[u8] {
        &self.kind
    }

    /// Returns the column of categories; [`NO_ROW`](crate::ids::NO_ROW) for none.
    pub fn categories(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.category.rows()
    }

    /// Returns the column of names; [`NO_ROW`](crate::ids::NO_ROW) for none.
    pub fn names(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.name.rows()
    }

    /// Returns the column of lanes.
    pub fn lanes(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.lane.rows()
    }

    /// Returns the column of start times.
    pub fn starts_ns(&self) -> &[i64] {
        &self.start_ns
    }

    /// Returns the column of durations; [`NO_INTEGER`] for none.
    pub fn durations_ns(&self) -> &[i64] {
        &self.duration_ns
    }

    /// Returns the column of correlation ids; [`NO_INTEGER`] for none.
    pub fn correlations(&self) -> &[i64] {
        &self.correlation
    }

    /// Returns the column of external ids; [`NO_INTEGER`] for none.
    pub fn external_ids(&self) -> &[i64] {
        &self.external_id
    }

    /// Returns the column of positions.
    pub fn positions(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.position.rows()
    }
}

fn some(value: i64) -> Option<i64> {
    (value != NO_INTEGER).then_some(value)
}

// The class of each GPU activity.
//
// A kernel with the record of a collective communicates, regardless of its name; for other
// kernels, the [`Vocabulary`](crate::vocabulary::Vocabulary) decides by name.

impl Tables {
    /// Returns a function for the class of GPU activities. Each name is looked up once, and records
    /// are looked up in advance.
    pub(crate) fn work_classes(&self) -> impl Fn(EventId) -> Option<WorkClass> + '_ {
        let class_of_name: Vec<Cell<Option<WorkClass>>> = vec![Cell::new(None); self.strings.len()];
        let class_of = move |name: StringId| {
            let known = &class_of_name[name.row()];
            known.get().unwrap_or_else(|| {
                let class = self.vocabulary.class(self.strings.get(name));
                known.set(Some(class));
                class
            })
        };
        let is_collective = self.collectives();
        move |event| match self.events.kind(event) {
            EventKind::Kernel if is_collective.get(event.row()) == Some(&true) => {
                Some(WorkClass::Communication)
            }
            EventKind::Kernel => {
                Some(self.events.name(event).map_or(WorkClass::Compute, &class_of))
            }
            EventKind::Copy | EventKind::Fill => Some(WorkClass::Copy),
            _ => None,
        }
    }

    /// Whether the profiler attached the record of a collective to each event; empty if it attached
    /// none.
    fn collectives(&self) -> Vec<bool> {
        let mut found = Vec::new();
        for (_, table) in self.args.iter() {
            let column = table.column("Collective name");
            let Some(Values::Texts(names)) = column.map(|column| &column.values) else { continue };
            found.resize(self.events.len(), false);
            for (event, name) in table.events().zip(names.rows()) {
                let name = StringId::from_column(name);
                found[event.row()] = name.is_some_and(|name| !self.strings.get(name).is_empty());
            }
        }
        found
    }

    /// Whether the source and the destination of a memcpy are pageable memory, which the driver
    /// stages.
    pub(crate) fn pageable_ends(&self, event: EventId) -> [bool; 2] {
        let kinds = MEMORY_KINDS.map(|key| argument_text(event, key, self));
        let name = self.events.name(event).map_or("", |name| self.strings.get(name));
        pageable_ends(name, kinds)
    }

    /// Whether an event migrates managed memory, which no call launches.
    pub(crate) fn is_migration(&self, event: EventId) -> bool {
        let name = self.events.name(event).map_or("", |name| self.strings.get(name));
        name.starts_with(MIGRATION)
    }
}

/// Prefix of the names of the migrations of managed memory.
const MIGRATION: &str = "Memcpy Unified";
