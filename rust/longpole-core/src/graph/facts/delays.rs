//! How late GPU activities usually start after their launch call and after their predecessor.
//!
//! The latencies of a machine are learned from its trace, because they differ between machines by
//! more than an absolute limit allows.

use crate::graph::model::{Role, Streams, limits};
use crate::ids::Order;

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
