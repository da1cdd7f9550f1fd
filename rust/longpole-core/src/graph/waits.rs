//! Calls that wait for a device, and streams that wait for each other, as recorded.

use std::collections::HashMap;

use super::edges::Edge;
use super::limits;
use super::nodes::Nodes;
use super::starts::{inside_edge, role_of};
use super::streams::{Stream, Streams};
use super::timeline::Timeline;
use super::words::{Evidence, Kind, Role};
use crate::ids::Rank;
use crate::link::{SyncRecord, WaitsFor};
use crate::tables::Tables;
use crate::vocabulary::ApiRole;

/// The records of a trace, ready to be asked.
pub(super) struct Records<'a> {
    pub(super) all: &'a [SyncRecord],
    pub(super) tables: &'a Tables,
    pub(super) streams: &'a Streams<'a>,
    pub(super) nodes: &'a Nodes,
}

/// Whether the thread that launched a piece of work had asked a stream to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// It had not since it launched on this stream last.
    No,
    /// It had, but launched on other streams since.
    Before,
    /// It had, and launched nothing since.
    JustNow,
}

/// What the records say about calls.
#[derive(Default)]
pub(super) struct RecordedSyncs {
    /// For all calls that a record covers, what they waited for.
    pub(super) producers: HashMap<Rank, Vec<Rank>>,
    /// Records that do not say what was waited for.
    pub(super) unknown: u64,
    /// Records whose call is not in the trace.
    pub(super) without_call: u64,
}

impl Records<'_> {
    /// Gives the edges of recorded waits between streams, in order of the work that
    /// waits.
    pub(super) fn stream_waits(&self) -> Vec<(Rank, Edge)> {
        let mut waits: Vec<_> =
            self.all.iter().filter_map(|record| self.stream_wait(record)).collect();
        waits.sort_by_key(|&(waiter, _)| waiter);
        waits
    }

    fn stream_wait(&self, record: &SyncRecord) -> Option<(Rank, Edge)> {
        let WaitsFor::EventOfStream(number) = record.waits_for else { return None };
        let asked_ns = self.tables.events.start_ns(record.call.unwrap_or(record.event));
        let waiter =
            self.streams.numbered(record.device, record.stream)?.next_submitted_after(asked_ns)?;
        let other = self.streams.numbered(record.device, Some(number))?;
        let producer = other.last_submitted_before(self.recorded_ns(record, asked_ns))?;
        if waiter == producer {
            return None;
        }
        let nodes = (self.nodes.end(producer), self.nodes.start(waiter));
        let words = (Kind::EventWait, Role::EventWait);
        Some((waiter, Edge::new(nodes, words, Some(waiter), Evidence::Recorded)))
    }

    /// When the event waited for was recorded; at the latest when it was waited for.
    fn recorded_ns(&self, record: &SyncRecord, asked_ns: i64) -> i64 {
        record.recorded_by.map_or(asked_ns, |call| self.tables.events.start_ns(call))
    }

    /// Of all work, whether its thread asked its stream to wait since it launched
    /// there last. Calls with a record are left out: there, nothing is to be guessed.
    pub(super) fn asked_to_wait(&self, roles: &[ApiRole]) -> Vec<Asked> {
        let timeline = self.streams.timeline;
        let mut asked = vec![Asked::No; timeline.len()];
        let mut n_waits: HashMap<usize, u32> = HashMap::new();
        let mut n_launched: HashMap<usize, u32> = HashMap::new();
        let mut n_seen: HashMap<(usize, usize), u32> = HashMap::new();
        let recorded = self.recorded_stream_wait_calls();
        let lets_wait = |call| role_of(call, timeline, roles) == ApiRole::StreamWait;
        if !timeline.ranks().any(lets_wait) {
            return asked;
        }
        for call in timeline.ranks().filter(|&event| timeline.kind(event).is_call()) {
            let thread = timeline.lane(call);
            let waits = n_waits.entry(thread).or_default();
            *waits += u32::from(lets_wait(call) && recorded.binary_search(&call).is_err());
            let works = self.streams.launched_by(call);
            let seen = |work: Rank| (thread, self.streams.stream_of(work));
            for &work in works {
                if n_launched.get(&thread).copied().unwrap_or(0) < *waits {
                    asked[work.row()] = Asked::JustNow;
                } else if n_seen.get(&seen(work)).copied().unwrap_or(0) < *waits {
                    asked[work.row()] = Asked::Before;
                }
            }
            for &work in works {
                n_seen.insert(seen(work), *waits);
                n_launched.insert(thread, *waits);
            }
        }
        asked
    }

    fn recorded_stream_wait_calls(&self) -> Vec<Rank> {
        let is_wait = |record: &&SyncRecord| matches!(record.waits_for, WaitsFor::EventOfStream(_));
        let call = |record: &SyncRecord| self.streams.timeline.rank(record.call?);
        let mut calls: Vec<_> = self.all.iter().filter(is_wait).filter_map(call).collect();
        calls.sort_unstable();
        calls
    }

    /// What the records say about calls that waited.
    pub(super) fn syncs(&self, roles: &[ApiRole]) -> RecordedSyncs {
        let mut found = RecordedSyncs::default();
        for record in self.all {
            let call = record.call.and_then(|call| self.streams.timeline.rank(call));
            match (record.waits_for, call) {
                (WaitsFor::Unknown, _) => found.unknown += 1,
                (_, None) => found.without_call += 1,
                (WaitsFor::EventOfStream(_), _) => {}
                (_, Some(call)) => {
                    let producers = found.producers.entry(call).or_default();
                    if role_of(call, self.streams.timeline, roles) != ApiRole::Query {
                        producers.extend(self.producers(record, call));
                    }
                }
            }
        }
        found
    }

    fn producers(&self, record: &SyncRecord, call: Rank) -> Vec<Rank> {
        let called_ns = self.streams.timeline.start_ns(call);
        let numbered = |stream| self.streams.numbered(record.device, stream);
        let last = |stream: &Stream| stream.last_finished_before(called_ns);
        match record.waits_for {
            WaitsFor::Stream => numbered(record.stream).and_then(last).into_iter().collect(),
            WaitsFor::Event(stream) => {
                let recorded_ns = self.recorded_ns(record, called_ns);
                let last = |stream: &Stream| stream.last_finished_before(recorded_ns);
                numbered(Some(stream)).and_then(last).into_iter().collect()
            }
            WaitsFor::Device => {
                let streams = self.streams.of_device_number(record.device);
                streams.into_iter().filter_map(|stream| last(&self.streams.all[stream])).collect()
            }
            WaitsFor::EventOfStream(_) | WaitsFor::Unknown => Vec::new(),
        }
    }
}

/// Lets a call end with the work; what by its stamps ends a little later is cut off.
pub(super) fn return_edge(
    streams: &Streams<'_>,
    nodes: &Nodes,
    producer: Rank,
    call: Rank,
    evidence: Evidence,
) -> Edge {
    let timeline: &Timeline = streams.timeline;
    let late_ns = timeline.end_ns(producer) - timeline.end_ns(call);
    let target = nodes.end(call);
    if 0 < late_ns
        && late_ns <= limits::CLOCK_TOLERANCE_NS
        && timeline.start_ns(producer) < timeline.end_ns(call)
    {
        let mut edge = inside_edge(streams, nodes, producer, target, Role::SyncInside);
        edge.evidence = evidence;
        return edge;
    }
    let words = (Kind::SyncReturn, Role::Sync);
    Edge::new((nodes.end(producer), target), words, Some(call), evidence)
}
