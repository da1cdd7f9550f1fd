//! What the rules ask of a trace, found out once.
//!
//! A rule is a function of these facts, so that no rule calls another and each can be
//! read alone. What only one rule asks for stands with that rule.

mod asked;
mod graphs;
mod launching;
mod lost_launches;
mod marks;
mod paired;
mod purposes;
mod recent;
mod recorded_syncs;
mod templates;

use std::cell::OnceCell;

pub(super) use asked::Asked;
use graphs::Graphs;
use lost_launches::LostLaunches;
pub(super) use marks::{Mark, Marks};
pub(super) use recent::Recent;
pub(super) use recorded_syncs::RecordedSyncs;

use super::model::{Edge, Evidence, Kind, Nodes, Role, Streams, ThreadNodes, Timeline};
use crate::ids::{NodeId, Order, RowMap};
use crate::link::{self, AutogradPair, Launches, SyncRecord};
use crate::tables::Tables;
use crate::vocabulary::ApiRole;
use purposes::Purposes;

/// The facts of one trace.
pub(super) struct Facts<'a> {
    pub(super) tables: &'a Tables,
    pub(super) timeline: &'a Timeline,
    pub(super) nodes: &'a Nodes,
    pub(super) streams: Streams<'a>,
    /// For each name, whether it is that of a data loader.
    pub(super) is_loader: &'a [bool],
    /// For each lane, whether it is the main thread of its process.
    is_main: Vec<bool>,
    /// The forward and backward threads.
    pub(super) autograd: Vec<AutogradPair>,
    /// The records of synchronisation, in order of time.
    pub(super) records: Vec<SyncRecord>,
    /// What the records say about calls that waited.
    pub(super) recorded: RecordedSyncs,
    /// Of all work, whether its thread asked its stream to wait, without a record, since
    /// it launched there last.
    pub(super) asked: Vec<Asked>,
    /// Of all work, whether an event was recorded behind it.
    pub(super) marks: Marks,
    /// For work whose thread let a stream wait before it, what that is likely to be for.
    pub(super) paired: RowMap<Order, Vec<Order>>,
    /// What is known of graphs over several streams.
    pub(super) graphs: Graphs,
    /// The launches of graphs that return when their work has ended.
    pub(super) holders: Vec<Order>,
    /// The launches whose work is missing.
    pub(super) lost_launches: LostLaunches,
    /// Whether the trace has calls that let a stream wait at all.
    pub(super) has_wait_calls: bool,
    /// For each device, the threads that launch work of it.
    pub(super) launching_threads: Vec<Vec<usize>>,
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
        let purposes = Purposes::of(tables);
        let records = link::sync_records(tables, launches);
        let is_main = link::main_threads(tables);
        let has_wait_calls =
            timeline.orders().any(|it| purposes.purpose(it, timeline) == ApiRole::StreamWait);
        Self {
            tables,
            timeline,
            nodes,
            is_loader,
            autograd: link::autograd_pairs(tables, &is_main),
            is_main,
            asked: asked::of_works(&streams, &purposes, &records, &tables.lanes, has_wait_calls),
            marks: Marks::of(&streams, &purposes),
            paired: paired::of_works(&streams, &purposes, has_wait_calls),
            graphs: graphs::of_trace(&streams, &purposes, tables),
            holders: launches.holders().iter().filter_map(|&it| timeline.order(it)).collect(),
            lost_launches: LostLaunches::of(&streams, &purposes, tables),
            recorded: recorded_syncs::of_calls(&records, &streams, &purposes, tables),
            launching_threads: launching::threads_of_devices(&streams),
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

    /// All work of devices, in content order.
    pub(super) fn works(&self) -> impl Iterator<Item = Order> + '_ {
        self.timeline.orders().filter(|&event| self.timeline.kind(event).is_device_work())
    }

    /// Every call into the runtime or driver, in content order.
    pub(super) fn calls(&self) -> impl Iterator<Item = Order> + '_ {
        self.timeline.orders().filter(|&event| self.timeline.kind(event).is_call())
    }

    pub(super) fn is_in_graph(&self, work: Order) -> bool {
        let launches_graph = |call| self.purpose(call) == ApiRole::GraphLaunch;
        self.timeline.launcher(work).is_some_and(launches_graph)
    }

    /// The other streams of the device that a GPU activity runs on.
    pub(super) fn other_streams(&self, work: Order) -> impl Iterator<Item = usize> + '_ {
        let own = self.streams.stream_of(work);
        let all = self.streams.of_device(self.streams.device_of(work));
        all.iter().copied().filter(move |&stream| stream != own)
    }

    /// The devices beside its own on which work may have ended that a GPU activity waited for:
    /// where its thread let a stream wait, all others of the process.
    pub(super) fn other_devices_to_wait_for(&self, work: Order) -> &[usize] {
        match self.asked[work.row()] {
            Asked::No | Asked::ByOther => &[],
            Asked::Before | Asked::JustNow => {
                self.streams.siblings_of(self.streams.device_of(work))
            }
        }
    }

    /// What the thread let a GPU activity wait for, where a process has several devices, all
    /// busy with much the same: there the pairing tells more than time does.
    pub(super) fn paired_on_devices(&self, work: Order) -> Option<&Vec<Order>> {
        (self.streams.n_siblings() > 0).then(|| self.paired.get(&work)).flatten()
    }

    /// The last node of a thread at or before a time.
    pub(super) fn last_of_thread(&self, thread: usize, at_ns: i64) -> Option<NodeId> {
        let nodes = self.thread_nodes().of_lane(thread);
        let behind = nodes.partition_point(|&node| self.nodes.time_ns(node) <= at_ns);
        behind.checked_sub(1).map(|last| nodes[last])
    }

    /// A thread, and the forward threads that it is the backward thread of.
    pub(super) fn forward_of(&self, thread: usize) -> impl Iterator<Item = usize> + '_ {
        let pairs = self.autograd.iter().filter(move |pair| pair.backward.row() == thread);
        std::iter::once(thread).chain(pairs.map(|pair| pair.forward.row()))
    }

    /// The main thread of the process of a thread.
    pub(super) fn main_thread_of(&self, thread: usize) -> Option<usize> {
        let places = self.tables.lanes.places();
        let is_of_process = |&lane: &usize| places[lane].process == places[thread].process;
        (0..places.len()).filter(|&lane| self.is_main[lane]).find(is_of_process)
    }

    /// The nodes of each thread; made where they are asked for.
    pub(super) fn thread_nodes(&self) -> &ThreadNodes {
        self.thread_nodes.get_or_init(|| ThreadNodes::of(self.timeline, self.nodes))
    }

    /// The same, for what comes behind the rules.
    pub(super) fn into_thread_nodes(self) -> ThreadNodes {
        let known = self.thread_nodes.into_inner();
        known.unwrap_or_else(|| ThreadNodes::of(self.timeline, self.nodes))
    }

    /// The thread whose time an edge between two of its points takes.
    pub(super) fn thread_of(&self, edge: &Edge) -> usize {
        self.timeline.lane(self.nodes.event(edge.source))
    }

    /// The edge that leaves a running kernel and takes its time up to `target`.
    pub(super) fn inside_edge(&self, holder: Order, target: NodeId, role: Role) -> Edge {
        let named = (self.streams.kind_of(holder), role);
        let source = self.nodes.start(holder);
        Edge::new((source, target), named, Some(holder), Evidence::Inferred)
    }

    /// The edge of work that waited, on another stream, for the end of `producer`.
    pub(super) fn wait_edge(&self, producer: Order, work: Order, evidence: Evidence) -> Edge {
        let nodes = (self.nodes.end(producer), self.nodes.start(work));
        Edge::new(nodes, (Kind::EventWait, Role::EventWait), Some(work), evidence)
    }
}
