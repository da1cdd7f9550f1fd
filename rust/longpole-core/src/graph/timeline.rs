use std::cmp::Reverse;

use super::limits::LARGEST_TIME_NS;
use crate::ids::{row_in_column, EventId, InColumn, Rank, StringId, NO_ROW};
use crate::link::Launches;
use crate::tables::{by_content, EventKind, Tables};

/// The events that take part in the critical path, in content order: a row for each,
/// named by its [`Rank`]. Of two ranks the smaller one is the event that comes first.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    event: Vec<u32>,
    kind: Vec<EventKind>,
    lane: Vec<u32>,
    name: Vec<u32>,
    start_ns: Vec<i64>,
    end_ns: Vec<i64>,
    launcher: Vec<u32>,
    rank_of_event: Vec<u32>,
    /// Events that end before they begin: they take no part.
    pub negative_durations: u64,
    /// Events without an end, or too far from all others: they take no part.
    pub untimed: u64,
}

impl Timeline {
    /// Puts the events of a trace in order.
    pub(super) fn of(tables: &Tables, launches: &Launches) -> Self {
        let mut timeline =
            Self { rank_of_event: vec![NO_ROW; tables.events.len()], ..Self::default() };
        let order = timeline.sorted_events(tables);
        timeline.fill(&order, tables);
        timeline.launcher = order
            .iter()
            .map(|&(_, event)| {
                let call =
                    launches.launcher(event).filter(|_| tables.events.kind(event).is_device_work());
                call.and_then(|call| timeline.rank(call)).in_column()
            })
            .collect();
        timeline
    }

    /// Events that come from no trace, as `(start, end)`: operators of one thread.
    pub(super) fn of_spans(spans: &[(i64, i64)]) -> Self {
        let mut order: Vec<_> = (0..spans.len()).collect();
        order.sort_by_key(|&row| (spans[row].0, Reverse(spans[row].1)));
        let mut timeline = Self { rank_of_event: vec![NO_ROW; spans.len()], ..Self::default() };
        for (rank, &row) in order.iter().enumerate() {
            timeline.rank_of_event[row] = row_in_column(rank);
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

    /// Profilers write each kind in order of time, so that a sort that merges runs
    /// has little to do.
    fn sorted_events(&mut self, tables: &Tables) -> Vec<(i64, EventId)> {
        let events = &tables.events;
        let mut order = Vec::with_capacity(events.len());
        for event in events.ids().filter(|&event| takes_part(events.kind(event))) {
            match events.span(event) {
                Some((start, end)) if -LARGEST_TIME_NS <= start && end <= LARGEST_TIME_NS => {
                    order.push((start, event));
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
        for (rank, &(start, event)) in order.iter().enumerate() {
            self.rank_of_event[event.row()] = row_in_column(rank);
            self.event.push(Some(event).in_column());
            self.kind.push(events.kind(event));
            self.lane.push(Some(events.lane(event)).in_column());
            self.name.push(events.name(event).in_column());
            self.start_ns.push(start);
            self.end_ns.push(events.end_ns(event).unwrap_or(start));
        }
    }

    /// How many events take part.
    pub fn len(&self) -> usize {
        self.event.len()
    }

    /// Whether none does.
    pub fn is_empty(&self) -> bool {
        self.event.is_empty()
    }

    /// Every rank, in order.
    pub fn ranks(&self) -> impl DoubleEndedIterator<Item = Rank> + ExactSizeIterator {
        (0..self.len()).map(Rank::from_row)
    }

    /// The event with a rank.
    pub fn event(&self, rank: Rank) -> EventId {
        EventId::from_row(self.event[rank.row()] as usize)
    }

    /// The rank of an event, if it takes part.
    pub fn rank(&self, event: EventId) -> Option<Rank> {
        Rank::from_column(self.rank_of_event[event.row()])
    }

    /// What it is.
    pub fn kind(&self, rank: Rank) -> EventKind {
        self.kind[rank.row()]
    }

    /// The row of its place in the table of lanes.
    pub fn lane(&self, rank: Rank) -> usize {
        self.lane[rank.row()] as usize
    }

    /// Its name.
    pub fn name(&self, rank: Rank) -> Option<StringId> {
        StringId::from_column(self.name[rank.row()])
    }

    /// When it began.
    pub fn start_ns(&self, rank: Rank) -> i64 {
        self.start_ns[rank.row()]
    }

    /// When it ended.
    pub fn end_ns(&self, rank: Rank) -> i64 {
        self.end_ns[rank.row()]
    }

    /// How long it took.
    pub fn duration_ns(&self, rank: Rank) -> i64 {
        self.end_ns(rank) - self.start_ns(rank)
    }

    /// The call that launched it, for work on a device.
    pub fn launcher(&self, rank: Rank) -> Option<Rank> {
        Rank::from_column(self.launcher[rank.row()])
    }

    /// When the host began to launch the work; its own start where nothing is known.
    pub fn submitted_ns(&self, work: Rank) -> i64 {
        self.start_ns(self.launcher(work).unwrap_or(work))
    }
}

fn takes_part(kind: EventKind) -> bool {
    kind.layer() <= EventKind::Kernel.layer()
}
