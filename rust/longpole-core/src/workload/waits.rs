//! Waits from the dependency graph.

use super::model::DependencyKind;
use crate::graph::{Edge, Evidence, Graph, Role};
use crate::ids::{EventId, LaneId, NodeId};
use crate::tables::Tables;

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
                waits.all.push(Wait { kind, evidence: edge.evidence, source, target });
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
