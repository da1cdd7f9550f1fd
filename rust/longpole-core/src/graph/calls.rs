//! What calls waited for: as recorded, and as inferred where nothing was recorded.

use super::edges::Edge;
use super::limits;
use super::nodes::Nodes;
use super::starts::purpose_of;
use super::streams::{first_of_last, latest_to_end, Streams};
use super::timeline::Timeline;
use super::waits::{return_edge, RecordedSyncs};
use super::words::{Evidence, Kind, Role};
use crate::error::Result;
use crate::ids::Rank;
use crate::link::Purpose;
use crate::progress::{report, Progress};
use crate::tables::{EventKind, Tables};

/// What the ends of calls are explained from.
pub(super) struct Calls<'a> {
    streams: &'a Streams<'a>,
    nodes: &'a Nodes,
    tables: &'a Tables,
    purposes: &'a [Purpose],
    /// For each thread: when it launched, and on which device, in order of time.
    launched: Vec<Vec<(i64, Rank, usize)>>,
    /// Of all work, whether it was its stream's last when an event was recorded;
    /// none where the trace shows no event being recorded.
    marked: Option<Vec<bool>>,
}

impl<'a> Calls<'a> {
    pub(super) fn new(
        streams: &'a Streams<'a>,
        nodes: &'a Nodes,
        tables: &'a Tables,
        purposes: &'a [Purpose],
    ) -> Self {
        let launched = launched(streams, tables);
        Self { streams, nodes, tables, purposes, launched, marked: marked(streams, purposes) }
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
        for call in timeline.ranks().filter(|&event| timeline.kind(event).is_call()) {
            if call.row() % (1 << 12) == 0 {
                report(progress, call.row() as u64)?;
            }
            if timeline.duration_ns(call) < limits::SHORTEST_WAIT_NS
                && recorded.producers.is_empty()
            {
                continue;
            }
            match recorded.producers.get(&call) {
                Some(producers) => edges.extend(producers.iter().map(|&producer| {
                    return_edge(self.streams, self.nodes, producer, call, Evidence::Recorded)
                })),
                None => edges.extend(self.inferred(call)),
            }
            edges.extend(self.full_queue(call));
        }
        Ok(())
    }

    /// The edge from the work whose end made room for a launch that had found the
    /// queue of its stream full.
    fn full_queue(&self, call: Rank) -> Option<Edge> {
        let timeline = self.timeline();
        let first = *self.streams.launched_by(call).first()?;
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
    fn inferred(&self, call: Rank) -> Option<Edge> {
        if self.timeline().duration_ns(call) < limits::SHORTEST_WAIT_NS {
            return None;
        }
        let works = self.streams.launched_by(call).iter().copied();
        let copies = works.filter(|&work| self.timeline().kind(work) == EventKind::Copy);
        if let Some(copy) = latest_to_end(copies.map(|work| (self.timeline().end_ns(work), work))) {
            return self.copy_edge(copy, call);
        }
        self.producer(call).map(|producer| self.return_edge(producer, call))
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
        let pageable = self.name(copy).contains("Pageable");
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
    fn producer(&self, call: Rank) -> Option<Rank> {
        match purpose_of(call, self.timeline(), self.purposes) {
            Purpose::WaitForDevice => self.last_ending_in(call, self.streams_of_device(call)),
            Purpose::WaitForStream => self.last_ending_in(call, &self.every_stream()),
            Purpose::WaitForEvent => self.marked_work(call),
            Purpose::MayWait => self.implicit(call),
            _ => None,
        }
    }

    fn every_stream(&self) -> Vec<usize> {
        (0..self.streams.all.len()).collect()
    }

    /// The streams of the device that the calling thread launched on last.
    fn streams_of_device(&self, call: Rank) -> &[usize] {
        let timeline = self.timeline();
        let launched = self.launched.get(timeline.lane(call)).map_or(&[][..], Vec::as_slice);
        let before = launched.partition_point(|launch| launch.0 <= timeline.start_ns(call));
        let only_device = (self.streams.n_devices() == 1).then_some(0);
        let device = before.checked_sub(1).map(|last| launched[last].2).or(only_device);
        device.map_or(&[], |device| self.streams.of_device(device))
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

    /// The last to end of all submitted work that was the last of its stream when
    /// some event was recorded.
    fn marked_work(&self, call: Rank) -> Option<Rank> {
        let timeline = self.timeline();
        let called_ns = timeline.start_ns(call);
        let latest_ns = timeline.end_ns(call) + limits::CLOCK_TOLERANCE_NS;
        let may_be = |&(_, work): &(i64, Rank)| {
            timeline.submitted_ns(work) < called_ns
                && self.ends_in(work, call)
                && self.marked.as_ref().is_none_or(|marked| marked[work.row()])
        };
        let of_streams = self.streams.all.iter();
        latest_to_end(of_streams.filter_map(|stream| {
            first_of_last(stream.ending_in(called_ns, latest_ns).filter(may_be))
        }))
    }

    /// Believes that a call waited only if the device fell idle shortly before its end.
    fn implicit(&self, call: Rank) -> Option<Rank> {
        let timeline = self.timeline();
        let streams = self.streams_of_device(call);
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

fn launched(streams: &Streams<'_>, tables: &Tables) -> Vec<Vec<(i64, Rank, usize)>> {
    let timeline = streams.timeline;
    let mut launched = vec![Vec::new(); tables.lanes.len()];
    for call in timeline.ranks().filter(|&event| timeline.kind(event).is_call()) {
        if let Some(&first) = streams.launched_by(call).first() {
            let launch = (timeline.start_ns(call), first, streams.device_of(first));
            launched[timeline.lane(call)].push(launch);
        }
    }
    for of_thread in &mut launched {
        of_thread.sort_unstable();
    }
    launched
}

fn marked(streams: &Streams<'_>, purposes: &[Purpose]) -> Option<Vec<bool>> {
    let timeline = streams.timeline;
    let records = |event: &Rank| purpose_of(*event, timeline, purposes) == Purpose::RecordEvent;
    let times_ns: Vec<_> =
        timeline.ranks().filter(records).map(|event| timeline.start_ns(event)).collect();
    if times_ns.is_empty() {
        return None;
    }
    let mut marked = vec![false; timeline.len()];
    for work in streams.all.iter().flat_map(|stream| stream.last_at(&times_ns)) {
        marked[work.row()] = true;
    }
    Some(marked)
}
