//! Work behind which the program recorded an event.
//!
//! The call that records an event names no stream. What a thread launched last, and what
//! was the last work of each stream at that time, say how likely the event stands behind
//! a GPU activity.

use super::purposes::Purposes;
use super::recent::Recent;
use crate::graph::model::Streams;
use crate::ids::{Order, RowMap};
use crate::vocabulary::ApiRole;

/// How likely it is that an event was recorded right behind a GPU activity: the call
/// that records names no stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::graph) enum Mark {
    /// Whenever an event was recorded, the stream held later work, or none yet.
    Unmarked,
    /// The work was the last of its stream when some event was recorded. So is all
    /// work of a trace that shows no event being recorded.
    Possible,
    /// And the thread that recorded the event had launched on that stream just before.
    Likely,
}

impl Mark {
    /// From what speaks most for a wait to what speaks least.
    pub(in crate::graph) const FROM_LIKELY: [Self; 3] =
        [Self::Likely, Self::Possible, Self::Unmarked];
}

/// The mark of all work.
pub(in crate::graph) struct Marks {
    of_work: Vec<Mark>,
    /// For likely work, the thread that recorded the event behind it last.
    recorded_by: RowMap<Order, usize>,
    /// For each lane, whether the thread recorded an event at all behind what it launched.
    records: Vec<bool>,
    /// Whether the trace shows events being recorded.
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

    /// A thread records behind what it launched last; where it records several events in
    /// a row, each further one belongs to the stream it used before that.
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

    /// The thread that is likely to have recorded the last event behind a GPU activity.
    pub(in crate::graph) fn recorded_by(&self, work: Order) -> Option<usize> {
        self.recorded_by.get(&work).copied()
    }

    /// Whether a thread is likely to have recorded an event behind some GPU activity.
    pub(in crate::graph) fn is_recording(&self, thread: usize) -> bool {
        self.records[thread]
    }

    pub(in crate::graph) fn of_work(&self, work: Order) -> Mark {
        self.of_work[work.row()]
    }
}
