//! The activities that a wait call likely refers to: those after which its thread last recorded an
//! event.
//!
//! A program often records an event and then immediately makes another stream wait for it. In a
//! process with several devices under similar load, this pairing identifies the awaited activity
//! better than times do.

use super::purposes::Purposes;
use super::recent::Recent;
use crate::graph::model::Streams;
use crate::ids::{Order, RowMap};
use crate::vocabulary::ApiRole;

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
