//! Builds a workload from an execution trace linked to a trace.

use super::model::{FIRST_GAP, LAST_GAP, LinkedDevice, NodeKind, Sources, Workload, WorkloadNode};
use super::{chains, dependencies, devices, waits};
use crate::error::Result;
use crate::progress::{Progress, report};

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
