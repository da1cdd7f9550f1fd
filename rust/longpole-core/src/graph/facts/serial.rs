//! Streams that implicitly wait for all others of their device, and the others for them: the legacy
//! default stream of CUDA.
//!
//! Neither a call nor a record shows these waits. A stream is assumed to be one if its work never
//! overlaps that of another stream, and if several late starts without another explanation come
//! right after an end on the other side.

use super::delays::Delays;
use crate::graph::model::{Streams, limits};
use crate::ids::Order;

/// What the activities of each stream show.
pub(super) struct Serial {
    /// Whether one ran while one of another stream of the device did.
    pub(super) runs_beside: Vec<bool>,
    /// Whether the stream and the others of its device wait for each other.
    pub(super) waits: Vec<bool>,
}

impl Serial {
    pub(super) fn of(streams: &Streams<'_>, delays: &Delays) -> Self {
        let n_streams = streams.all.len();
        let mut found = Found { runs_beside: vec![false; n_streams], n_waits: vec![0; n_streams] };
        for device in 0..streams.n_devices() {
            found.add(device, streams, delays);
        }
        let waits = |stream: usize| {
            !found.runs_beside[stream] && found.n_waits[stream] >= limits::LEAST_SERIAL_WAITS
        };
        let waits = (0..n_streams).map(waits).collect();
        Self { waits, runs_beside: found.runs_beside }
    }
}

struct Found {
    runs_beside: Vec<bool>,
    /// The number of oddly late starts right after an end on the other side.
    n_waits: Vec<usize>,
}

impl Found {
    fn add(&mut self, device: usize, streams: &Streams<'_>, delays: &Delays) {
        let timeline = streams.timeline;
        let works = streams.of_device(device).iter().flat_map(|&it| &streams.all[it].works);
        let mut works: Vec<Order> = works.copied().collect();
        works.sort_unstable_by_key(|&work| (timeline.start_ns(work), work));
        let mut latest = Latest::default();
        for work in works {
            let (stream, start_ns) = (streams.stream_of(work), timeline.start_ns(work));
            if let Some((end_ns, other)) = latest.of_others(stream) {
                if end_ns > start_ns {
                    self.runs_beside[stream] = true;
                    self.runs_beside[other] = true;
                } else if start_ns - end_ns <= limits::WAIT_RELEASE_NS
                    && delays.odd_since(work, streams).is_some_and(|ready_ns| ready_ns < end_ns)
                {
                    self.n_waits[stream] += 1;
                    self.n_waits[other] += 1;
                }
            }
            latest.add(timeline.end_ns(work), stream);
        }
    }
}

/// The latest end, and the latest on another stream.
#[derive(Default)]
struct Latest {
    first: Option<(i64, usize)>,
    second: Option<(i64, usize)>,
}

impl Latest {
    fn of_others(&self, stream: usize) -> Option<(i64, usize)> {
        self.first.filter(|it| it.1 != stream).or(self.second)
    }

    fn add(&mut self, end_ns: i64, stream: usize) {
        let one = Some((end_ns, stream));
        match self.first {
            Some((_, of_first)) if of_first == stream => self.first = self.first.max(one),
            _ if one > self.first => {
                self.second = self.first;
                self.first = one;
            }
            _ => self.second = self.second.max(one),
        }
    }
}
