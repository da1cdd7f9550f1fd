//! Why device work starts when it starts, and ends when it ends.

use std::collections::{BTreeSet, HashMap};

use super::edges::Edge;
use super::limits;
use super::marks::{Mark, Marks};
use super::nodes::Nodes;
use super::streams::{first_of_last, latest_to_end, Stream, Streams};
use super::timeline::Timeline;
use super::waits::Asked;
use super::words::{Evidence, Kind, Role};
use crate::error::Result;
use crate::ids::{NodeId, Rank};
use crate::progress::{report, Progress};
use crate::vocabulary::ApiRole;

/// What the starts of device work are explained from.
pub(super) struct Starts<'a> {
    pub(super) streams: &'a Streams<'a>,
    pub(super) nodes: &'a Nodes,
    pub(super) roles: &'a [ApiRole],
    /// Edges of recorded waits between streams, in order of the work that waits.
    pub(super) recorded_waits: &'a [(Rank, Edge)],
    /// Of all work, whether its thread asked its stream to wait, without a record,
    /// since it launched there last.
    pub(super) asked_to_wait: &'a [Asked],
    pub(super) marks: &'a Marks,
    /// Whether the trace has calls that let a stream wait at all.
    pub(super) has_wait_calls: bool,
    nodes_of_thread: std::cell::OnceCell<HashMap<usize, Vec<NodeId>>>,
}

impl<'a> Starts<'a> {
    pub(super) fn new(
        streams: &'a Streams<'a>,
        nodes: &'a Nodes,
        roles: &'a [ApiRole],
        recorded_waits: &'a [(Rank, Edge)],
        asked_to_wait: &'a [Asked],
        marks: &'a Marks,
    ) -> Self {
        let timeline = streams.timeline;
        let lets_wait = |event| role_of(event, timeline, roles) == ApiRole::StreamWait;
        let has_wait_calls = timeline.ranks().any(lets_wait);
        let nodes_of_thread = std::cell::OnceCell::new();
        Self {
            streams,
            nodes,
            roles,
            recorded_waits,
            asked_to_wait,
            marks,
            has_wait_calls,
            nodes_of_thread,
        }
    }

    /// Gives the edges into the start and the end of every piece of device work.
    pub(super) fn edges(&self, edges: &mut Vec<Edge>, progress: Progress<'_>) -> Result<()> {
        for stream in &self.streams.all {
            let mut neighbours = Neighbours::default();
            for (row, &work) in stream.works.iter().enumerate() {
                if row % (1 << 14) == 0 {
                    report(progress, row as u64)?;
                }
                neighbours.go_to(work, self.timeline());
                self.end_edges(work, &neighbours, edges);
                self.start_edges(work, &neighbours, edges);
                neighbours.add(work, self.timeline());
            }
        }
        Ok(())
    }

    fn timeline(&self) -> &Timeline {
        self.streams.timeline
    }

    fn end_edges(&self, work: Rank, neighbours: &Neighbours, edges: &mut Vec<Edge>) {
        let (start, end) = (self.nodes.start(work), self.nodes.end(work));
        let kind = self.streams.kind_of(work);
        edges.push(Edge::new((start, end), (kind, Role::DeviceWork), Some(work), Evidence::Order));
        for other in neighbours.ending_before(self.timeline().end_ns(work)) {
            let ends = (self.nodes.end(other), end);
            edges.push(Edge::new(ends, (kind, Role::OverlapTail), Some(work), Evidence::Order));
        }
    }

    fn start_edges(&self, work: Rank, neighbours: &Neighbours, edges: &mut Vec<Edge>) {
        let first = edges.len();
        self.order_edges(work, neighbours, edges);
        self.launch_edges(work, edges);
        let waits = self.recorded_waits.partition_point(|&(waiter, _)| waiter < work);
        let waits = self.recorded_waits[waits..].iter().take_while(|&&(waiter, _)| waiter == work);
        edges.extend(waits.map(|&(_, edge)| edge));
        self.explain(work, neighbours.running, edges, first);
    }

    fn order_edges(&self, work: Rank, neighbours: &Neighbours, edges: &mut Vec<Edge>) {
        let start = self.nodes.start(work);
        if let Some((_, other)) = neighbours.last_finished {
            let words = (Kind::KernelDelay, Role::StreamOrder);
            edges.push(Edge::new(
                (self.nodes.end(other), start),
                words,
                Some(work),
                Evidence::Order,
            ));
        }
        if let Some(other) = neighbours.running {
            let words = (Kind::StreamOverlap, Role::StreamOverlap);
            edges.push(Edge::new(
                (self.nodes.start(other), start),
                words,
                Some(work),
                Evidence::Order,
            ));
        }
    }

    /// Lets the call come first. One that begins after its work shows skewed clocks:
    /// the edge is given as it is, to be found among the violations, and the work
    /// hangs on what the thread did before.
    fn launch_edges(&self, work: Rank, edges: &mut Vec<Edge>) {
        let timeline = self.timeline();
        let Some(call) = timeline.launcher(work) else { return };
        let start = self.nodes.start(work);
        let mut push = |source, words, event| {
            edges.push(Edge::new((source, start), words, Some(event), Evidence::Correlation));
        };
        if timeline.end_ns(call) <= timeline.start_ns(work) {
            push(self.nodes.end(call), (Kind::Launch, Role::Launch), work);
        } else if timeline.start_ns(call) <= timeline.start_ns(work) {
            push(self.nodes.start(call), (Kind::Runtime, Role::LaunchInside), call);
        } else {
            push(self.nodes.start(call), (Kind::Launch, Role::Launch), work);
            if let Some(before) = self.last_of_thread(call, timeline.start_ns(work)) {
                push(before, (Kind::ClockSkew, Role::Clock), work);
            }
        }
    }

    /// The last node of the thread of `call` at or before a time.
    fn last_of_thread(&self, call: Rank, at_ns: i64) -> Option<NodeId> {
        let timeline = self.timeline();
        let nodes_of_thread = self.nodes_of_thread.get_or_init(|| {
            let mut nodes: HashMap<usize, Vec<NodeId>> = HashMap::new();
            for node in self.nodes.ids() {
                let event = self.nodes.event(node);
                if !timeline.kind(event).is_device_work() {
                    nodes.entry(timeline.lane(event)).or_default().push(node);
                }
            }
            nodes
        });
        let nodes = nodes_of_thread.get(&timeline.lane(call))?;
        let behind = nodes.partition_point(|&node| self.nodes.time_ns(node) <= at_ns);
        behind.checked_sub(1).map(|last| nodes[last])
    }

    /// Adds the reason of a start that comes later than its edges (those from `first`
    /// on) say, or names the gap openly.
    fn explain(&self, work: Rank, running: Option<Rank>, edges: &mut Vec<Edge>, first: usize) {
        let start_ns = self.timeline().start_ns(work);
        let order = |edge: &Edge| edge.binding_order(self.nodes, self.nodes.times_ns());
        let forward = |place: &usize| self.nodes.time_ns(edges[*place].source) <= start_ns;
        let binding =
            (first..edges.len()).filter(forward).min_by_key(|&place| order(&edges[place]));
        let Some(binding) = binding else {
            if edges.len() == first {
                edges.extend(self.any_reason(work));
            }
            return;
        };
        let ready_ns = edges[binding].finished_ns(self.nodes.times_ns());
        let late_ns = start_ns - ready_ns;
        if let Some(reason) = self.reason(work, running, ready_ns) {
            edges.push(reason);
        } else if running.is_none()
            && late_ns > limits::UNEXPLAINED_NS
            && matches!(edges[binding].role, Role::StreamOrder | Role::Launch)
        {
            edges[binding].kind =
                if self.is_in_graph(work) { Kind::GraphGap } else { Kind::Unexplained };
            edges[binding].role = Role::NoReason;
            edges[binding].evidence = Evidence::None;
        }
    }

    /// The reason for the start of work to which nothing leads: no call, and nothing
    /// before it on its stream.
    fn any_reason(&self, work: Rank) -> Option<Edge> {
        let start_ns = self.timeline().start_ns(work);
        let device = self.streams.whole_device(self.streams.device_of(work));
        let after_ns = start_ns - limits::WAIT_RELEASE_NS - 1;
        let released = Mark::FROM_LIKELY
            .into_iter()
            .find_map(|mark| self.last_ended_in(device, work, after_ns, mark));
        if let Some((_, producer)) = released {
            return Some(self.released_by(producer, work));
        }
        if self.streams.kind_of(work) != Kind::Copy {
            if let Some((_, holder)) = device.kernel_running_at(start_ns) {
                let start = self.nodes.start(work);
                return Some(self.inside_edge(holder, start, Role::DeviceOccupied));
            }
        }
        let (_, before) = self.last_ended_in(device, work, i64::MIN, Mark::Unmarked)?;
        let nodes = (self.nodes.end(before), self.nodes.start(work));
        let words = (Kind::Unexplained, Role::NoReason);
        Some(Edge::new(nodes, words, Some(work), Evidence::None))
    }

    fn reason(&self, work: Rank, running: Option<Rank>, ready_ns: i64) -> Option<Edge> {
        let late_ns = self.timeline().start_ns(work) - ready_ns;
        if let Some(running) = running {
            let start = self.nodes.start(work);
            return (late_ns > limits::OVERLAP_SOURCE_NS)
                .then(|| self.inside_edge(running, start, Role::OverlapInside));
        }
        let is_late = late_ns > limits::LATE_START_NS;
        let occupation = || is_late.then(|| self.occupation(work)).flatten();
        self.release(work, ready_ns).or_else(occupation)
    }

    /// The work of another stream whose end, just before, lets this one start: the
    /// likeliest that ended as shortly before as is usual, else the likeliest at all.
    fn release(&self, work: Rank, ready_ns: i64) -> Option<Edge> {
        let start_ns = self.timeline().start_ns(work);
        let (reach_ns, least) = self.suspicion(work, start_ns - ready_ns)?;
        let likeliest = |reach_ns: i64| {
            let after_ns = ready_ns.max(start_ns - reach_ns - 1);
            let mut marks = Mark::FROM_LIKELY.into_iter().take_while(|&mark| mark >= least);
            marks.find_map(|mark| self.last_ended_elsewhere(work, after_ns, mark))
        };
        let usual_ns = limits::WAIT_RELEASE_NS;
        let farther = || (reach_ns > usual_ns).then(|| likeliest(reach_ns)).flatten();
        let producer = likeliest(usual_ns).or_else(farther)?;
        Some(self.released_by(producer, work))
    }

    fn released_by(&self, producer: Rank, work: Rank) -> Edge {
        let nodes = (self.nodes.end(producer), self.nodes.start(work));
        let words = (Kind::EventWait, Role::EventWait);
        Edge::new(nodes, words, Some(work), Evidence::Inferred)
    }

    /// How long before its start something may have ended that the work waited for, and
    /// how little must speak for it. The later the start, the less.
    fn suspicion(&self, work: Rank, late_ns: i64) -> Option<(i64, Mark)> {
        let after_call_ns = limits::WAIT_RELEASE_AFTER_WAIT_CALL_NS;
        let is_late = late_ns > limits::LATE_START_NS;
        let is_rather_late = late_ns > limits::LATE_START_AFTER_WAIT_CALL_NS;
        match self.asked_to_wait[work.row()] {
            Asked::JustNow | Asked::Before if is_late => Some((after_call_ns, Mark::Unmarked)),
            Asked::JustNow if is_rather_late => Some((after_call_ns, Mark::Possible)),
            // Which calls record is not known: there, any wait call may be the one.
            Asked::Before if is_rather_late && !self.marks.has_records => {
                Some((after_call_ns, Mark::Possible))
            }
            Asked::JustNow => Some((after_call_ns, Mark::Likely)),
            Asked::No if is_late && self.may_wait_without_call(work) => {
                Some((limits::WAIT_RELEASE_NS, Mark::Unmarked))
            }
            Asked::Before | Asked::No => None,
        }
    }

    /// The work of another stream of the device that ended last before this one began,
    /// of those submitted before it and marked at least so.
    fn last_ended_elsewhere(&self, work: Rank, after_ns: i64, least: Mark) -> Option<Rank> {
        let streams = self.other_streams(work).map(|stream| &self.streams.all[stream]);
        latest_to_end(
            streams.filter_map(|stream| self.last_ended_in(stream, work, after_ns, least)),
        )
    }

    /// The same in one stream, or in a device taken for one.
    fn last_ended_in(
        &self,
        stream: &Stream,
        work: Rank,
        after_ns: i64,
        least: Mark,
    ) -> Option<(i64, Rank)> {
        let timeline = self.timeline();
        let submitted_ns = timeline.submitted_ns(work);
        let own = self.streams.stream_of(work);
        let may_be = |&(_, other): &(i64, Rank)| {
            self.marks.of_work(other) >= least
                && timeline.submitted_ns(other) < submitted_ns
                && self.streams.stream_of(other) != own
        };
        first_of_last(stream.ending_in(after_ns, timeline.start_ns(work)).filter(may_be))
    }

    /// Whether no wait call is to be expected: none is in the trace, or none could be
    /// seen.
    fn may_wait_without_call(&self, work: Rank) -> bool {
        !self.has_wait_calls || self.timeline().launcher(work).is_none() || self.is_in_graph(work)
    }

    fn is_in_graph(&self, work: Rank) -> bool {
        let timeline = self.timeline();
        let launches_graph = |call| role_of(call, timeline, self.roles) == ApiRole::GraphLaunch;
        timeline.launcher(work).is_some_and(launches_graph)
    }

    /// The kernel of another stream that holds the device when this one should start.
    fn occupation(&self, work: Rank) -> Option<Edge> {
        if self.streams.kind_of(work) == Kind::Copy {
            return None;
        }
        let start_ns = self.timeline().start_ns(work);
        let holders = self
            .other_streams(work)
            .filter_map(|stream| self.streams.all[stream].kernel_running_at(start_ns));
        let holder = latest_to_end(holders)?;
        Some(self.inside_edge(holder, self.nodes.start(work), Role::DeviceOccupied))
    }

    fn other_streams(&self, work: Rank) -> impl Iterator<Item = usize> + '_ {
        let own = self.streams.stream_of(work);
        let all = self.streams.of_device(self.streams.device_of(work));
        all.iter().copied().filter(move |&stream| stream != own)
    }

    fn inside_edge(&self, holder: Rank, target: NodeId, role: Role) -> Edge {
        inside_edge(self.streams, self.nodes, holder, target, role)
    }
}

/// The edge that leaves a running kernel and takes its time up to `target`.
pub(super) fn inside_edge(
    streams: &Streams<'_>,
    nodes: &Nodes,
    holder: Rank,
    target: NodeId,
    role: Role,
) -> Edge {
    let words = (streams.kind_of(holder), role);
    Edge::new((nodes.start(holder), target), words, Some(holder), Evidence::Inferred)
}

pub(super) fn role_of(event: Rank, timeline: &Timeline, roles: &[ApiRole]) -> ApiRole {
    timeline.name(event).map_or(ApiRole::Other, |name| roles[name.row()])
}

/// What runs on a stream when the next piece of work starts.
#[derive(Default)]
struct Neighbours {
    /// What still runs, by its end.
    unfinished: BTreeSet<(i64, Rank)>,
    /// What began, in that order; what is over is taken off the end.
    began: Vec<Rank>,
    /// The running one that began last.
    running: Option<Rank>,
    /// The finished one that finished last, with its end.
    last_finished: Option<(i64, Rank)>,
}

impl Neighbours {
    fn go_to(&mut self, work: Rank, timeline: &Timeline) {
        let now = timeline.start_ns(work);
        while let Some(&first) = self.unfinished.first().filter(|first| first.0 <= now) {
            self.unfinished.pop_first();
            self.last_finished = self.last_finished.max(Some(first));
        }
        while self.began.last().is_some_and(|&last| timeline.end_ns(last) <= now) {
            self.began.pop();
        }
        self.running = self.began.last().copied();
    }

    fn add(&mut self, work: Rank, timeline: &Timeline) {
        self.unfinished.insert((timeline.end_ns(work), work));
        self.began.push(work);
    }

    /// What still runs and ends before a time, the last of them.
    fn ending_before(&self, end_ns: i64) -> impl Iterator<Item = Rank> + '_ {
        let ending = self.unfinished.range(..(end_ns, Rank::from_row(0)));
        ending.rev().take(limits::MOST_OVERLAPS).map(|&(_, other)| other)
    }
}
