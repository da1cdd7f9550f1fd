//! Builds the workload for simulators: an execution trace with the times of a Kineto trace.
//!
//! Every node of the execution trace keeps its id; GPU activities, gaps between operators
//! and the work of an operator after a wait in it become separate nodes. Durations are self times
//! without the time in which the thread only waited. A dependency has a kind, evidence, and the events that justify it. Waits for a device, another
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
mod model;
mod replay;
mod waits;

pub use communication::{Communication, communications, tensor_bytes};
pub use model::{
    Dependency, DependencyKind, DeviceReason, Dropped, Linked, LinkedDevice, Moment, NodeKind,
    Sources, Workload, WorkloadNode,
};
pub use replay::{
    Deviation, Replay, ReplayNode, Resource, ResourceReplay, replay, replay_workload,
};

use std::collections::HashMap;

use crate::error::Result;
use crate::ids::{EventId, NO_ROW, row_in_column};
use crate::progress::{Progress, report};
use crate::tables::NODE_IDS_BELOW;
use model::{after_wait_id, gap_id};

// Builds a workload from an execution trace linked to a trace.

/// Builds the nodes and dependencies of a workload.
///
/// # Errors
///
/// Returns an error only if `progress` asks to stop.
pub fn workload(sources: Sources<'_>, progress: Progress<'_>) -> Result<Workload> {
    let owners = owners(sources);
    report(progress, owners.len() as u64)?;
    let (devices, unlinked) = devices(sources, &owners);
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
    nodes.extend(after_waits(sources, chains));
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
        id: gap_id(sources.trace.nodes[gap.row].id, gap.is_last, gap.ends_waiting),
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

fn after_waits<'a>(
    sources: Sources<'a>,
    chains: &'a chains::Chains,
) -> impl Iterator<Item = WorkloadNode> + 'a {
    chains.after_waits.iter().map(move |after| WorkloadNode {
        id: after_wait_id(sources.trace.nodes[after.row].id, after.place),
        kind: NodeKind::AfterWait,
        row: after.row,
        event: None,
        lane: Some(after.lane),
        span: Some((after.start_ns, after.end_ns)),
        work_ns: after.work_ns,
        self_ns: after.work_ns,
        blocked_ns: 0,
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

// Assigns GPU activities to the operators that launched them.

/// For each event, returns the row of the innermost node of the execution trace that is or encloses
/// it; [`NO_ROW`] for none.
pub(super) fn owners(sources: Sources<'_>) -> Vec<u32> {
    const UNKNOWN: u32 = NO_ROW - 1;
    let mut owner = vec![UNKNOWN; sources.tables.events.len()];
    for (row, _) in sources.trace.nodes.iter().enumerate() {
        if let Some(event) = sources.link.event(row) {
            owner[event.row()] = row_in_column(row);
        }
    }
    let mut open = Vec::new();
    for event in sources.tables.events.ids() {
        let mut next = Some(event);
        while let Some(event) = next.filter(|event| owner[event.row()] == UNKNOWN) {
            open.push(event);
            next = sources.nesting.parent(event);
        }
        let found = next.map_or(NO_ROW, |event| owner[event.row()]);
        for event in open.drain(..) {
            owner[event.row()] = found;
        }
    }
    owner
}

/// Returns the GPU activities with their nodes, sorted by id, and those without a node.
pub(super) fn devices(
    sources: Sources<'_>,
    owners: &[u32],
) -> (Vec<LinkedDevice>, Vec<(EventId, DeviceReason)>) {
    let events = &sources.tables.events;
    let by_external_id: HashMap<_, _> =
        sources.launches.operators_by_external_id().iter().copied().collect();
    let mut found = Vec::new();
    let mut unlinked = Vec::new();
    for event in events.ids().filter(|&event| events.kind(event).is_device_work()) {
        let call = sources.launches.launcher(event);
        let launcher = call.or_else(|| by_external_id.get(&event).copied());
        let row = launcher.map(|launcher| owners[launcher.row()]).filter(|&row| row != NO_ROW);
        match (events.span(event), launcher, row) {
            (None, ..) => unlinked.push((event, DeviceReason::NoDuration)),
            (_, None, _) => unlinked.push((event, DeviceReason::NoCall)),
            (_, _, None) => unlinked.push((event, DeviceReason::OutsideOperators)),
            (Some(_), Some(_), Some(row)) => {
                found.push(LinkedDevice { id: 0, event, call, row: row as usize });
            }
        }
    }
    give_ids(&mut found, sources);
    (found, unlinked)
}

/// First id of GPU activities with a correlation id. The id consists of the correlation id and the
/// index among activities with the same one, and stays below 2^51.
const FIRST_DEVICE: i64 = NODE_IDS_BELOW;

const PLACES_PER_NUMBER: i64 = 1 << 16;

/// First id of other GPU activities, in order of time.
const FIRST_WITHOUT_NUMBER: i64 = 1 << 51;

/// Assigns an id to each GPU activity that depends only on its correlation id, if it has one, and
/// not on other activities or file order.
fn give_ids(devices: &mut [LinkedDevice], sources: Sources<'_>) {
    let events = &sources.tables.events;
    devices.sort_by_cached_key(|device| {
        let lane = crate::tables::track(events.lane(device.event), sources.tables);
        let lane = lane.map(|(is_name, number, name)| (is_name, number, name.to_owned()));
        let name = events.name(device.event).map(|name| sources.tables.strings.get(name));
        (events.span(device.event), lane, name, events.correlation(device.event))
    });
    let mut places: HashMap<i64, i64> = HashMap::new();
    for (place, device) in devices.iter_mut().enumerate() {
        let number = events.correlation(device.event);
        let number = number.filter(|number| (1..1 << 32).contains(number));
        let within = number.map(|number| places.entry(number).or_insert(0));
        device.id = match (number, within) {
            (Some(number), Some(within)) if *within < PLACES_PER_NUMBER => {
                *within += 1;
                FIRST_DEVICE + number * PLACES_PER_NUMBER + *within - 1
            }
            _ => FIRST_WITHOUT_NUMBER + i64::try_from(place).unwrap_or(0),
        };
    }
    devices.sort_by_key(|device| device.id);
}
