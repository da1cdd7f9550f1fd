//! GPU activities after which the program recorded an event.
//!
//! The call that records an event names no stream. How likely the event follows a GPU activity is
//! inferred from what the thread launched last and from the last activity of each stream at that
//! time.

use super::launches::Purposes;
use crate::graph::model::Streams;
use crate::ids::{Order, RowMap};
use crate::vocabulary::ApiRole;

/// How likely an event was recorded directly after a GPU activity. The recording call names no
/// stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::graph) enum Mark {
    /// Whenever an event was recorded, the stream held later activities, or none yet.
    Unmarked,
    /// The activity was the last of its stream when an event was recorded. Also all activities of a
    /// trace without calls that record events.
    Possible,
    /// As `Possible`, and the recording thread had just launched on that stream.
    Likely,
}

impl Mark {
    /// All marks, from the strongest to the weakest evidence for a wait.
    pub(in crate::graph) const FROM_LIKELY: [Self; 3] =
        [Self::Likely, Self::Possible, Self::Unmarked];
}

/// The mark of each GPU activity.
pub(in crate::graph) struct Marks {
    of_work: Vec<Mark>,
    /// For likely activities, the thread that last recorded an event after them.
    recorded_by: RowMap<Order, usize>,
    /// For each lane, whether the thread recorded any event after its own launches.
    records: Vec<bool>,
    /// Whether the trace contains calls that record events.
    pub(in crate::graph) has_records: bool,
}

impl Marks {
    pub(in crate::graph) fn of(streams: &Streams<'_>, purposes: &Purposes) -> Self {
        let timeline = streams.timeline;
        let records = |event: &Order| purposes.purpose(*event, timeline) == ApiRole::EventRecord;
        let times_ns: Vec<_> =
            timeline.orders().filter(records).map(|event| timeline.start_ns(event)).collect();
        if times_ns.is_empty() {
            return Self::all(Mark::Possible, false, streams);
        }
        let mut marks = Self::all(Mark::Unmarked, true, streams);
        for work in streams.all.iter().flat_map(|stream| stream.last_at(&times_ns)) {
            marks.of_work[work.row()] = Mark::Possible;
        }
        marks.add_likely(streams, purposes);
        marks
    }

    fn all(mark: Mark, has_records: bool, streams: &Streams<'_>) -> Self {
        Self {
            of_work: vec![mark; streams.timeline.len()],
            recorded_by: RowMap::default(),
            records: vec![false; streams.n_lanes()],
            has_records,
        }
    }

    /// Marks the activities after which events were likely recorded. A thread records an event
    /// after its latest launch. For several events in a row, each further one belongs to the stream
    /// used before that.
    fn add_likely(&mut self, streams: &Streams<'_>, purposes: &Purposes) {
        let timeline = streams.timeline;
        let mut threads = vec![(Recent::default(), 0); streams.n_lanes()];
        for call in timeline.orders().filter(|&event| timeline.kind(event).is_call()) {
            let thread = timeline.lane(call);
            let (recent, n_records) = &mut threads[thread];
            if let Some(&first) = streams.launched_by(call).first() {
                recent.launched_on(streams.stream_of(first));
                *n_records = 0;
            } else if purposes.purpose(call, timeline) == ApiRole::EventRecord {
                let stream = recent.streams().nth(*n_records).map(|stream| &streams.all[stream]);
                let last = stream.and_then(|it| it.last_submitted_before(timeline.start_ns(call)));
                if let Some(work) = last {
                    self.of_work[work.row()] = Mark::Likely;
                    self.recorded_by.insert(work, thread);
                    self.records[thread] = true;
                }
                *n_records += 1;
            }
        }
    }

    /// Returns the thread that likely recorded the last event after a GPU activity.
    pub(in crate::graph) fn recorded_by(&self, work: Order) -> Option<usize> {
        self.recorded_by.get(&work).copied()
    }

    /// Whether a thread likely recorded an event after any GPU activity.
    pub(in crate::graph) fn is_recording(&self, thread: usize) -> bool {
        self.records[thread]
    }

    pub(in crate::graph) fn of_work(&self, work: Order) -> Mark {
        self.of_work[work.row()]
    }
}

// The streams that a thread launched on most recently. They are the best evidence for the stream
// of a call that does not name one.

/// The streams that a thread has launched on so far.
#[derive(Debug, Clone, Default)]
pub(in crate::graph) struct Recent {
    /// In order of launch, latest last. Only the last occurrence of a stream counts: removing
    /// earlier ones would cost a pass over all streams for each launch.
    streams: Vec<usize>,
    /// Index of the last occurrence of each stream.
    last: RowMap<usize, usize>,
}

/// Number of outdated entries allowed beyond the number of streams.
const FEW: usize = 16;

impl Recent {
    pub(in crate::graph) fn launched_on(&mut self, stream: usize) {
        if self.streams.last() == Some(&stream) {
            return;
        }
        if self.streams.len() >= 2 * self.last.len() + FEW {
            self.tidy();
        }
        self.last.insert(stream, self.streams.len());
        self.streams.push(stream);
    }

    /// Returns the streams, latest launch first.
    pub(in crate::graph) fn streams(&self) -> impl Iterator<Item = usize> + '_ {
        let places = self.streams.iter().enumerate().rev();
        places.filter(|&(place, stream)| self.last[stream] == place).map(|(_, &stream)| stream)
    }

    /// Removes outdated entries.
    fn tidy(&mut self) {
        let mut streams: Vec<_> = self.streams().collect();
        streams.reverse();
        self.last = streams.iter().enumerate().map(|(place, &stream)| (stream, place)).collect();
        self.streams = streams;
    }
}

// The activities that a wait call likely refers to: those after which its thread last recorded an
// event.
//
// A program often records an event and then immediately makes another stream wait for it. In a
// process with several devices under similar load, this pairing identifies the awaited activity
// better than times do.

/// Maximum number of wait calls before a launch that are considered, latest first.
const MOST_WAITS: usize = 64;

/// For each GPU activity whose thread issued a wait call before the launch, returns the activities
/// after which the awaited events were likely recorded.
pub(super) fn of_works(
    streams: &Streams<'_>,
    purposes: &Purposes,
    has_wait_calls: bool,
) -> RowMap<Order, Vec<Order>> {
    let mut paired = RowMap::default();
    if !has_wait_calls {
        return paired;
    }
    let timeline = streams.timeline;
    let mut threads: Vec<Thread> = Vec::new();
    threads.resize_with(streams.n_lanes(), Thread::default);
    for call in timeline.orders().filter(|&event| timeline.kind(event).is_call()) {
        let thread = &mut threads[timeline.lane(call)];
        match purposes.purpose(call, timeline) {
            ApiRole::EventRecord => thread.record(timeline.start_ns(call), streams),
            ApiRole::StreamWait => thread.waits.push(thread.recorded),
            _ => thread.launch(streams.launched_by(call), streams, &mut paired),
        }
    }
    paired
}

/// The calls of a thread up to now.
#[derive(Default)]
struct Thread {
    recent: Recent,
    /// Number of events recorded since the last launch.
    n_records: usize,
    /// The activity after which the thread likely recorded its last event.
    recorded: Option<Order>,
    /// The value of `recorded` at each wait call.
    waits: Vec<Option<Order>>,
    /// Number of wait calls at the thread's last launch, overall and for each stream.
    n_launched: usize,
    n_seen: RowMap<usize, usize>,
}

impl Thread {
    fn record(&mut self, at_ns: i64, streams: &Streams<'_>) {
        let stream = self.recent.streams().nth(self.n_records);
        self.recorded = stream.and_then(|stream| streams.all[stream].last_submitted_before(at_ns));
        self.n_records += 1;
    }

    fn launch(
        &mut self,
        works: &[Order],
        streams: &Streams<'_>,
        paired: &mut RowMap<Order, Vec<Order>>,
    ) {
        let Some(&first) = works.first() else { return };
        for &work in works {
            let seen = self.n_seen.get(&streams.stream_of(work)).copied().unwrap_or(0);
            let just_now = self.n_launched < self.waits.len();
            let from = if just_now { self.n_launched } else { seen };
            let from = from.max(self.waits.len().saturating_sub(MOST_WAITS));
            let found: Vec<_> = self.waits[from..].iter().flatten().copied().collect();
            if !found.is_empty() {
                paired.insert(work, found);
            }
        }
        for &work in works {
            self.n_seen.insert(streams.stream_of(work), self.waits.len());
        }
        self.n_launched = self.waits.len();
        self.recent.launched_on(streams.stream_of(first));
        self.n_records = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stream_is_given_once_the_last_first() {
        let mut recent = Recent::default();
        for round in 0..100 {
            for stream in [7, 8, 7, 9 + round % 2] {
                recent.launched_on(stream);
            }
        }
        assert_eq!(recent.streams().collect::<Vec<_>>(), [10, 7, 8, 9]);
        assert!(recent.streams.len() < 40);
    }
}
