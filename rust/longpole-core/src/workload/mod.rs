//! An execution trace with the times of a Kineto trace: the workload that simulators run.
//!
//! Every node of the execution trace keeps its id; work on devices and gaps between
//! operators become nodes of their own. Durations are self times without the time in which
//! the thread only waited. A dependency names its kind, how it is known and the events that
//! justify it; what waits for a device, for another stream or for another thread is taken
//! from the edges of the critical path's [`Graph`], so that there is one answer.
//!
//! No dependency contradicts the measured times: what must be over is over before its
//! target starts, and what must only have begun (the node around another one, the operator
//! that launched a kernel) begins no later. Dependencies that would are dropped and counted,
//! so the graph has no cycles.

mod chains;
mod dependencies;
mod devices;
mod replay;
mod storages;
mod waits;

pub use dependencies::{Dependency, DependencyKind, Dropped, Moment};
pub use devices::{DeviceReason, LinkedDevice};
pub use replay::{replay, replay_workload, Replay, ReplayNode, Resource, ResourceReplay};

use crate::error::Result;
use crate::graph::Graph;
use crate::ids::{EventId, LaneId};
use crate::link::{ExecutionLink, Launches};
use crate::progress::{report, Progress};
use crate::stack::Nesting;
use crate::tables::{ExecutionTrace, Tables};

/// What a node of a workload is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeKind {
    /// A node of the execution trace.
    Operator,
    /// Time of a thread between operators.
    Gap,
    /// Work on a device.
    Device,
}

impl NodeKind {
    /// Its names in columns, in the order of the enum.
    pub const NAMES: &'static [&'static str] = &["operator", "gap", "device"];
}

/// One node of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkloadNode {
    /// Its id: that of the execution trace, or one that no such node has.
    pub id: i64,
    /// What it is.
    pub kind: NodeKind,
    /// The row in the execution trace: of the node itself, of the operator that launched
    /// it, or of the operator that the gap ends at.
    pub row: usize,
    /// The event; none for gaps and for nodes that were not found in the trace.
    pub event: Option<EventId>,
    /// The thread or stream, where the node has times.
    pub lane: Option<LaneId>,
    /// When it started and ended.
    pub span: Option<(i64, i64)>,
    /// How long it worked: for operators, the self time without waiting; for labels that
    /// only hold others, nothing.
    pub work_ns: i64,
    /// How long nothing inside it ran on its thread, waiting included.
    pub self_ns: i64,
    /// How long its thread waited while nothing inside it ran.
    pub blocked_ns: i64,
}

/// An execution trace with times and dependencies. See [`workload`].
#[derive(Debug, Clone, Default)]
pub struct Workload {
    /// The nodes, by id.
    pub nodes: Vec<WorkloadNode>,
    /// What depends on what, as rows of `nodes`, by target.
    pub dependencies: Vec<Dependency>,
    /// Device work that stands under no node, with the reason.
    pub unlinked: Vec<(EventId, DeviceReason)>,
    /// Dependencies that were left out.
    pub dropped: Dropped,
}

impl Workload {
    /// From the first start to the last end of the nodes that have times.
    pub fn measured_span(&self) -> Option<(i64, i64)> {
        let spans = || self.nodes.iter().filter_map(|node| node.span);
        Some((spans().map(|span| span.0).min()?, spans().map(|span| span.1).max()?))
    }

    /// The row of a node.
    pub fn row(&self, id: i64) -> Option<usize> {
        self.nodes.binary_search_by_key(&id, |node| node.id).ok()
    }
}

/// What a workload is made from.
#[derive(Clone, Copy)]
pub struct Sources<'a> {
    /// The execution trace.
    pub trace: &'a ExecutionTrace,
    /// The Kineto trace.
    pub tables: &'a Tables,
    /// Which event each node is.
    pub link: &'a ExecutionLink,
    /// Which call launched what.
    pub launches: &'a Launches,
    /// Which event encloses which.
    pub nesting: &'a Nesting,
    /// What waited for what.
    pub graph: &'a Graph,
}

/// Puts nodes and dependencies together.
///
/// # Errors
///
/// Only when `progress` asks to stop.
pub fn workload(sources: Sources<'_>, progress: Progress<'_>) -> Result<Workload> {
    let owners = devices::owners(sources);
    report(progress, owners.len() as u64)?;
    let (devices, unlinked) = devices::devices(sources, &owners);
    let waits = waits::Waits::of(sources.graph, sources.tables);
    report(progress, devices.len() as u64)?;
    let chains = chains::chains(sources, &waits);
    let nodes = nodes(sources, &chains, &devices);
    report(progress, nodes.len() as u64)?;
    let (dependencies, dropped) =
        dependencies::dependencies(sources, &nodes, &chains, &devices, &waits);
    Ok(Workload { nodes, dependencies, unlinked, dropped })
}

/// Ids of gaps: above all ids of nodes and device work, and below 2^53.
const FIRST_GAP: i64 = 1 << 52;
/// The same for what follows the last operator of a thread.
const LAST_GAP: i64 = FIRST_GAP + (1 << 51);

fn nodes(
    sources: Sources<'_>,
    chains: &chains::Chains,
    devices: &[LinkedDevice],
) -> Vec<WorkloadNode> {
    let events = &sources.tables.events;
    let mut nodes = Vec::with_capacity(sources.trace.nodes.len() * 2 + devices.len());
    for (row, node) in sources.trace.nodes.iter().enumerate() {
        let event = sources.link.event(row);
        nodes.push(WorkloadNode {
            id: node.id,
            kind: NodeKind::Operator,
            row,
            event,
            lane: event.map(|event| events.lane(event)),
            span: event.and_then(|event| events.span(event)),
            work_ns: chains.work_ns[row],
            self_ns: chains.self_ns[row],
            blocked_ns: chains.blocked_ns[row],
        });
    }
    nodes.extend(chains.gaps.iter().map(|gap| WorkloadNode {
        id: sources.trace.nodes[gap.row].id + if gap.is_last { LAST_GAP } else { FIRST_GAP },
        kind: NodeKind::Gap,
        row: gap.row,
        event: None,
        lane: Some(gap.lane),
        span: Some((gap.start_ns, gap.end_ns)),
        work_ns: gap.work_ns,
        self_ns: gap.work_ns + gap.blocked_ns,
        blocked_ns: gap.blocked_ns,
    }));
    nodes.extend(devices.iter().map(|device| WorkloadNode {
        id: device.id,
        kind: NodeKind::Device,
        row: device.row,
        event: Some(device.event),
        lane: Some(events.lane(device.event)),
        span: events.span(device.event),
        work_ns: events.duration_ns(device.event).unwrap_or(0),
        self_ns: events.duration_ns(device.event).unwrap_or(0),
        blocked_ns: 0,
    }));
    nodes.sort_by_key(|node| node.id);
    nodes
}
