//! The windows of a recording at the times that its events have without the profiler.
//!
//! Windows are chosen as recorded, and move with the events that open and end them, so that facts
//! and predictions are about the same part of the program.

use std::collections::BTreeMap;

use super::model::{Opening, Window};
use super::scope::Scope;
use crate::ids::LaneId;
use crate::tables::{EventKind, Tables};

/// The device counts as busy at a time if an activity ends at most this long before.
const LONGEST_GAP_NS: i64 = 30_000;

impl Scope {
    /// Returns the same windows at other times of the same events.
    #[must_use]
    pub fn retimed(&self, recorded: &Tables, tables: &Tables) -> Self {
        let windows: Vec<_> =
            self.windows.iter().map(|window| window.retimed(recorded, tables)).collect();
        let host_ns = if self.host.is_empty() {
            windows.iter().map(|window| (window.start_ns, window.end_ns)).collect()
        } else {
            self.host.iter().map(|(from, to)| (from.time_ns(tables), to.time_ns(tables))).collect()
        };
        Self { windows, host_ns, ..self.clone() }
    }
}

impl Window {
    /// Returns the same window at other times of the same events.
    #[must_use]
    pub fn retimed(&self, recorded: &Tables, tables: &Tables) -> Self {
        match self.opening {
            Opening::Moments(_) => Self::new(tables, self.candidates.clone(), self.opening.clone()),
            Opening::Time => {
                let (start_ns, end_ns) =
                    moved_range((self.start_ns, self.end_ns), recorded, tables);
                Self { start_ns, end_ns, ..self.clone() }
            }
        }
    }
}

/// Returns two recorded times at other times of the same events: both move with the events of one
/// lane. This is one of a device if it is busy at both times, and otherwise the busiest thread.
#[must_use]
pub fn moved_range(range_ns: (i64, i64), recorded: &Tables, tables: &Tables) -> (i64, i64) {
    let lane = busy_lane(range_ns, recorded).or_else(|| busiest_thread(recorded));
    lane.map_or(range_ns, |lane| moved_with(lane, range_ns, recorded, tables))
}

/// Returns two times at other times of the same events: both move with the events of a lane.
#[must_use]
pub fn moved_with(lane: LaneId, range_ns: (i64, i64), from: &Tables, to: &Tables) -> (i64, i64) {
    let events = &from.events;
    let of_lane = events.ids().filter(|&event| events.lane(event) == lane);
    let spans = of_lane.filter_map(|event| Some((events.span(event)?, to.events.span(event)?)));
    let mut moments: Vec<_> =
        spans.flat_map(|(then, now)| [(then.0, now.0), (then.1, now.1)]).collect();
    moments.sort_unstable();
    (moved_ns(range_ns.0, &moments), moved_ns(range_ns.1, &moments))
}

/// Returns the lane of a device with most activities that is busy at both times.
fn busy_lane(range_ns: (i64, i64), recorded: &Tables) -> Option<LaneId> {
    let events = &recorded.events;
    let mut lanes: BTreeMap<LaneId, (usize, bool, bool)> = BTreeMap::new();
    for work in events.ids().filter(|&event| events.kind(event).is_device_work()) {
        let Some((start_ns, end_ns)) = events.span(work) else { continue };
        let is_busy = |at_ns| start_ns <= at_ns && end_ns > at_ns - LONGEST_GAP_NS;
        let lane = lanes.entry(events.lane(work)).or_default();
        *lane = (lane.0 + 1, lane.1 || is_busy(range_ns.0), lane.2 || is_busy(range_ns.1));
    }
    most_used(lanes.into_iter().filter(|(_, it)| it.1 && it.2).map(|(lane, it)| (lane, it.0)))
}

fn busiest_thread(recorded: &Tables) -> Option<LaneId> {
    let events = &recorded.events;
    let mut lanes: BTreeMap<LaneId, usize> = BTreeMap::new();
    let is_host =
        |kind: EventKind| kind.is_call() || matches!(kind, EventKind::Operator | EventKind::Python);
    for event in events.ids().filter(|&event| is_host(events.kind(event))) {
        *lanes.entry(events.lane(event)).or_default() += 1;
    }
    most_used(lanes.into_iter())
}

fn most_used(lanes: impl Iterator<Item = (LaneId, usize)>) -> Option<LaneId> {
    lanes.max_by_key(|&(lane, count)| (count, std::cmp::Reverse(lane))).map(|(lane, _)| lane)
}

/// Returns a time between moments that have moved; before the first and after the last, it moves
/// with that.
fn moved_ns(time_ns: i64, moments: &[(i64, i64)]) -> i64 {
    let behind = moments.partition_point(|moment| moment.0 <= time_ns);
    let before = behind.checked_sub(1).map(|place| moments[place]);
    match (before, moments.get(behind)) {
        (Some((then, now)), Some(next)) => {
            let (passed_ns, of_ns) = (i128::from(time_ns - then), i128::from(next.0 - then));
            let part = passed_ns * i128::from((next.1 - now).max(0)) / of_ns.max(1);
            now + i64::try_from(part).unwrap_or(0)
        }
        (Some(known), None) | (None, Some(&known)) => time_ns + (known.1 - known.0),
        (None, None) => time_ns,
    }
}
