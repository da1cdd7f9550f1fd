//! What calls waited for: as recorded, and as inferred where nothing was recorded.

use super::edges::Edge;
use super::limits;
use super::marks::{Mark, Marks};
use super::nodes::Nodes;
use super::recent::Recent;
use super::starts::role_of;
use super::streams::{first_of_last, latest_to_end, Streams};
use super::timeline::Timeline;
use super::waits::{return_edge, RecordedSyncs};
use super::words::{Evidence, Kind, Role};
use crate::error::Result;
use crate::ids::Rank;
use crate::progress::{report, Progress};
use crate::tables::{EventKind, Tables};
use crate::vocabulary::ApiRole;

/// What the ends of calls are explained from.
pub(super) struct Calls<'a> {
    streams: &'a Streams<'a>,
    nodes: &'a Nodes,
    tables: &'a Tables,
    roles: &'a [ApiRole],
    marks: &'a Marks,
}

impl<'a> Calls<'a> {
    pub(super) fn new(
        streams: &'a Streams<'a>,
        nodes: &'a Nodes,
        tables: &'a Tables,
        roles: &'a [ApiRole],
        marks: &'a Marks,
    ) -> Self {
        Self { streams, nodes, tables, roles, marks }
    }

    fn timeline(&self) -> &Timeline {
        self.streams.timeline
    }

    /// Gives the edges into the ends of calls that waited for a device.
    pub(super) fn edges(
        &self,
        recorded: &RecordedSyncs,
        edges: &mut Vec<Edge>,
        progress: Progress<'_>,
    ) -> Result<()> {
        let timeline = self.timeline();
        let mut threads = vec![Recent::default(); self.tables.lanes.len()];
        for call in timeline.ranks().filter(|&event| timeline.kind(event).is_call()) {
            if call.row() % (1 << 12) == 0 {
                report(progress, call.row() as u64)?;
            }
            let recent = &mut threads[timeline.lane(call)];
            match recorded.producers.get(&call) {
                Some(producers) => edges.extend(producers.iter().map(|&producer| {
                    return_edge(self.streams, self.nodes, producer, call, Evidence::Recorded)
                })),
                None => edges.extend(self.inferred(call, recent)),
            }
            if let Some(&first) = self.streams.launched_by(call).first() {
                edges.extend(self.full_queue(call, first));
                recent.launched_on(self.streams.stream_of(first));
            }
        }
        Ok(())
    }

    /// The edge from the work whose end made room for a launch that had found the
    /// queue of its stream full.
    fn full_queue(&self, call: Rank, first: Rank) -> Option<Edge> {
        let timeline = self.timeline();
        if timeline.duration_ns(call) <= limits::LONG_LAUNCH_NS {
            return None;
        }
        let stream = &self.streams.all[self.streams.stream_of(first)];
        let (start_ns, end_ns) = (timeline.start_ns(call), timeline.end_ns(call));
        if stream.n_outstanding(start_ns, timeline) < limits::FULL_QUEUE_OPERATIONS {
            return None;
        }
        let was_before = |&(_, work): &(i64, Rank)| timeline.submitted_ns(work) < start_ns;
        let (_, blocker) = first_of_last(stream.ending_in(start_ns, end_ns).filter(was_before))?;
        let nodes = (self.nodes.end(blocker), self.nodes.end(call));
        let words = (Kind::QueueFull, Role::QueueFull);
        Some(Edge::new(nodes, words, Some(call), Evidence::Inferred))
    }

    /// The edge of a wait that nothing recorded.
    fn inferred(&self, call: Rank, recent: &Recent) -> Option<Edge> {
        if self.timeline().duration_ns(call) < limits::SHORTEST_WAIT_NS {
            return None;
        }
        let works = self.streams.launched_by(call).iter().copied();
        let copies = works.filter(|&work| self.timeline().kind(work) == EventKind::Copy);
        if let Some(copy) = latest_to_end(copies.map(|work| (self.timeline().end_ns(work), work))) {
            return self.copy_edge(copy, call);
        }
        self.producer(call, recent).map(|producer| self.return_edge(producer, call))
    }

    fn return_edge(&self, producer: Rank, call: Rank) -> Edge {
        return_edge(self.streams, self.nodes, producer, call, Evidence::Inferred)
    }

    /// Lets a call end with its copy if that was over by then.
    ///
    /// The driver stages pageable memory itself: such a call may return while the copy
    /// still runs.
    fn copy_edge(&self, copy: Rank, call: Rank) -> Option<Edge> {
        let timeline = self.timeline();
        let pageable = self.tables.is_pageable(self.timeline().event(copy));
        let blocks = pageable || !self.name(call).contains("Async");
        let late_ns = timeline.end_ns(copy) - timeline.end_ns(call);
        if timeline.start_ns(copy) >= timeline.end_ns(call) {
            return None; // launched by it, not waited for
        }
        if late_ns <= if blocks { limits::CLOCK_TOLERANCE_NS } else { 0 } {
            return Some(self.return_edge(copy, call));
        }
        let staged = pageable && timeline.start_ns(call) <= timeline.start_ns(copy);
        let nodes = (self.nodes.start(copy), self.nodes.end(call));
        let words = (Kind::Runtime, Role::Staging);
        staged.then(|| Edge::new(nodes, words, Some(call), Evidence::Inferred))
    }

    fn name(&self, event: Rank) -> &str {
        self.timeline().name(event).map_or("", |name| self.tables.strings.get(name))
    }

    /// The work that the call waited for, of what calls of its name wait for.
    fn producer(&self, call: Rank, recent: &Recent) -> Option<Rank> {
        match role_of(call, self.timeline(), self.roles) {
            ApiRole::DeviceSynchronize => self.last_ending_in(call, self.streams_of_device(recent)),
            ApiRole::StreamSynchronize => self.work_of_some_stream(call, recent),
            ApiRole::EventSynchronize => self.marked_work(call),
            ApiRole::Allocate | ApiRole::Free | ApiRole::LoadModule => {
                self.implicit(call, self.streams_of_device(recent))
            }
            _ => None,
        }
    }

    /// The streams of the device that the calling thread launched on last.
    fn streams_of_device(&self, recent: &Recent) -> &[usize] {
        let last = recent.streams().next().map(|stream| self.streams.device_of_stream(stream));
        let only_device = (self.streams.n_devices() == 1).then_some(0);
        last.or(only_device).map_or(&[], |device| self.streams.of_device(device))
    }

    /// What finishes last on each stream, of the work submitted before the call.
    fn last_finished<'s>(
        &'s self,
        call: Rank,
        streams: &'s [usize],
    ) -> impl Iterator<Item = (i64, Rank)> + 's {
        let timeline = self.timeline();
        let called_ns = timeline.start_ns(call);
        streams.iter().filter_map(move |&stream| {
            let work = self.streams.all[stream].last_finished_before(called_ns)?;
            Some((timeline.end_ns(work), work))
        })
    }

    fn last_ending_in(&self, call: Rank, streams: &[usize]) -> Option<Rank> {
        latest_to_end(
            self.last_finished(call, streams).filter(|&(_, work)| self.ends_in(work, call)),
        )
    }

    fn ends_in(&self, work: Rank, call: Rank) -> bool {
        let timeline = self.timeline();
        let latest_ns = timeline.end_ns(call) + limits::CLOCK_TOLERANCE_NS;
        let end_ns = timeline.end_ns(work);
        timeline.start_ns(call) < end_ns
            && end_ns <= latest_ns
            && timeline.start_ns(work) < timeline.end_ns(call)
    }

    /// What a call waited for that does not say for which stream.
    fn work_of_some_stream(&self, call: Rank, recent: &Recent) -> Option<Rank> {
        if self.streams.all.len() == 1 {
            return self.last_ending_in(call, &[0]);
        }
        let called_ns = self.timeline().start_ns(call);
        let last = |stream: usize| self.streams.all[stream].last_finished_before(called_ns);
        let lately: Vec<_> = recent.streams().filter_map(last).collect();
        if self.is_short(call) && !lately.is_empty() {
            return self.over_lately(call, &lately);
        }
        let is_soon_over =
            |work: &Rank| self.ends_in(*work, call) && self.returns_ns(*work, call) < 0;
        let has_just_ended = |work: &Rank| self.has_just_ended(*work, call);
        self.last_over(call, limits::QUICKEST_RETURN_NS)
            .filter(has_just_ended)
            .or_else(|| self.last_over(call, 0).filter(has_just_ended))
            .or_else(|| lately.first().copied().filter(is_soon_over))
            .or_else(|| self.last_ending_in(call, &self.every_stream()))
    }

    /// Takes the call to mean the first of some streams that has nothing left at its end.
    fn over_lately(&self, call: Rank, last_of_streams: &[Rank]) -> Option<Rank> {
        let mut works = last_of_streams.iter().copied();
        let over = works.find(|&work| self.returns_ns(work, call) >= 0)?;
        let waited = self.returns_ns(over, call) >= limits::QUICKEST_RETURN_NS;
        (waited && self.ends_in(over, call)).then_some(over)
    }

    /// The last to end in the call, on any stream, at least so long before its end.
    fn last_over(&self, call: Rank, least_ns: i64) -> Option<Rank> {
        let is_over = |&(_, work): &(i64, Rank)| {
            self.ends_in(work, call) && self.returns_ns(work, call) >= least_ns
        };
        latest_to_end(self.last_finished(call, &self.every_stream()).filter(is_over))
    }

    fn every_stream(&self) -> Vec<usize> {
        (0..self.streams.all.len()).collect()
    }

    /// Whether work ended so shortly before the call that this may well be why.
    fn has_just_ended(&self, work: Rank, call: Rank) -> bool {
        self.returns_ns(work, call) <= limits::SYNC_RETURN_NS
    }

    /// How long after the end of the work the call ends.
    fn returns_ns(&self, work: Rank, call: Rank) -> i64 {
        self.timeline().end_ns(call) - self.timeline().end_ns(work)
    }

    fn is_short(&self, call: Rank) -> bool {
        self.timeline().duration_ns(call) < limits::LONG_SYNC_NS
    }

    /// The last to end of all submitted work behind which some event was recorded.
    fn marked_work(&self, call: Rank) -> Option<Rank> {
        let end_ns = self.timeline().end_ns(call);
        let late_ns = end_ns + limits::CLOCK_TOLERANCE_NS;
        if !self.marks.has_records {
            return self.last_marked(call, late_ns, Mark::Possible);
        }
        let likely = self.last_marked(call, end_ns, Mark::Likely);
        if self.is_short(call) {
            return likely;
        }
        let possible = self.last_marked(call, end_ns, Mark::Possible);
        let has_just_ended = |work: &Rank| self.has_just_ended(*work, call);
        likely
            .filter(has_just_ended)
            .or(possible.filter(has_just_ended))
            .or_else(|| self.last_marked(call, late_ns, Mark::Likely))
            .or(possible)
    }

    /// The last to end, up to a time, of all submitted work that is marked at least so.
    fn last_marked(&self, call: Rank, until_ns: i64, least: Mark) -> Option<Rank> {
        let timeline = self.timeline();
        let called_ns = timeline.start_ns(call);
        let may_be = |&(_, work): &(i64, Rank)| {
            self.marks.of_work(work) >= least
                && timeline.submitted_ns(work) < called_ns
                && self.ends_in(work, call)
        };
        latest_to_end(self.streams.all.iter().filter_map(|stream| {
            first_of_last(stream.ending_in(called_ns, until_ns).filter(may_be))
        }))
    }

    /// Believes that a call waited only if the device fell idle shortly before its end.
    fn implicit(&self, call: Rank, streams: &[usize]) -> Option<Rank> {
        let timeline = self.timeline();
        let share_ns = timeline.duration_ns(call) / limits::IMPLICIT_RETURN_PART;
        let end_ns = timeline.end_ns(call);
        let earliest_ns = end_ns - limits::IMPLICIT_RETURN_NS.max(share_ns);
        let last_ns = self.last_finished(call, streams).map(|(end, _)| end).max()?;
        if last_ns > end_ns || last_ns < earliest_ns {
            return None;
        }
        self.last_ending_in(call, streams)
    }
}
