//! Waits from the dependency graph.
//!
//! A call that synchronizes a device has one edge in the graph, from the activity that ended last.
//! A simulator may change durations, so here the call waits for the last activity of every stream
//! of the device that ended during the call.

use std::collections::BTreeMap;

use super::model::DependencyKind;
use crate::graph::{Edge, Evidence, Graph, Role};
use crate::ids::{EventId, LaneId, NodeId, Order};
use crate::tables::Tables;
use crate::vocabulary::ApiRole;

/// A wait, as points on lanes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wait {
    pub(super) kind: DependencyKind,
    pub(super) evidence: Evidence,
    /// The awaited end.
    pub(super) source: Point,
    /// The point at which the waiting lane continued.
    pub(super) target: Point,
}

/// A point in time on a lane, and the event that starts or ends there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Point {
    pub(super) event: EventId,
    pub(super) lane: LaneId,
    pub(super) time_ns: i64,
}

/// All waits of a trace, and the times in which threads only waited.
#[derive(Default)]
pub(super) struct Waits {
    /// In order of the points at which lanes continued.
    pub(super) all: Vec<Wait>,
    /// For each lane, the spans in which its thread waited, sorted and without overlap.
    pub(super) blocked: Vec<Vec<(i64, i64)>>,
}

impl Waits {
    pub(super) fn of(graph: &Graph, tables: &Tables) -> Self {
        let mut waits = Self { all: Vec::new(), blocked: vec![Vec::new(); tables.lanes.len()] };
        let edges = graph.edges.as_slice();
        let streams = Streams::of(graph, tables);
        for node in graph.nodes.ids() {
            let into = &edges[graph.edges.range(node)];
            let before = waits.all.len();
            for edge in into {
                let Some(kind) = kind(edge.role) else { continue };
                let mut source = point(graph, tables, edge.source);
                if edge.role == Role::Staging {
                    source.time_ns = tables.events.end_ns(source.event).unwrap_or(source.time_ns);
                }
                let target = point(graph, tables, edge.target);
                let wait = Wait { kind, evidence: edge.evidence, source, target };
                waits.all.push(wait);
                if kind == DependencyKind::Sync {
                    waits.all.extend(streams.others(wait, edge));
                }
            }
            if waits.all.len() > before {
                waits.block(graph, tables, into, node);
            }
        }
        for spans in &mut waits.blocked {
            spans.sort_unstable();
        }
        waits
    }

    /// Records that the thread of `node` waited from its last point until the end of what it waited
    /// for.
    fn block(&mut self, graph: &Graph, tables: &Tables, into: &[Edge], node: NodeId) {
        let Some(chain) = into.iter().find(|edge| edge.role == Role::ThreadOrder) else { return };
        let chain_ns = graph.nodes.time_ns(chain.source);
        let waits = into.iter().filter(|edge| kind(edge.role).is_some());
        let spans: Vec<_> = waits.map(|edge| waited(graph, edge, chain_ns)).collect();
        let from_ns = spans.iter().map(|span| span.0).min();
        let until_ns = spans.iter().map(|span| span.1).max();
        let (Some(from_ns), Some(until_ns)) = (from_ns, until_ns) else { return };
        let until_ns = until_ns.min(graph.nodes.time_ns(node));
        if from_ns < until_ns {
            let lane = point(graph, tables, node).lane;
            self.blocked[lane.row()].push((from_ns, until_ns));
        }
    }
}

/// The activities of the streams of a device by lane, with their ends and in order of these.
type Lanes = BTreeMap<usize, Vec<(i64, Order)>>;

/// The activities of each stream, by device.
struct Streams<'a> {
    graph: &'a Graph,
    tables: &'a Tables,
    /// For each name, whether it is that of a call that synchronizes a device.
    is_device_sync: Vec<bool>,
    of_device: BTreeMap<Option<i64>, Lanes>,
}

impl<'a> Streams<'a> {
    fn of(graph: &'a Graph, tables: &'a Tables) -> Self {
        let roles = tables.roles();
        let is_device_sync: Vec<_> =
            roles.iter().map(|&role| role == ApiRole::DeviceSynchronize).collect();
        let mut streams = Self { graph, tables, is_device_sync, of_device: BTreeMap::new() };
        let timeline = &graph.timeline;
        for work in timeline.orders().filter(|&event| timeline.kind(event).is_device_work()) {
            let lane = tables.events.lane(timeline.event(work));
            let of_device = streams.of_device.entry(tables.lanes.place(lane).device).or_default();
            of_device.entry(lane.row()).or_default().push((timeline.end_ns(work), work));
        }
        for works in streams.of_device.values_mut().flat_map(BTreeMap::values_mut) {
            works.sort_unstable();
        }
        streams
    }

    /// Returns the waits of a device synchronization for the streams without an edge.
    fn others(&self, wait: Wait, edge: &Edge) -> Vec<Wait> {
        let timeline = &self.graph.timeline;
        let call = self.graph.nodes.event(edge.target);
        let is_of_device =
            |call| timeline.name(call).is_some_and(|name| self.is_device_sync[name.row()]);
        let device = self.tables.lanes.place(wait.source.lane).device;
        let Some(streams) = self.of_device.get(&device).filter(|_| is_of_device(call)) else {
            return Vec::new();
        };
        let others = streams.iter().filter(|&(&lane, _)| lane != wait.source.lane.row());
        others.filter_map(|(_, works)| self.last_in(works, call, wait)).collect()
    }

    /// Returns the wait for the last activity of a stream that was submitted before the call and
    /// ended during it.
    fn last_in(&self, works: &[(i64, Order)], call: Order, wait: Wait) -> Option<Wait> {
        let timeline = &self.graph.timeline;
        let start_ns = timeline.start_ns(call);
        let ended = works.partition_point(|&(end_ns, _)| end_ns <= wait.target.time_ns);
        let during = works[..ended].iter().rev().take_while(|&&(end_ns, _)| end_ns > start_ns);
        let (time_ns, work) =
            *during.into_iter().find(|&&(_, work)| timeline.submitted_ns(work) < start_ns)?;
        let event = timeline.event(work);
        let source = Point { event, lane: self.tables.events.lane(event), time_ns };
        Some(Wait { evidence: Evidence::Inferred, source, ..wait })
    }
}

/// Returns the time in which the thread of an edge's target waited for its source. A call that
/// launched the activity it waits for works until that starts.
fn waited(graph: &Graph, edge: &Edge, from_ns: i64) -> (i64, i64) {
    let (source, target) = (graph.nodes.event(edge.source), graph.nodes.event(edge.target));
    let launched_it = graph.timeline.launcher(source) == Some(target);
    let from_ns = if launched_it { from_ns.max(graph.timeline.start_ns(source)) } else { from_ns };
    let until_ns = match edge.role {
        Role::Staging => graph.timeline.end_ns(source),
        _ => edge.finished_ns(graph.nodes.times_ns()),
    };
    (from_ns, until_ns)
}

fn kind(role: Role) -> Option<DependencyKind> {
    match role {
        Role::Sync | Role::SyncInside | Role::Staging => Some(DependencyKind::Sync),
        Role::QueueFull => Some(DependencyKind::QueueFull),
        Role::EventWait => Some(DependencyKind::EventWait),
        Role::Handover => Some(DependencyKind::Handover),
        _ => None,
    }
}

fn point(graph: &Graph, tables: &Tables, node: NodeId) -> Point {
    let event = graph.timeline.event(graph.nodes.event(node));
    Point { event, lane: tables.events.lane(event), time_ns: graph.nodes.time_ns(node) }
}
