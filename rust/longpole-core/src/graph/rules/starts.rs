//! Edges into the starts of GPU activities: order and launches first, then the rules that explain a
//! later start.

use std::collections::BTreeSet;

use super::{graphs, missing_records, stream_waits};
use crate::error::Result;
use crate::graph::facts::Facts;
use crate::graph::model::{Edge, Evidence, Kind, Role, Timeline, latest_to_end, limits};
use crate::ids::Order;
use crate::progress::{Progress, report};

/// Adds the edges into the start and the end of every GPU activity.
pub(super) fn edges(
    facts: &Facts<'_>,
    edges: &mut Vec<Edge>,
    progress: Progress<'_>,
) -> Result<()> {
    let mut waits = stream_waits::recorded_edges(facts);
    waits.extend(graphs::order(facts));
    waits.sort_by_key(|&(work, _)| work);
    for stream in &facts.streams.all {
        let mut neighbours = Neighbours::default();
        for (row, &work) in stream.works.iter().enumerate() {
            if row % (1 << 14) == 0 {
                report(progress, row as u64)?;
            }
            neighbours.go_to(work, facts.timeline);
            // Added in order of time, so that there is little to sort.
            start_edges(work, &neighbours, &waits, facts, edges);
            end_edges(work, &neighbours, facts, edges);
            neighbours.add(work, facts.timeline);
        }
    }
    Ok(())
}

fn start_edges(
    work: Order,
    neighbours: &Neighbours,
    recorded_waits: &[(Order, Edge)],
    facts: &Facts<'_>,
    edges: &mut Vec<Edge>,
) {
    if let Some(fault) = missing_records::fault(work, facts) {
        edges.push(fault);
        return;
    }
    let first = edges.len();
    stream_order_edges(work, neighbours, facts, edges);
    launch_edges(work, facts, edges);
    let waits = recorded_waits.partition_point(|&(waiter, _)| waiter < work);
    let waits = recorded_waits[waits..].iter().take_while(|&&(waiter, _)| waiter == work);
    edges.extend(waits.map(|&(_, edge)| edge));
    edges.extend(graphs::waits(work, facts));
    explain(work, neighbours, facts, edges, first);
}

/// Adds the reason of a start that is later than its edges (those from `first` on) explain, or
/// marks the gap as unexplained.
fn explain(
    work: Order,
    neighbours: &Neighbours,
    facts: &Facts<'_>,
    edges: &mut Vec<Edge>,
    first: usize,
) {
    let nodes = facts.nodes;
    let start_ns = facts.timeline.start_ns(work);
    let binding = (first..edges.len())
        .filter(|&place| nodes.time_ns(edges[place].source) <= start_ns)
        .min_by_key(|&place| edges[place].binding_order(nodes, nodes.times_ns()));
    let Some(binding) = binding else {
        if edges.len() == first {
            edges.extend(missing_records::edge(work, facts));
        }
        return;
    };
    let ready_ns = edges[binding].finished_ns(nodes.times_ns());
    let (running, before) = (neighbours.running, neighbours.last_finished());
    edges.extend(stream_waits::latent_edges(work, ready_ns, facts));
    if let Some(lost) = graphs::after_missing(work, ready_ns, facts) {
        edges.push(lost);
    } else if let Some(reason) = reason(work, running, ready_ns, facts) {
        edges.push(reason);
    } else if running.is_none() {
        let (late_ns, binding) = (start_ns - ready_ns, &mut edges[binding]);
        if !missing_records::rename_start(work, before, late_ns, binding, facts) {
            rename(work, late_ns, binding, facts);
            if let Some(rival) = stream_waits::of_late_start(work, binding, facts) {
                *binding = binding.with_rival(Some(rival));
            }
        }
    }
}

fn reason(work: Order, running: Option<Order>, ready_ns: i64, facts: &Facts<'_>) -> Option<Edge> {
    let late_ns = facts.timeline.start_ns(work) - ready_ns;
    if let Some(running) = running {
        return overlapped_edge(work, running, late_ns, facts);
    }
    let occupied = || {
        if facts.is_in_graph(work) {
            let is_late = late_ns > limits::GRAPH_GAP_NS;
            return is_late.then(|| edge_of_node(work, ready_ns, facts)).flatten();
        }
        let is_late = late_ns > limits::LATE_START_NS && facts.timeline.launcher(work).is_some();
        is_late.then(|| occupied_edge(work, facts)).flatten()
    };
    stream_waits::released_edge(work, ready_ns, facts)
        .or_else(|| missing_records::launch(work, ready_ns, facts))
        .or_else(occupied)
}

// Edges from a launch call to its GPU activity.
//
// A call that begins after its activity shows that the clocks disagree. The edge is still added,
// so that it is listed among the violations, and the activity follows the previous node of the
// thread.

/// Adds the edges from the call of a GPU activity to its start.
fn launch_edges(work: Order, facts: &Facts<'_>, edges: &mut Vec<Edge>) {
    let (timeline, nodes) = (facts.timeline, facts.nodes);
    let Some(call) = timeline.launcher(work) else { return };
    let start = nodes.start(work);
    let mut push = |source, named, event| {
        edges.push(Edge::new((source, start), named, Some(event), Evidence::Correlation));
    };
    if timeline.end_ns(call) <= timeline.start_ns(work) {
        push(nodes.end(call), (Kind::Launch, Role::Launch), work);
    } else if timeline.start_ns(call) <= timeline.start_ns(work) {
        push(nodes.start(call), (Kind::Runtime, Role::LaunchInside), call);
    } else {
        push(nodes.start(call), (Kind::Launch, Role::Launch), work);
        if let Some(before) = facts.last_of_thread(timeline.lane(call), timeline.start_ns(work)) {
            push(before, (Kind::ClockSkew, Role::Clock), work);
        }
    }
}

// Edges into activities that start while their stream predecessor still runs. They were released
// from inside it, unless something else ended shortly before (programmatic dependent launch).

/// Returns the edge from inside the running predecessor.
fn overlapped_edge(work: Order, running: Order, late_ns: i64, facts: &Facts<'_>) -> Option<Edge> {
    let start = facts.nodes.start(work);
    (late_ns > limits::OVERLAP_SOURCE_NS)
        .then(|| facts.inside_edge(running, start, Role::OverlapInside))
}

// Edges into kernels that were ready but found the device occupied by a kernel of another stream.
// Copies use separate engines.
//
// Nodes of a graph are launched together, and a gap before one may hide a node missing from the
// trace. For a node, the kernel of the other stream must therefore have run for most of the gap.
// On an H100, a graph of matrix products on four streams had gaps of 23 to 58 us before one node
// in three; in all of them, kernels of the other streams filled the device.

/// Returns the edge from inside the kernel of another stream that occupies the device when `work`
/// was ready to start.
fn occupied_edge(work: Order, facts: &Facts<'_>) -> Option<Edge> {
    if facts.streams.kind_of(work) == Kind::Copy {
        return None;
    }
    let start_ns = facts.timeline.start_ns(work);
    let holders = facts
        .other_streams(work)
        .filter_map(|stream| facts.streams.all[stream].kernel_running_at(start_ns));
    let holder = latest_to_end(holders)?;
    Some(facts.inside_edge(holder, facts.nodes.start(work), Role::DeviceOccupied))
}

/// At most one part in this many of a gap before a graph node may pass before the other kernel
/// runs.
const UNHELD_PART: i64 = 4;

/// Returns the edge from inside the kernel of another stream that occupied the device for most of
/// the gap between `ready_ns` and the start of a graph node.
fn edge_of_node(work: Order, ready_ns: i64, facts: &Facts<'_>) -> Option<Edge> {
    if facts.streams.kind_of(work) == Kind::Copy {
        return None;
    }
    let start_ns = facts.timeline.start_ns(work);
    let holders = facts
        .other_streams(work)
        .filter_map(|stream| facts.streams.all[stream].kernel_running_at(start_ns));
    let (from_ns, holder) = holders.min()?;
    let held = from_ns - ready_ns <= (start_ns - ready_ns) / UNHELD_PART;
    held.then(|| facts.inside_edge(holder, facts.nodes.start(work), Role::DeviceOccupied))
}

// Edges between activities of one stream, which run in order.
//
// A GPU activity follows the one of its stream that finished last before it starts. If an earlier
// one still runs, the later one may not start before the earlier one did. The time in which both
// run belongs to the earlier one: the end of the later one follows the end of the earlier one.

/// Adds the edges into the end of a GPU activity.
fn end_edges(work: Order, neighbours: &Neighbours, facts: &Facts<'_>, edges: &mut Vec<Edge>) {
    let (start, end) = (facts.nodes.start(work), facts.nodes.end(work));
    let kind = facts.streams.kind_of(work);
    edges.push(Edge::new((start, end), (kind, Role::DeviceWork), Some(work), Evidence::Order));
    for other in neighbours.ending_before(facts.timeline.end_ns(work)) {
        let ends = (facts.nodes.end(other), end);
        edges.push(Edge::new(ends, (kind, Role::OverlapTail), Some(work), Evidence::Order));
    }
}

/// Adds the edges from its stream into the start of a GPU activity.
fn stream_order_edges(
    work: Order,
    neighbours: &Neighbours,
    facts: &Facts<'_>,
    edges: &mut Vec<Edge>,
) {
    let start = facts.nodes.start(work);
    let mut push = |source, named| {
        edges.push(Edge::new((source, start), named, Some(work), Evidence::Order));
    };
    if let Some((_, other)) = neighbours.last_finished {
        push(facts.nodes.end(other), (Kind::KernelDelay, Role::StreamOrder));
    }
    if let Some(other) = neighbours.running {
        push(facts.nodes.start(other), (Kind::StreamOverlap, Role::StreamOverlap));
    }
}

/// The activities that run on a stream when the next one starts.
#[derive(Default)]
pub(super) struct Neighbours {
    /// The running activities, sorted by end.
    unfinished: BTreeSet<(i64, Order)>,
    /// The started activities in order of start; finished ones are removed from the end.
    began: Vec<Order>,
    /// The running activity that began last.
    pub(super) running: Option<Order>,
    /// The finished activity that finished last, with its end.
    last_finished: Option<(i64, Order)>,
}

impl Neighbours {
    pub(super) fn go_to(&mut self, work: Order, timeline: &Timeline) {
        let now = timeline.start_ns(work);
        while let Some(&first) = self.unfinished.first().filter(|first| first.0 <= now) {
            self.unfinished.pop_first();
            self.last_finished = self.last_finished.max(Some(first));
        }
        while self.began.last().is_some_and(|&last| timeline.end_ns(last) <= now) {
            self.began.pop();
        }
        self.running = self.began.last().copied();
    }

    pub(super) fn add(&mut self, work: Order, timeline: &Timeline) {
        self.unfinished.insert((timeline.end_ns(work), work));
        self.began.push(work);
    }

    /// Returns the activity that finished last before the next one started.
    pub(super) fn last_finished(&self) -> Option<Order> {
        self.last_finished.map(|(_, work)| work)
    }

    /// Returns the running activities that end before a time, latest end first.
    fn ending_before(&self, end_ns: i64) -> impl Iterator<Item = Order> + '_ {
        let ending = self.unfinished.range(..(end_ns, Order::from_row(0)));
        ending.rev().take(limits::MOST_OVERLAPS).map(|&(_, other)| other)
    }
}

// Late starts without a reason in the trace: the gap is marked as unexplained instead of being
// attributed to the launch.

/// Renames the binding edge of a start that is too late for it.
pub(super) fn rename(work: Order, late_ns: i64, binding: &mut Edge, facts: &Facts<'_>) {
    let may_rename = matches!(binding.role, Role::StreamOrder | Role::Launch | Role::GraphOrder);
    let is_node = facts.is_in_graph(work);
    let least_ns = if is_node && starts_after_call(work, facts) {
        limits::GRAPH_GAP_NS
    } else if facts.timeline.launcher(work).is_none() {
        limits::LATE_START_NS // its launch may have come as late
    } else {
        limits::UNEXPLAINED_NS
    };
    if late_ns > least_ns && may_rename {
        binding.kind = if is_node { Kind::GraphGap } else { Kind::Unexplained };
        binding.role = Role::NoReason;
        binding.evidence = Evidence::None;
    }
}

fn starts_after_call(work: Order, facts: &Facts<'_>) -> bool {
    let timeline = facts.timeline;
    timeline.launcher(work).is_some_and(|call| timeline.end_ns(call) < timeline.start_ns(work))
}
