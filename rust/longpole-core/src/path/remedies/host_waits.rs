//! Where a process records no operators and no Python functions, the time of a thread between two
//! runtime API calls is work, or a wait for another thread: nothing recorded tells which. If that
//! thread makes a call meanwhile, the wait may be one for the device.
//!
//! A thread that is alone with its calls can only wait for what is no GPU work: its time is the
//! host's, whatever it is. So is a gap in which no other thread ends a call.

use std::collections::{BTreeMap, BTreeSet};

use crate::graph::{Edge, Graph, Kind, Role};
use crate::ids::{StringId, row_in_column};
use crate::intervals::Spans;
use crate::path::walk::Path;
use crate::tables::{EventKind, Tables};

/// The numbers of the edges whose time may be a wait for another thread, in order.
pub(super) fn host_waits(graph: &Graph, tables: &Tables) -> Vec<u32> {
    let ends_ns = ends_of_calls(graph, tables);
    let may_wait = |edge: &Edge| {
        let lane = graph.timeline.lane(graph.nodes.event(edge.target));
        let until_ns = graph.nodes.time_ns(edge.target);
        edge.kind == Kind::HostGap
            && edge.role == Role::ThreadOrder
            && ends_ns.get(&tables.lanes.places()[lane].process).is_some_and(|ends| {
                let first = ends.partition_point(|end| end.0 <= graph.nodes.time_ns(edge.source));
                ends[first..].first().is_some_and(|end| end.0 < until_ns && end.1 != lane)
            })
    };
    let edges = graph.edges.as_slice().iter().enumerate();
    edges.filter(|(_, edge)| may_wait(edge)).map(|(number, _)| row_in_column(number)).collect()
}

/// The times at which calls end and their lanes, in order, of each process with several threads that
/// records nothing else.
fn ends_of_calls(graph: &Graph, tables: &Tables) -> BTreeMap<StringId, Vec<(i64, usize)>> {
    let timeline = &graph.timeline;
    let process = |lane: usize| tables.lanes.places()[lane].process;
    let mut named = BTreeSet::new();
    let mut ends_ns: BTreeMap<StringId, Vec<(i64, usize)>> = BTreeMap::new();
    for event in timeline.orders() {
        let (kind, lane) = (timeline.kind(event), timeline.lane(event));
        if matches!(kind, EventKind::Operator | EventKind::Python) {
            named.insert(process(lane));
        } else if kind.is_call() {
            ends_ns.entry(process(lane)).or_default().push((timeline.end_ns(event), lane));
        }
    }
    ends_ns.retain(|process, ends| {
        !named.contains(process) && ends.iter().any(|end| end.1 != ends[0].1)
    });
    for ends in ends_ns.values_mut() {
        ends.sort_unstable();
    }
    ends_ns
}

/// The time of the windows in which some thread is in one of these edges.
pub(super) fn time_in_windows_ns(edges: &[u32], paths: &[Path], graph: &Graph) -> i64 {
    let span = |&number: &u32| {
        let edge = &graph.edges.as_slice()[number as usize];
        (graph.nodes.time_ns(edge.source), graph.nodes.time_ns(edge.target))
    };
    let waits = Spans::union_of(edges.iter().map(span));
    paths.iter().map(|path| waits.length_within_ns(path.start_ns, path.end_ns)).sum()
}
