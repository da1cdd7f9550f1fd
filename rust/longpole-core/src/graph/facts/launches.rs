//! The effect of each call on ordering, the threads that launch, and launches whose activity is
//! missing from the trace.

use crate::graph::model::{Streams, Timeline};
use crate::ids::{Order, RowSet};
use crate::link::Captures;
use crate::tables::Tables;
use crate::vocabulary::ApiRole;

/// The purpose of each name in a trace.
pub(in crate::graph) struct Purposes {
    of_name: Vec<ApiRole>,
}

impl Purposes {
    pub(super) fn of(tables: &Tables) -> Self {
        Self { of_name: tables.roles() }
    }

    pub(super) fn purpose(&self, event: Order, timeline: &Timeline) -> ApiRole {
        timeline.name(event).map_or(ApiRole::Other, |name| self.of_name[name.row()])
    }
}

// The threads that launch to each device.

/// Returns the threads that launch activities to each device, sorted.
pub(super) fn threads_of_devices(streams: &Streams<'_>) -> Vec<Vec<usize>> {
    let timeline = streams.timeline;
    let threads = |device: usize| {
        let works = streams.of_device(device).iter().flat_map(|&it| &streams.all[it].works);
        let launchers = works.filter_map(|&work| timeline.launcher(work));
        let mut threads: Vec<_> = launchers.map(|call| timeline.lane(call)).collect();
        threads.sort_unstable();
        threads.dedup();
        threads
    };
    (0..streams.n_devices()).map(threads).collect()
}

// Launches whose GPU activity is missing from the trace.
//
// Memsets and launches captured into a graph record no activity in any trace, so they do not count
// as missing.

/// The launches of each thread whose GPU activity is missing.
#[derive(Default)]
pub(in crate::graph) struct MissingActivities {
    all: RowSet<Order>,
    /// All of them, in content order.
    calls: Vec<Order>,
    /// The start times of the launches by lane, sorted.
    times_ns: Vec<Vec<i64>>,
}

impl MissingActivities {
    pub(super) fn of(streams: &Streams<'_>, purposes: &Purposes, tables: &Tables) -> Self {
        let timeline = streams.timeline;
        let times_ns = vec![Vec::new(); streams.n_lanes()];
        let mut found = Self { times_ns, ..Self::default() };
        if streams.all.is_empty() {
            return found;
        }
        let captures = Captures::of(tables);
        for call in timeline.orders().filter(|&event| timeline.kind(event).is_call()) {
            let role = purposes.purpose(call, timeline);
            if matches!(role, ApiRole::Launch | ApiRole::Copy | ApiRole::BlockingCopy)
                && !captures.contain(timeline.event(call), tables)
                && is_without_work(call, streams, tables)
            {
                found.add(call, timeline.lane(call), timeline.start_ns(call));
            }
        }
        found
    }

    fn add(&mut self, call: Order, thread: usize, time_ns: i64) {
        self.all.insert(call);
        self.calls.push(call);
        self.times_ns[thread].push(time_ns);
    }

    /// Returns all launches without an activity, in content order.
    pub(in crate::graph) fn calls(&self) -> &[Order] {
        &self.calls
    }

    /// Returns the number of launches without an activity.
    pub(in crate::graph) fn len(&self) -> usize {
        self.all.len()
    }

    pub(in crate::graph) fn contains(&self, call: Order) -> bool {
        self.all.contains(&call)
    }

    /// Whether a thread made such a launch in `(after, until]`.
    pub(in crate::graph) fn is_any_in(
        &self,
        thread: usize,
        (after_ns, until_ns): (i64, i64),
    ) -> bool {
        let times_ns = &self.times_ns[thread];
        times_ns
            .get(times_ns.partition_point(|&ns| ns <= after_ns))
            .is_some_and(|&ns| ns < until_ns)
    }
}

/// Whether a launch call has no activity in the trace.
fn is_without_work(call: Order, streams: &Streams<'_>, tables: &Tables) -> bool {
    let timeline = streams.timeline;
    let number = tables.events.correlation(timeline.event(call));
    let name = timeline.name(call).map_or("", |name| tables.strings.get(name));
    streams.launched_by(call).is_empty()
        && number.is_some_and(|number| number > 0)
        && !name.contains("Memset")
}
