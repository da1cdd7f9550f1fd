//! Streams that implicitly wait for all others of their device, and for which the others wait: the
//! legacy default stream of CUDA.
//!
//! Neither a call nor a record shows these waits. A stream is assumed to be such a stream if its
//! activities never overlap those of another stream, and if several late starts without another
//! explanation come right after an end on the other side.

use crate::graph::model::{Role, Streams, limits};
use crate::ids::Order;

/// The evidence about each stream from its activities.
pub(super) struct Serial {
    /// Whether an activity of the stream overlapped one of another stream of the device.
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
    /// The number of starts that are unexpectedly late, and directly follow an end on the other side.
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

// How late GPU activities usually start after their launch call and after their predecessor.
//
// The latencies of a machine are learned from its trace, because they differ between machines by
// more than an absolute limit allows.

/// The usual latency of a start, by what it came after.
#[derive(Debug, Clone, Copy)]
pub(in crate::graph) struct Delays {
    launch_ns: Option<i64>,
    order_ns: Option<i64>,
}

impl Delays {
    /// Learns from activities for which either the launch call or the predecessor was over long
    /// before the other.
    pub(super) fn of(streams: &Streams<'_>) -> Self {
        let timeline = streams.timeline;
        let (mut after_launch_ns, mut in_order_ns) = (Vec::new(), Vec::new());
        for &work in streams.all.iter().flat_map(|stream| &stream.works) {
            let Some(call) = timeline.launcher(work) else { continue };
            let (start_ns, launched_ns) = (timeline.start_ns(work), timeline.end_ns(call));
            let before = streams.before_on_stream(work).map(|it| timeline.end_ns(it));
            let free_ns = before.unwrap_or(i64::MIN);
            let alone_ns = launched_ns.saturating_sub(free_ns);
            if start_ns < launched_ns.max(free_ns) {
                continue;
            }
            if alone_ns >= limits::UNDISTURBED_NS {
                after_launch_ns.push(start_ns - launched_ns);
            } else if alone_ns <= -limits::UNDISTURBED_NS {
                in_order_ns.push(start_ns - free_ns);
            }
        }
        Self { launch_ns: typical(after_launch_ns), order_ns: typical(in_order_ns) }
    }

    /// Returns whether a start came so late after what bound it that it probably had another
    /// reason.
    pub(in crate::graph) fn is_odd(&self, role: Role, late_ns: i64) -> bool {
        let usual_ns = match role {
            Role::Launch => self.launch_ns,
            Role::StreamOrder => self.order_ns,
            _ => return false,
        };
        let odd_ns = usual_ns.map_or(limits::LATE_START_NS, |ns| limits::ODDLY_LONG * ns);
        late_ns > odd_ns.clamp(limits::LATE_REPLAY_NS, limits::LATE_START_NS)
    }

    /// Returns whether neither its launch nor its predecessor explains the start of an activity,
    /// and when both were over.
    pub(super) fn odd_since(&self, work: Order, streams: &Streams<'_>) -> Option<i64> {
        let timeline = streams.timeline;
        let launched_ns = timeline.end_ns(timeline.launcher(work)?);
        let free_ns = streams.before_on_stream(work).map(|it| timeline.end_ns(it));
        let (ready_ns, role) = match free_ns {
            Some(free_ns) if free_ns > launched_ns => (free_ns, Role::StreamOrder),
            _ => (launched_ns, Role::Launch),
        };
        let late_ns = timeline.start_ns(work).saturating_sub(ready_ns);
        self.is_odd(role, late_ns).then_some(ready_ns)
    }
}

fn typical(mut delays_ns: Vec<i64>) -> Option<i64> {
    let place = delays_ns.len().checked_sub(1)? * limits::TYPICAL_PERCENT / 100;
    Some(*delays_ns.select_nth_unstable(place).1)
}
