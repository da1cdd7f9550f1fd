//! Splits collectives into waiting for other ranks and moving data, if the profile contains their
//! tasks.
//!
//! HCCL records the tasks of a collective: copies, reductions, and waits for the notification of a
//! peer. Time with an open wait and no data movement is waiting. As far as this rank shows, the
//! peer of the longest wait is the rank that arrived last.
//!
//! Limits: peers are numbered within the group of the collective. If two collectives of one device
//! run at the same time, the tasks of both count for each.

use std::collections::BTreeMap;

use crate::columns::columns;
use crate::ids::EventId;
use crate::intervals::Spans;
use crate::tables::{EventKind, Tables, WorkClass, argument};
use crate::vocabulary::TaskKind;

/// The number that means no peer.
const NO_PEER: i64 = 0xFFFF_FFFF;

columns! {
    /// Waiting and data movement of a collective.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct CollectiveWait {
        /// The collective.
        pub event: EventId,
        /// Time that it waits for peers without moving data.
        pub waiting_ns: i64,
        /// Time that it moves or reduces data.
        pub moving_ns: i64,
        /// The peer of its longest wait.
        pub awaited_peer: Option<i64>,
        /// Duration of its longest wait for one peer.
        pub awaited_ns: i64,
        /// Largest peer number plus one: the minimum number of participating ranks.
        pub group_size: i64,
    }
}

/// The waiting of the collectives that begin in some time ranges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Awaited {
    /// The collective with the longest wait for one peer.
    pub event: EventId,
    /// The peer with the longest wait, by its number in the group.
    pub peer: i64,
    /// Duration of the longest wait for one peer.
    pub peer_ns: i64,
    /// Total waiting of all of them.
    pub waiting_ns: i64,
    /// Total duration of all of them.
    pub total_ns: i64,
}

/// Sums the collectives that begin in some time ranges; `None` if the trace does not contain their
/// tasks.
pub fn awaited(tables: &Tables, time_ranges: &[(i64, i64)]) -> Option<Awaited> {
    let events = &tables.events;
    let latest_ends = LatestEnds::of(time_ranges);
    let begins = |event: EventId| latest_ends.hold(events.start_ns(event));
    let found = waits_of(tables, begins);
    let longest = found.iter().max_by_key(|it| (it.awaited_ns, std::cmp::Reverse(it.event)))?;
    Some(Awaited {
        event: longest.event,
        peer: longest.awaited_peer?,
        peer_ns: longest.awaited_ns,
        waiting_ns: found.iter().map(|it| it.waiting_ns).sum(),
        total_ns: found.iter().filter_map(|it| events.duration_ns(it.event)).sum(),
    })
}

/// Time ranges sorted by start, each with the latest end up to it.
struct LatestEnds(Vec<(i64, i64)>);

impl LatestEnds {
    fn of(time_ranges: &[(i64, i64)]) -> Self {
        let mut sorted = time_ranges.to_vec();
        sorted.sort_unstable();
        let mut latest_ns = i64::MIN;
        for (_, end_ns) in &mut sorted {
            latest_ns = latest_ns.max(*end_ns);
            *end_ns = latest_ns;
        }
        Self(sorted)
    }

    /// Whether a time is in one of the ranges.
    fn hold(&self, time_ns: i64) -> bool {
        let n_begun = self.0.partition_point(|&(start_ns, _)| start_ns <= time_ns);
        n_begun > 0 && time_ns < self.0[n_begun - 1].1
    }
}

/// A task of a collective.
#[derive(Clone, Copy)]
struct Part {
    start_ns: i64,
    end_ns: i64,
    is_wait: bool,
    is_move: bool,
    peer: Option<i64>,
}

/// Returns every collective whose tasks are in the trace, in file order.
pub fn collective_waits(tables: &Tables) -> Vec<CollectiveWait> {
    waits_of(tables, |_| true)
}

/// Like [`collective_waits`], for the collectives that `counts` accepts.
fn waits_of(tables: &Tables, counts: impl Fn(EventId) -> bool) -> Vec<CollectiveWait> {
    let parts = parts(tables);
    if parts.is_empty() {
        return Vec::new();
    }
    let class_of = tables.work_classes();
    let events = &tables.events;
    let is_collective = |&event: &EventId| class_of(event) == Some(WorkClass::Communication);
    let split = |event: EventId| {
        let device = tables.lanes.place(events.lane(event)).device;
        Some(split(event, events.span(event)?, parts.get(&device)?))
    };
    let chosen = events.ids().filter(is_collective).filter(|&event| counts(event));
    chosen.filter_map(split).filter(|found| found.group_size > 0).collect()
}

/// Returns the tasks of collectives that have a peer, by device, in order of time.
fn parts(tables: &Tables) -> BTreeMap<Option<i64>, Vec<Part>> {
    let kinds: Vec<_> = tables.strings.iter().map(part_kind).collect();
    let events = &tables.events;
    let mut found: BTreeMap<Option<i64>, Vec<Part>> = BTreeMap::new();
    for event in events.ids().filter(|&event| events.kind(event) == EventKind::DeviceTask) {
        let Some((start_ns, end_ns)) = events.span(event) else { continue };
        let Some(peer) = argument(event, "dst rank", tables) else { continue };
        let (is_wait, is_move) = events.name(event).map_or((false, false), |it| kinds[it.row()]);
        let peer = Some(peer).filter(|&peer| (0..NO_PEER).contains(&peer));
        let device = tables.lanes.place(events.lane(event)).device;
        found.entry(device).or_default().push(Part { start_ns, end_ns, is_wait, is_move, peer });
    }
    for parts in found.values_mut() {
        parts.sort_by_key(|part| (part.start_ns, part.end_ns, part.peer));
    }
    found
}

/// Whether a task waits, and whether it moves data, judged by its name.
fn part_kind(name: &str) -> (bool, bool) {
    let is_wait = TaskKind::of_type(name) == TaskKind::Wait;
    let is_mark = TaskKind::of_type(name) == TaskKind::Mark;
    (is_wait, !is_wait && !is_mark)
}

fn split(event: EventId, (start_ns, end_ns): (i64, i64), parts: &[Part]) -> CollectiveWait {
    let first = parts.partition_point(|part| part.start_ns < start_ns);
    let behind = parts.partition_point(|part| part.start_ns <= end_ns);
    let own = &parts[first..behind.max(first)];
    let spans = |chosen: fn(&Part) -> bool| {
        let chosen = own.iter().filter(|part| chosen(part));
        Spans::union_of(chosen.map(|part| (part.start_ns, part.end_ns.min(end_ns))))
    };
    let moving = spans(|part| part.is_move);
    let all = spans(|part| part.is_move || part.is_wait);
    let mut of_peer: BTreeMap<i64, i64> = BTreeMap::new();
    for part in own.iter().filter(|part| part.is_wait) {
        if let Some(peer) = part.peer {
            let longest = of_peer.entry(peer).or_default();
            *longest = (*longest).max(part.end_ns.min(end_ns) - part.start_ns);
        }
    }
    let longest = of_peer.into_iter().max_by_key(|&(peer, ns)| (ns, -peer));
    let group_size = own.iter().filter_map(|part| part.peer).max().map_or(0, |peer| peer + 1);
    CollectiveWait {
        event,
        waiting_ns: all.length_ns() - moving.length_ns(),
        moving_ns: moving.length_ns(),
        awaited_peer: longest.map(|(peer, _)| peer),
        awaited_ns: longest.map_or(0, |(_, ns)| ns),
        group_size,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::{Options, read_bytes};

    #[test]
    fn times_are_found_in_stretches_in_any_order_that_overlap() {
        let time_ranges = [(50, 60), (0, 40), (10, 20), (60, 60)];
        let latest_ends = LatestEnds::of(&time_ranges);
        for time in -1..70 {
            let expected = time_ranges.iter().any(|&(from, to)| from <= time && time < to);
            assert_eq!(latest_ends.hold(time), expected, "{time}");
        }
        assert!(!LatestEnds::of(&[]).hold(0));
    }

    #[test]
    fn a_collective_waits_while_it_moves_nothing_and_the_longest_wait_names_the_peer() {
        let meta = |kind: &str, tid: i64, value: &str| {
            format!(
                r#"{{"ph":"M","name":"{kind}","pid":5,"tid":{tid},"args":{{"name":"{value}"}}}}"#
            )
        };
        let part = |name: &str, ts: i64, dur: i64, peer: i64| {
            format!(
                r#"{{"ph":"X","name":"{name}","pid":5,"tid":1,"ts":{ts},"dur":{dur},
                "args":{{"stream id":4,"dst rank":{peer}}}}}"#
            )
        };
        let rows = [
            meta("process_name", 0, "HCCL"),
            meta("thread_name", 0, "Group 0 Communication"),
            meta("thread_name", 1, "Plane 0"),
            r#"{"ph":"X","name":"hcom_allReduce__5_0_1","pid":5,"tid":0,"ts":100,"dur":100}"#
                .into(),
            part("Memcpy", 100, 10, NO_PEER),
            part("Notify_Record", 110, 1, 1),
            part("Notify_Wait", 110, 20, 1),
            part("Notify_Wait", 110, 60, 5),
            part("Reduce_Inline", 160, 40, 1),
            part("Notify_Wait", 900, 60, 7),
        ];
        let text = format!("[{}]", rows.join(","));
        let tables = read_bytes(text.as_bytes(), &Options::default()).unwrap();
        let event = EventId::from_row(0);
        let expected = CollectiveWait {
            event,
            waiting_ns: 50_000,
            moving_ns: 50_000,
            awaited_peer: Some(5),
            awaited_ns: 60_000,
            group_size: 6,
        };
        assert_eq!(collective_waits(&tables), [expected]);
    }
}
