//! How long the host needs for a step: the least that a step takes, however fast the device.
//!
//! If a device limits a program, the host runs ahead of it. The windows of such steps do not contain
//! what the host did for them, so re-timing them alone would let the device overtake the host.

use crate::graph::Graph;
use crate::link::steps;
use crate::path::windows::{Scope, Unit};
use crate::tables::Tables;

/// Returns the least time that the host took for a step, without its waits for a device. None
/// if the windows contain time of the host itself, which re-timing considers, or are not steps.
pub(super) fn host_pace_ns(graph: &Graph, tables: &Tables, scope: &Scope) -> Option<i64> {
    if scope.unit != Unit::Step {
        return None;
    }
    let timeline = &graph.timeline;
    let spans: Vec<(i64, i64)> = steps(tables)
        .iter()
        .filter_map(|step| timeline.order(step.event))
        .map(|order| (timeline.start_ns(order), timeline.end_ns(order)))
        .collect();
    let is_in_window = |&(start_ns, _): &(i64, i64)| {
        scope.windows.iter().any(|it| (it.start_ns..it.end_ns).contains(&start_ns))
    };
    if spans.iter().any(is_in_window) {
        return None;
    }
    let waits = waits_ns(graph);
    spans
        .into_iter()
        .map(|(start_ns, end_ns)| {
            let first = waits.partition_point(|&(_, wait_end_ns)| wait_end_ns <= start_ns);
            let inside = waits[first..].iter().take_while(|wait| wait.0 < end_ns);
            let waited_ns: i64 = inside.map(|wait| wait.1.min(end_ns) - wait.0.max(start_ns)).sum();
            end_ns - start_ns - waited_ns
        })
        .min()
}

/// Returns the times in which any thread waited for a device, or for room in its queue, sorted and
/// without overlaps.
fn waits_ns(graph: &Graph) -> Vec<(i64, i64)> {
    let (nodes, timeline) = (&graph.nodes, &graph.timeline);
    let edges = graph.edges.as_slice().iter().filter(|edge| edge.role.waits().is_some());
    let calls = edges.map(|edge| nodes.event(edge.target));
    let calls = calls.filter(|&call| !timeline.kind(call).is_device_work());
    let mut waits: Vec<_> =
        calls.map(|call| (timeline.start_ns(call), timeline.end_ns(call))).collect();
    waits.sort_unstable();
    waits.dedup_by(|next, last| {
        let overlaps = next.0 <= last.1;
        if overlaps {
            last.1 = last.1.max(next.1);
        }
        overlaps
    });
    waits
}
