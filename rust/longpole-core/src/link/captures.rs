//! Captures of CUDA graphs: launches in them do no work until the graph is replayed.

use std::collections::BTreeMap;

use crate::ids::{EventId, LaneId};
use crate::tables::Tables;

/// The times in which threads capture graphs.
#[derive(Debug, Default)]
pub struct Captures {
    /// Start and end in ns by thread, sorted.
    of_lane: BTreeMap<LaneId, Vec<(i64, i64)>>,
}

impl Captures {
    /// Finds the captures of a trace. One without an end lasts until the end of the trace.
    pub fn of(tables: &Tables) -> Self {
        let events = &tables.events;
        let begins = tables.strings.matching(|name| name.contains("BeginCapture"));
        let ends = tables.strings.matching(|name| name.contains("EndCapture"));
        let mut calls: Vec<(LaneId, i64, bool)> = events
            .ids()
            .filter(|&event| events.kind(event).is_call())
            .filter_map(|event| {
                let name = events.name(event)?.row();
                let is_either = begins[name] || ends[name];
                is_either.then(|| (events.lane(event), events.start_ns(event), begins[name]))
            })
            .collect();
        calls.sort_unstable();
        let mut of_lane: BTreeMap<LaneId, Vec<(i64, i64)>> = BTreeMap::new();
        for (lane, time_ns, is_begin) in calls {
            let captures = of_lane.entry(lane).or_default();
            let open = captures.last_mut().filter(|capture| capture.1 == i64::MAX);
            match (is_begin, open) {
                (true, None) => captures.push((time_ns, i64::MAX)),
                (false, Some(capture)) => capture.1 = time_ns,
                _ => {}
            }
        }
        Self { of_lane }
    }

    /// Whether a call is made while its thread captures a graph.
    pub fn contain(&self, call: EventId, tables: &Tables) -> bool {
        let Some(captures) = self.of_lane.get(&tables.events.lane(call)) else { return false };
        let time_ns = tables.events.start_ns(call);
        let next = captures.partition_point(|capture| capture.0 <= time_ns);
        next.checked_sub(1).is_some_and(|last| time_ns < captures[last].1)
    }
}
