//! GPU activities after which the program recorded an event.
//!
//! The call that records an event names no stream. How likely the event follows a GPU activity is
//! inferred from what the thread launched last and from the last activity of each stream at that
//! time.

use super::purposes::Purposes;
use super::recent::Recent;
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
