//! Builds the workload for simulators: an execution trace with the times of a Kineto trace.
//!
//! Every node of the execution trace keeps its id; GPU activities and gaps between operators become
//! separate nodes. Durations are self times without the time in which the thread only waited. A
//! dependency has a kind, evidence, and the events that justify it. Waits for a device, another
//! stream or another thread are taken from the edges of the critical path's
//! [`Graph`](crate::graph::Graph), so that both agree.
//!
//! No dependency contradicts the measured times: a source that must have ended ends before its
//! target starts, and a source that only must have begun (an enclosing node, the operator that
//! launched a kernel) begins no later. Dependencies that would contradict them are dropped and
//! counted, so the graph has no cycles.

mod chains;
pub mod check;
mod communication;
mod dependencies;
mod devices;
mod model;
mod replay;
mod storages;
mod waits;

pub use communication::{Communication, communications, tensor_bytes};
pub use model::{
    Dependency, DependencyKind, DeviceReason, Dropped, Linked, LinkedDevice, Moment, NodeKind,
    Sources, Workload, WorkloadNode,
};
pub use replay::{
    Deviation, Replay, ReplayNode, Resource, ResourceReplay, replay, replay_workload,
};

use crate::error::Result;
use crate::progress::{Progress, report};
use model::{FIRST_GAP, LAST_GAP};

// Builds a workload from an execution trace linked to a trace.

/// Builds the nodes and dependencies of a workload.
///
/// # Errors
///
/// Returns an error only if `progress` asks to stop.
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

fn nodes(
    sources: Sources<'_>,
    chains: &chains::Chains,
    devices: &[LinkedDevice],
) -> Vec<WorkloadNode> {
    let mut nodes = Vec::with_capacity(sources.trace.nodes.len() * 2 + devices.len());
    nodes.extend(operators(sources, chains));
    nodes.extend(gaps(sources, chains));
    nodes.extend(devices.iter().map(|device| activity(sources, device)));
    nodes.sort_by_key(|node| node.id);
    nodes
}

fn operators<'a>(
    sources: Sources<'a>,
    chains: &'a chains::Chains,
) -> impl Iterator<Item = WorkloadNode> + 'a {
    let events = &sources.tables.events;
    sources.trace.nodes.iter().enumerate().map(move |(row, node)| {
        let event = sources.link.event(row);
        WorkloadNode {
            id: node.id,
            kind: NodeKind::Operator,
            row,
            event,
            lane: event.map(|event| events.lane(event)),
            span: event.and_then(|event| events.span(event)),
            work_ns: chains.work_ns[row],
            self_ns: chains.self_ns[row],
            blocked_ns: chains.blocked_ns[row],
        }
    })
}

fn gaps<'a>(
    sources: Sources<'a>,
    chains: &'a chains::Chains,
) -> impl Iterator<Item = WorkloadNode> + 'a {
    chains.gaps.iter().map(move |gap| WorkloadNode {
        id: sources.trace.nodes[gap.row].id + if gap.is_last { LAST_GAP } else { FIRST_GAP },
        kind: NodeKind::Gap,
        row: gap.row,
        event: None,
        lane: Some(gap.lane),
        span: Some((gap.start_ns, gap.end_ns)),
        work_ns: gap.work_ns,
        self_ns: gap.work_ns + gap.blocked_ns,
        blocked_ns: gap.blocked_ns,
    })
}

fn activity(sources: Sources<'_>, device: &LinkedDevice) -> WorkloadNode {
    let events = &sources.tables.events;
    let duration_ns = events.duration_ns(device.event).unwrap_or(0);
    WorkloadNode {
        id: device.id,
        kind: NodeKind::Device,
        row: device.row,
        event: Some(device.event),
        lane: Some(events.lane(device.event)),
        span: events.span(device.event),
        work_ns: duration_ns,
        self_ns: duration_ns,
        blocked_ns: 0,
    }
}
