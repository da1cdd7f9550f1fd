//! Possible waits of a thread for another thread. If a process records no operators and no Python
//! functions, the time of a thread between two runtime API calls is either work or a wait for
//! another thread, which the trace does not distinguish. If the other thread waits for the device
//! meanwhile, this may be a wait for the device.
//!
//! Such a wait ends with an event of another thread. It can be a wait for the device only if a call
//! of that thread waited for a device. Time that threads spend on launches, between calls, or
//! waiting for each other is host time. A gap is also host time if no call that may have waited
//! ends in it.

use std::collections::{BTreeMap, BTreeSet};

use crate::graph::{Edge, Graph, Kind, Role, limits};
use crate::ids::{Order, StringId, row_in_column};
use crate::intervals::Spans;
use crate::path::walk::Path;
use crate::tables::{EventKind, Tables};
use crate::vocabulary::ApiRole;

/// Returns the indices of edges whose time may be a wait for another thread, in order.
pub(super) fn host_waits(graph: &Graph, tables: &Tables) -> Vec<u32> {
    let ends_ns = ends_of_waits(graph, tables);
    let may_wait = |edge: &Edge| {
        let lane = graph.timeline.lane(graph.nodes.event(edge.target));
        let until_ns = graph.nodes.time_ns(edge.target);
        edge.kind == Kind::HostGap
            && edge.role == Role::ThreadOrder
            && ends_ns.get(&tables.lanes.places()[lane].process).is_some_and(|ends_ns| {
                let first = ends_ns.partition_point(|&ns| ns <= graph.nodes.time_ns(edge.source));
                ends_ns.get(first).is_some_and(|&end_ns| end_ns < until_ns)
            })
    };
    let edges = graph.edges.as_slice().iter().enumerate();
    edges.filter(|(_, edge)| may_wait(edge)).map(|(number, _)| row_in_column(number)).collect()
}

/// For each process that records only calls, returns the sorted end times of calls that may have
/// waited for a device.
fn ends_of_waits(graph: &Graph, tables: &Tables) -> BTreeMap<StringId, Vec<i64>> {
    let timeline = &graph.timeline;
    let roles = tables.roles();
    let may_wait = |call: Order| {
        let role = timeline.name(call).map_or(ApiRole::Other, |name| roles[name.row()]);
        let returns = matches!(role, ApiRole::Launch | ApiRole::EventRecord | ApiRole::StreamWait);
        !returns || timeline.duration_ns(call) > limits::LONG_LAUNCH_NS
    };
    let mut named = BTreeSet::new();
    let mut ends_ns: BTreeMap<StringId, Vec<i64>> = BTreeMap::new();
    for event in timeline.orders() {
        let process = tables.lanes.places()[timeline.lane(event)].process;
        let kind = timeline.kind(event);
        if matches!(kind, EventKind::Operator | EventKind::Python) {
            named.insert(process);
        } else if kind.is_call() && may_wait(event) {
            ends_ns.entry(process).or_default().push(timeline.end_ns(event));
        }
    }
    ends_ns.retain(|process, _| !named.contains(process));
    for ends_ns in ends_ns.values_mut() {
        ends_ns.sort_unstable();
    }
    ends_ns
}

/// Returns the time in the windows during which any thread is in one of these edges.
pub(super) fn time_in_windows_ns(edges: &[u32], paths: &[Path], graph: &Graph) -> i64 {
    let span = |&number: &u32| {
        let edge = &graph.edges.as_slice()[number as usize];
        (graph.nodes.time_ns(edge.source), graph.nodes.time_ns(edge.target))
    };
    let waits = Spans::union_of(edges.iter().map(span));
    paths.iter().map(|path| waits.length_within_ns(path.start_ns, path.end_ns)).sum()
}
