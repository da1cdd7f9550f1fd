//! Streams that implicitly wait for all others of their device, and the others for them: the legacy
//! default stream of CUDA.
//!
//! Neither a call nor a record shows these waits. A stream is assumed to be one if its work never
//! overlaps that of another stream, and if several late starts without another explanation come
//! right after an end on the other side.

use crate::graph::model::{Streams, limits};
use crate::ids::Order;

/// For each stream, whether it and the others of its device wait for each other.
pub(super) fn streams(streams: &Streams<'_>) -> Vec<bool> {
    let mut is_serial = vec![false; streams.all.len()];
    for device in 0..streams.n_devices() {
        let of_device = streams.of_device(device);
        if of_device.len() < 2 {
            continue;
        }
        let found = of_this(device, streams);
        for &stream in of_device {
            is_serial[stream] =
                !found.runs_beside[stream] && found.n_waits[stream] >= limits::LEAST_SERIAL_WAITS;
        }
    }
    is_serial
}

/// Overlaps and late starts of each stream.
struct Found {
    /// Whether work ran while that of another stream did.
    runs_beside: Vec<bool>,
    /// The number of late starts right after an end on the other side.
    n_waits: Vec<usize>,
}

fn of_this(device: usize, streams: &Streams<'_>) -> Found {
    let timeline = streams.timeline;
    let mut works: Vec<Order> = streams
        .of_device(device)
        .iter()
        .flat_map(|&stream| streams.all[stream].works.iter().copied())
        .collect();
    works.sort_unstable_by_key(|&work| (timeline.start_ns(work), work));
    let n_streams = streams.all.len();
    let mut found = Found { runs_beside: vec![false; n_streams], n_waits: vec![0; n_streams] };
    let mut latest = Latest::default();
    let mut own_ends_ns = vec![i64::MIN; n_streams];
    for work in works {
        let (stream, start_ns) = (streams.stream_of(work), timeline.start_ns(work));
        if let Some((end_ns, other)) = latest.of_others(stream) {
            if end_ns > start_ns {
                found.runs_beside[stream] = true;
                found.runs_beside[other] = true;
            } else if is_late(work, own_ends_ns[stream], streams)
                && start_ns - end_ns <= limits::WAIT_RELEASE_NS
            {
                found.n_waits[stream] += 1;
                found.n_waits[other] += 1;
            }
        }
        own_ends_ns[stream] = own_ends_ns[stream].max(timeline.end_ns(work));
        latest.add(timeline.end_ns(work), stream);
    }
    found
}

/// Whether neither its launch nor its stream explains when work starts.
fn is_late(work: Order, own_end_ns: i64, streams: &Streams<'_>) -> bool {
    let timeline = streams.timeline;
    let launched_ns = timeline.launcher(work).map(|call| timeline.end_ns(call));
    launched_ns.is_some_and(|launched_ns| {
        let ready_ns = launched_ns.max(own_end_ns);
        timeline.start_ns(work).saturating_sub(ready_ns) > limits::LATE_START_NS
    })
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
