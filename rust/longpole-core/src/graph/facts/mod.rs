//! The facts about a trace that the rules need, computed once.
//!
//! Each rule is a function of these facts: rules do not call each other, and each can be read
//! alone. Facts that only one rule needs are computed in the file of that rule.

mod graphs;
mod launches;
mod marks;
mod serial;
mod templates;
mod waits;

pub(super) use marks::{Mark, Marks, Recent};
pub(super) use waits::{Asked, RecordedSyncs};

use std::cell::OnceCell;

use super::model::{Edge, Evidence, Kind, Nodes, Role, Streams, ThreadNodes, Timeline};
use crate::ids::{NodeId, Order, RowMap};
use crate::link;
use crate::link::{AutogradPair, Launches, SyncRecord};
use crate::tables::Tables;
use crate::vocabulary::ApiRole;
use graphs::Graphs;
use launches::{MissingActivities, Purposes};
use serial::{Delays, Serial};

/// The facts of one trace.
pub(super) struct Facts<'a> {
    pub(super) tables: &'a Tables,
    pub(super) timeline: &'a Timeline,
    pub(super) nodes: &'a Nodes,
    pub(super) streams: Streams<'a>,
    /// For each name, whether it is the name of a data loader.
    pub(super) is_loader: &'a [bool],
    /// For each lane, whether it is the main thread of its process.
    is_main: Vec<bool>,
    /// The forward and backward threads.
    pub(super) autograd: Vec<AutogradPair>,
    /// The synchronization records, in order of time.
    pub(super) records: Vec<SyncRecord>,
    /// The waits of calls that a synchronization record describes.
    pub(super) recorded: RecordedSyncs,
    /// For each GPU activity, whether its thread issued a wait call without a record since its
    /// previous launch to the same stream.
    pub(super) asked: Vec<Asked>,
    /// For each GPU activity, how likely an event was recorded after it.
    pub(super) marks: Marks,
    /// For GPU activities whose thread issued a wait call before the launch, the activities that
    /// they likely wait for.
    pub(super) paired: RowMap<Order, Vec<Order>>,
    /// Dependencies of graphs that use several streams.
    pub(super) graphs: Graphs,
    /// Graph launches that return when their activities have ended.
    pub(super) holders: Vec<Order>,
    /// Launches whose activity is missing from the trace.
    pub(super) missing_activities: MissingActivities,
    /// Whether the trace contains calls that make a stream wait.
    pub(super) has_wait_calls: bool,
    /// For each device, the threads that launch to it.
    pub(super) launching_threads: Vec<Vec<usize>>,
    /// How late GPU activities usually start.
    pub(super) delays: Delays,
    /// The streams that wait for all others of their device without a wait call.
    serial: Serial,
    purposes: Purposes,
    thread_nodes: OnceCell<ThreadNodes>,
}

impl<'a> Facts<'a> {
    pub(super) fn of(
        tables: &'a Tables,
        launches: &Launches,
        timeline: &'a Timeline,
        nodes: &'a Nodes,
        is_loader: &'a [bool],
    ) -> Self {
        let streams = Streams::of(timeline, tables);
        let purposes = launches::Purposes::of(tables);
        let records = link::sync_records(tables, launches);
        let is_main = link::main_threads(tables);
        let delays = serial::Delays::of(&streams);
        let has_wait_calls =
            timeline.orders().any(|it| purposes.purpose(it, timeline) == ApiRole::StreamWait);
        Self {
            tables,
            timeline,
            nodes,
            is_loader,
            autograd: link::autograd_pairs(tables, &is_main),
            is_main,
            asked: waits::of_works(&streams, &purposes, &records, &tables.lanes, has_wait_calls),
            marks: Marks::of(&streams, &purposes),
            paired: marks::of_works(&streams, &purposes, has_wait_calls),
            graphs: graphs::of_trace(&streams, &purposes, tables),
            holders: launches.holders().iter().filter_map(|&it| timeline.order(it)).collect(),
            missing_activities: launches::MissingActivities::of(&streams, &purposes, tables),
            recorded: waits::of_calls(&records, &streams, &purposes, tables),
            launching_threads: launches::threads_of_devices(&streams),
            serial: Serial::of(&streams, &delays),
            delays,
            streams,
            records,
            has_wait_calls,
            purposes,
            thread_nodes: OnceCell::new(),
        }
    }

    pub(super) fn purpose(&self, event: Order) -> ApiRole {
        self.purposes.purpose(event, self.timeline)
    }

    pub(super) fn name(&self, event: Order) -> &str {
        self.timeline.name(event).map_or("", |name| self.tables.strings.get(name))
    }

    /// Returns all GPU activities, in content order.
    pub(super) fn works(&self) -> impl Iterator<Item = Order> + '_ {
        self.timeline.orders().filter(|&event| self.timeline.kind(event).is_device_work())
    }

    /// Returns all runtime and driver calls, in content order.
    pub(super) fn calls(&self) -> impl Iterator<Item = Order> + '_ {
        self.timeline.orders().filter(|&event| self.timeline.kind(event).is_call())
    }

    pub(super) fn is_in_graph(&self, work: Order) -> bool {
        let launches_graph = |call| self.purpose(call) == ApiRole::GraphLaunch;
        self.timeline.launcher(work).is_some_and(launches_graph)
    }

    /// Returns the other streams of the device on which a GPU activity runs.
    pub(super) fn other_streams(&self, work: Order) -> impl Iterator<Item = usize> + '_ {
        let own = self.streams.stream_of(work);
        let all = self.streams.of_device(self.streams.device_of(work));
        all.iter().copied().filter(move |&stream| stream != own)
    }

    /// Returns the other devices on which an activity awaited by `work` may have ended: all devices
    /// of the process if its thread issued a wait call, otherwise none.
    pub(super) fn other_devices_to_wait_for(&self, work: Order) -> &[usize] {
        match self.asked[work.row()] {
            waits::Asked::No | waits::Asked::ByOther => &[],
            waits::Asked::Before | waits::Asked::JustNow => {
                self.streams.siblings_of(self.streams.device_of(work))
            }
        }
    }

    /// Returns whether the streams of two activities of a device wait for each other without a wait
    /// call, as the legacy default stream and all others do.
    pub(super) fn are_serial(&self, one: Order, other: Order) -> bool {
        [one, other].iter().any(|&work| self.serial.waits[self.streams.stream_of(work)])
    }

    /// Like [`Self::are_serial`], but returns whether nothing speaks against it.
    pub(super) fn may_be_serial(&self, one: Order, other: Order) -> bool {
        [one, other].iter().any(|&work| !self.serial.runs_beside[self.streams.stream_of(work)])
    }

    /// Returns the activities that the thread's wait call likely refers to, if the process uses
    /// several devices. Similar load on all devices makes end times ambiguous, so the pairing of
    /// events and wait calls is better evidence there.
    pub(super) fn paired_on_devices(&self, work: Order) -> Option<&Vec<Order>> {
        (self.streams.n_siblings() > 0).then(|| self.paired.get(&work)).flatten()
    }

    /// Returns the last node of a thread at or before a time.
    pub(super) fn last_of_thread(&self, thread: usize, at_ns: i64) -> Option<NodeId> {
        let nodes = self.thread_nodes().of_lane(thread);
        let behind = nodes.partition_point(|&node| self.nodes.time_ns(node) <= at_ns);
        behind.checked_sub(1).map(|last| nodes[last])
    }

    /// Returns a thread, and the forward threads whose backward thread it is.
    pub(super) fn forward_of(&self, thread: usize) -> impl Iterator<Item = usize> + '_ {
        let pairs = self.autograd.iter().filter(move |pair| pair.backward.row() == thread);
        std::iter::once(thread).chain(pairs.map(|pair| pair.forward.row()))
    }

    /// Returns the main thread of the process of a thread.
    pub(super) fn main_thread_of(&self, thread: usize) -> Option<usize> {
        let places = self.tables.lanes.places();
        let is_of_process = |&lane: &usize| places[lane].process == places[thread].process;
        (0..places.len()).filter(|&lane| self.is_main[lane]).find(is_of_process)
    }

    /// Returns the nodes of each thread, computed on first use.
    pub(super) fn thread_nodes(&self) -> &ThreadNodes {
        self.thread_nodes.get_or_init(|| ThreadNodes::of(self.timeline, self.nodes))
    }

    /// Returns the nodes of each thread, for use after the rules.
    pub(super) fn into_thread_nodes(self) -> ThreadNodes {
        let known = self.thread_nodes.into_inner();
        known.unwrap_or_else(|| ThreadNodes::of(self.timeline, self.nodes))
    }

    /// Returns the thread that has the time of an edge between two of its nodes.
    pub(super) fn thread_of(&self, edge: &Edge) -> usize {
        self.timeline.lane(self.nodes.event(edge.source))
    }

    /// Returns the inside edge: it leaves a running kernel and has the time of that kernel up to
    /// `target`.
    pub(super) fn inside_edge(&self, holder: Order, target: NodeId, role: Role) -> Edge {
        let named = (self.streams.kind_of(holder), role);
        let source = self.nodes.start(holder);
        Edge::new((source, target), named, Some(holder), Evidence::Inferred)
    }

    /// Returns the edge of an activity that waited for the end of `producer` on another stream.
    pub(super) fn wait_edge(&self, producer: Order, work: Order, evidence: Evidence) -> Edge {
        let nodes = (self.nodes.end(producer), self.nodes.start(work));
        Edge::new(nodes, (Kind::EventWait, Role::EventWait), Some(work), evidence)
    }
}
