//! The events of the graph, in content order.
//!
//! Ties between events are settled by their content, never by their position in the file. The
//! events are sorted once, and a row number is a place in that order. Columns are plain vectors,
//! because a rule may read a million starts in one sweep. Events without an end, with a negative
//! duration or with times out of range are left out and counted.

use std::cmp::Reverse;

use super::limits::LARGEST_TIME_NS;
use crate::ids::{EventId, InColumn, NO_ROW, Order, StringId, row_in_column};
use crate::link::{CallOrder, Launches};
use crate::tables::{EventKind, LaneTable, Tables, by_content};

/// The events of the graph, in content order: one row each, indexed by [`Order`]. The smaller of
/// two orders is the event that comes first.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    event: Vec<u32>,
    kind: Vec<EventKind>,
    lane: Vec<u32>,
    name: Vec<u32>,
    start_ns: Vec<i64>,
    end_ns: Vec<i64>,
    launcher: Vec<u32>,
    /// The activities without a launcher, in content order.
    unlinked: Vec<Unlinked>,
    /// The timestamp shift of each event; empty if there is none.
    shift_ns: Vec<i64>,
    order_of_event: Vec<u32>,
    /// Number of events that end before they begin; left out of the graph.
    pub negative_durations: u64,
    /// Number of events without an end, or too far from all others; left out of the graph.
    pub untimed: u64,
}

/// Bounds of the submission time of an activity without a launcher: after its nearest stream
/// predecessor with a known launch call, and before its next such successor or its own start. If
/// correlation ids rise with time, the calls with neighbouring ids narrow the bounds.
#[derive(Debug, Clone, Copy)]
struct Unlinked {
    work: Order,
    after_ns: i64,
    before_ns: i64,
}

impl Timeline {
    /// Sorts the events of a trace, with the timestamps of devices shifted by `clocks`.
    pub(in crate::graph) fn of(tables: &Tables, launches: &Launches, clocks: &Clocks) -> Self {
        let order_of_event = vec![NO_ROW; tables.events.len()];
        let mut timeline = Self { order_of_event, ..Self::default() };
        let order = timeline.sorted_events(tables, clocks);
        timeline.fill(&order, tables);
        if !clocks.is_empty() {
            let shift_ns = |&(_, event): &(_, EventId)| clocks.shift_ns(event);
            timeline.shift_ns = order.iter().map(shift_ns).collect();
        }
        timeline.launcher = order
            .iter()
            .map(|&(_, event)| {
                let call =
                    launches.launcher(event).filter(|_| tables.events.kind(event).is_device_work());
                call.and_then(|call| timeline.order(call)).in_column()
            })
            .collect();
        timeline.unlinked = timeline.bounds_of_unlinked(tables.lanes.len());
        timeline.narrow_by_number(tables);
        timeline
    }

    /// Returns the same events at the times in `tables`, and the new order of each.
    pub(super) fn retimed(&self, tables: &Tables) -> (Self, Vec<Order>) {
        let mut order: Vec<_> = self
            .orders()
            .map(|old| {
                let event = self.event(old);
                (tables.events.start_ns(event) + self.clock_shift_ns(old), event)
            })
            .collect();
        order.sort_by(|one, two| one.0.cmp(&two.0).then_with(|| by_content(one.1, two.1, tables)));
        let mut timeline = Self {
            order_of_event: vec![NO_ROW; tables.events.len()],
            negative_durations: self.negative_durations,
            untimed: self.untimed,
            ..Self::default()
        };
        timeline.fill(&order, tables);
        let new_of = |old| Order::from_row(timeline.order_of_event[self.event(old).row()] as usize);
        let order_of: Vec<_> = self.orders().map(new_of).collect();
        let mut launcher = vec![NO_ROW; order.len()];
        for old in self.orders() {
            let call = self.launcher(old).map(|call| order_of[call.row()]);
            launcher[order_of[old.row()].row()] = call.in_column();
        }
        timeline.launcher = launcher;
        if !self.shift_ns.is_empty() {
            timeline.shift_ns = vec![0; order.len()];
            for old in self.orders() {
                timeline.shift_ns[order_of[old.row()].row()] = self.clock_shift_ns(old);
            }
        }
        timeline.unlinked = timeline.bounds_of_unlinked(tables.lanes.len());
        timeline.narrow_by_number(tables);
        (timeline, order_of)
    }

    /// Returns the events that are in a part, and the new order of each; [`NO_ROW`] for others.
    pub(super) fn part(&self, is_in: &[bool]) -> (Self, Vec<u32>) {
        let kept: Vec<_> = self.orders().filter(|order| is_in[order.row()]).collect();
        let mut order_of = vec![NO_ROW; self.len()];
        for (place, order) in kept.iter().enumerate() {
            order_of[order.row()] = row_in_column(place);
        }
        let new_order = |order: Order| Order::from_column(order_of[order.row()]);
        let mut order_of_event = vec![NO_ROW; self.order_of_event.len()];
        for (place, &order) in kept.iter().enumerate() {
            order_of_event[self.event(order).row()] = row_in_column(place);
        }
        let launcher = |&order: &Order| self.launcher(order).and_then(new_order).in_column();
        let unlinked = self.unlinked.iter();
        let timeline = Self {
            event: kept.iter().map(|order| self.event[order.row()]).collect(),
            kind: kept.iter().map(|order| self.kind[order.row()]).collect(),
            lane: kept.iter().map(|order| self.lane[order.row()]).collect(),
            name: kept.iter().map(|order| self.name[order.row()]).collect(),
            start_ns: kept.iter().map(|order| self.start_ns[order.row()]).collect(),
            end_ns: kept.iter().map(|order| self.end_ns[order.row()]).collect(),
            launcher: kept.iter().map(launcher).collect(),
            unlinked: unlinked
                .filter_map(|of| Some(Unlinked { work: new_order(of.work)?, ..*of }))
                .collect(),
            shift_ns: if self.shift_ns.is_empty() {
                Vec::new()
            } else {
                kept.iter().map(|order| self.shift_ns[order.row()]).collect()
            },
            order_of_event,
            negative_durations: self.negative_durations,
            untimed: self.untimed,
        };
        (timeline, order_of)
    }

    /// Returns the bounds of the submission times of activities without a launcher.
    fn bounds_of_unlinked(&self, n_lanes: usize) -> Vec<Unlinked> {
        let mut last_ns = vec![i64::MIN; n_lanes];
        let mut open: Vec<Vec<usize>> = vec![Vec::new(); n_lanes];
        let mut found: Vec<Unlinked> = Vec::new();
        for work in self.orders().filter(|&order| self.kind(order).is_device_work()) {
            let lane = self.lane(work);
            let Some(call) = self.launcher(work) else {
                let after_ns = last_ns[lane];
                open[lane].push(found.len());
                let before_ns = self.start_ns(work).max(after_ns);
                found.push(Unlinked { work, after_ns, before_ns });
                continue;
            };
            let called_ns = self.start_ns(call);
            for place in open[lane].drain(..) {
                let unlinked = &mut found[place];
                unlinked.before_ns = unlinked.before_ns.min(called_ns).max(unlinked.after_ns);
            }
            last_ns[lane] = called_ns;
        }
        found
    }

    /// Narrows these bounds by the correlation ids of calls.
    fn narrow_by_number(&mut self, tables: &Tables) {
        if self.unlinked.is_empty() {
            return;
        }
        let order = CallOrder::of(tables);
        let process_of_lane = self.process_of_lane(tables);
        for place in 0..self.unlinked.len() {
            let Unlinked { work, after_ns, before_ns } = self.unlinked[place];
            let Some(process) = process_of_lane[self.lane(work)] else { continue };
            let numbered = order.around(process, self.event(work), tables);
            let unlinked = &mut self.unlinked[place];
            unlinked.after_ns = after_ns.max(numbered.0).min(before_ns);
            unlinked.before_ns = before_ns.min(numbered.1).max(unlinked.after_ns);
        }
    }

    /// For each lane, returns the process that launched its first activity with a known launch
    /// call.
    fn process_of_lane(&self, tables: &Tables) -> Vec<Option<StringId>> {
        let mut found = vec![None; tables.lanes.len()];
        for work in self.orders().rev() {
            if let Some(call) = self.launcher(work) {
                let lane = tables.events.lane(self.event(call));
                found[self.lane(work)] = Some(tables.lanes.place(lane).process);
            }
        }
        found
    }

    /// Creates a timeline of synthetic events given as `(start, end)`: operators of one thread.
    pub(super) fn of_spans(spans: &[(i64, i64)]) -> Self {
        let mut order: Vec<_> = (0..spans.len()).collect();
        order.sort_by_key(|&row| (spans[row].0, Reverse(spans[row].1)));
        let mut timeline = Self { order_of_event: vec![NO_ROW; spans.len()], ..Self::default() };
        for (place, &row) in order.iter().enumerate() {
            timeline.order_of_event[row] = row_in_column(place);
            timeline.event.push(row_in_column(row));
            timeline.kind.push(EventKind::Operator);
            timeline.lane.push(0);
            timeline.name.push(NO_ROW);
            timeline.start_ns.push(spans[row].0);
            timeline.end_ns.push(spans[row].1);
            timeline.launcher.push(NO_ROW);
        }
        timeline
    }

    /// Sorts by kind before sorting by time: profilers write each kind in order of time, which a
    /// merge sort exploits.
    fn sorted_events(&mut self, tables: &Tables, clocks: &Clocks) -> Vec<(i64, EventId)> {
        let events = &tables.events;
        let mut order = Vec::with_capacity(events.len());
        let of_layer =
            |layer| events.ids().filter(move |&event| events.kind(event).layer() == layer);
        for event in (0..=EventKind::Kernel.layer()).flat_map(of_layer) {
            match events.span(event) {
                Some((start, end)) if -LARGEST_TIME_NS <= start && end <= LARGEST_TIME_NS => {
                    order.push((start + clocks.shift_ns(event), event));
                }
                _ if events.duration_ns(event).is_some_and(|duration| duration < 0) => {
                    self.negative_durations += 1;
                }
                _ => self.untimed += 1,
            }
        }
        order.sort_by(|one, two| one.0.cmp(&two.0).then_with(|| by_content(one.1, two.1, tables)));
        order
    }

    fn fill(&mut self, order: &[(i64, EventId)], tables: &Tables) {
        let events = &tables.events;
        self.reserve(order.len());
        for (place, &(start, event)) in order.iter().enumerate() {
            self.order_of_event[event.row()] = row_in_column(place);
            self.event.push(Some(event).in_column());
            self.kind.push(events.kind(event));
            self.start_ns.push(start);
            self.end_ns.push(start + events.duration_ns(event).unwrap_or(0));
        }
        self.lane = self.in_order(events.lanes());
        self.name = self.in_order(events.names());
    }

    /// Restricts a column of all events to the events of the graph. Packed columns are read fastest
    /// in file order.
    fn in_order(&self, column: impl Iterator<Item = u32>) -> Vec<u32> {
        let mut found = vec![NO_ROW; self.event.len()];
        for (value, &place) in column.zip(&self.order_of_event) {
            if place != NO_ROW {
                found[place as usize] = value;
            }
        }
        found
    }

    fn reserve(&mut self, n_events: usize) {
        self.event.reserve_exact(n_events);
        self.kind.reserve_exact(n_events);
        self.start_ns.reserve_exact(n_events);
        self.end_ns.reserve_exact(n_events);
    }

    /// Returns the number of events.
    pub fn len(&self) -> usize {
        self.event.len()
    }

    /// Whether there are no events.
    pub fn is_empty(&self) -> bool {
        self.event.is_empty()
    }

    /// Returns all places, in order.
    pub fn orders(&self) -> impl DoubleEndedIterator<Item = Order> + ExactSizeIterator {
        (0..self.len()).map(Order::from_row)
    }

    /// Returns the event at a place.
    pub fn event(&self, order: Order) -> EventId {
        EventId::from_row(self.event[order.row()] as usize)
    }

    /// Returns the place of an event, if it is in the graph.
    pub fn order(&self, event: EventId) -> Option<Order> {
        Order::from_column(self.order_of_event[event.row()])
    }

    /// Returns the kind of an event.
    pub fn kind(&self, order: Order) -> EventKind {
        self.kind[order.row()]
    }

    /// Returns the lane of an event, as a row of the lane table.
    pub fn lane(&self, order: Order) -> usize {
        self.lane[order.row()] as usize
    }

    /// Returns the name of an event.
    pub fn name(&self, order: Order) -> Option<StringId> {
        StringId::from_column(self.name[order.row()])
    }

    /// Returns the start time of an event.
    pub fn start_ns(&self, order: Order) -> i64 {
        self.start_ns[order.row()]
    }

    /// Returns the end time of an event.
    pub fn end_ns(&self, order: Order) -> i64 {
        self.end_ns[order.row()]
    }

    /// Returns the timestamp shift of an event.
    pub fn clock_shift_ns(&self, order: Order) -> i64 {
        self.shift_ns.get(order.row()).copied().unwrap_or(0)
    }

    /// Returns the duration of an event.
    pub fn duration_ns(&self, order: Order) -> i64 {
        self.end_ns(order) - self.start_ns(order)
    }

    /// Returns the launch call of a GPU activity.
    pub fn launcher(&self, order: Order) -> Option<Order> {
        Order::from_column(self.launcher[order.row()])
    }

    /// Returns the time at which the host began to launch the activity; without a launcher, the
    /// latest possible time.
    pub fn submitted_ns(&self, work: Order) -> i64 {
        match self.launcher(work) {
            Some(call) => self.start_ns(call),
            None => self.unlinked(work).map_or(self.start_ns(work), |it| it.before_ns),
        }
    }

    /// Returns the earliest time at which the host may have begun to launch the activity; the
    /// actual time if the launcher is known.
    pub fn earliest_submission_ns(&self, work: Order) -> i64 {
        match self.launcher(work) {
            Some(call) => self.start_ns(call),
            None => self.unlinked(work).map_or(self.start_ns(work), |it| it.after_ns),
        }
    }

    fn unlinked(&self, work: Order) -> Option<&Unlinked> {
        let place = self.unlinked.binary_search_by_key(&work, |it| it.work).ok()?;
        Some(&self.unlinked[place])
    }
}

// Timestamp shifts of each device that make its clock agree with the host's.
//
// Only the graph uses shifted timestamps; the tables keep those of the file.

/// The correction of a device's clock, for a part of the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockShift {
    /// The device number; `None` if the trace has no device numbers.
    pub device: Option<i64>,
    /// The recorded device time from which the shift counts, until the next of the device; `None`
    /// if it counts from the start.
    pub from_ns: Option<i64>,
    /// Shift of the timestamps: positive if the device clock was behind the host's.
    pub shift_ns: i64,
}

/// How much further the timestamps of a device could be shifted, earlier and later, before an
/// activity starts before its call, or ends after a call that is known to have waited for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClockSlack {
    /// The device number; `None` if the trace has no device numbers.
    pub device: Option<i64>,
    /// Maximum shift to earlier times.
    pub earlier_ns: i64,
    /// Maximum shift to later times.
    pub later_ns: i64,
    /// How far the timestamps are probably off, if there is too little evidence to shift them.
    pub doubt_ns: i64,
}

impl ClockSlack {
    /// Returns the slack of each lane; zero for lanes that are not on devices.
    pub(in crate::graph) fn by_lane(slacks: &[Self], lanes: &LaneTable) -> Vec<Self> {
        let of = |device| slacks.iter().find(|slack| slack.device == device).copied();
        lanes.places().iter().map(|place| of(place.device).unwrap_or_default()).collect()
    }
}

/// The timestamp shift of each event of a trace; empty if no clock is off.
#[derive(Debug, Clone, Default)]
pub(in crate::graph) struct Clocks {
    shift_ns: Vec<i64>,
}

impl Clocks {
    pub(in crate::graph) fn of(
        shifts: impl Iterator<Item = (EventId, i64)>,
        n_events: usize,
    ) -> Self {
        let mut shift_ns = vec![0; n_events];
        for (event, ns) in shifts {
            shift_ns[event.row()] = ns;
        }
        Self { shift_ns }
    }

    fn is_empty(&self) -> bool {
        self.shift_ns.is_empty()
    }

    fn shift_ns(&self, event: EventId) -> i64 {
        self.shift_ns.get(event.row()).copied().unwrap_or(0)
    }
}
