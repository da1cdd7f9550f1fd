//! Chains the nodes of each thread. The time between two nodes belongs to the open call, operator
//! or Python function that started last.
//!
//! This does not require proper nesting: if an event begins inside another and outlives it, the
//! first has the time before the second begins. Such crossings are counted.

use crate::error::Result;
use crate::graph::facts::Facts;
use crate::graph::model::{Edge, Evidence, Kind, Nodes, Role, limits};
use crate::ids::{NodeId, Order, RowSet};
use crate::link::{QueuedTask, queued_tasks};
use crate::progress::{Progress, report};
use crate::tables::EventKind;

/// Connects the nodes of each thread; every edge belongs to the event that had its time. Returns
/// the number of events that others cross.
pub(super) fn edges(
    facts: &Facts<'_>,
    edges: &mut Vec<Edge>,
    progress: Progress<'_>,
) -> Result<u64> {
    let (timeline, nodes) = (facts.timeline, facts.nodes);
    let n_lanes = timeline.orders().map(|event| timeline.lane(event) + 1).max().unwrap_or(0);
    let mut threads: Vec<Thread> = Vec::new();
    threads.resize_with(n_lanes, Thread::default);
    let mut crossings = 0;
    for node in nodes.ids() {
        if node.row() % (1 << 16) == 0 {
            report(progress, node.row() as u64)?;
        }
        let event = nodes.event(node);
        let kind = timeline.kind(event);
        if kind.is_device_work() {
            continue;
        }
        let thread = &mut threads[timeline.lane(event)];
        edges.extend(thread.last.map(|last| thread.edge(last, node)));
        let loads =
            may_load(kind) && timeline.name(event).is_some_and(|name| facts.is_loader[name.row()]);
        if nodes.is_end(node) {
            crossings += u64::from(thread.close(event, kind, loads));
        } else {
            thread.open(event, kind, loads);
        }
        thread.last = Some(node);
    }
    Ok(crossings)
}

fn may_load(kind: EventKind) -> bool {
    matches!(kind, EventKind::Annotation | EventKind::Python)
}

/// The open events of a thread: in each layer, the one that started last is last.
#[derive(Default)]
struct Thread {
    last: Option<NodeId>,
    open: [Vec<Order>; 4],
    /// Events that are closed but still in `open`.
    closed: RowSet<Order>,
    n_loaders: u32,
}

const ANNOTATIONS: usize = 0;

const OPERATORS: usize = 1;

const FRAMES: usize = 2;

const CALLS: usize = 3;

impl Thread {
    fn open(&mut self, event: Order, kind: EventKind, loads: bool) {
        self.open[usize::from(kind.layer())].push(event);
        self.n_loaders += u32::from(loads);
    }

    /// Closes an event. Returns whether an event that began inside it continues after it; labels
    /// may cross.
    fn close(&mut self, event: Order, kind: EventKind, loads: bool) -> bool {
        let open = &mut self.open[usize::from(kind.layer())];
        if open.last() == Some(&event) {
            open.pop();
        } else {
            self.closed.insert(event);
        }
        // Crossed events stay below the crossing ones until those are closed too.
        while !self.closed.is_empty() && open.last().is_some_and(|last| self.closed.remove(last)) {
            open.pop();
        }
        self.n_loaders -= u32::from(loads);
        let last_work = self.open[OPERATORS..].iter().filter_map(|open| open.last()).max();
        kind != EventKind::Annotation && last_work.is_some_and(|&other| other > event)
    }

    fn edge(&self, source: NodeId, target: NodeId) -> Edge {
        let (kind, owner) = self.owner();
        Edge::new((source, target), (kind, Role::ThreadOrder), owner, Evidence::Order)
    }

    /// Returns the owner of the time: the open call, operator or frame that started last.
    fn owner(&self) -> (Kind, Option<Order>) {
        let last = |layer: usize| self.open[layer].last().copied();
        if let Some(call) = last(CALLS) {
            return (Kind::Runtime, Some(call));
        }
        let operator = last(OPERATORS);
        let owner = last(FRAMES).max(operator.or(last(ANNOTATIONS)));
        if self.n_loaders > 0 {
            return (Kind::DataLoading, owner);
        }
        (if operator.is_some() { Kind::Operator } else { Kind::HostGap }, owner)
    }
}

// Edges between the forward and the backward thread, which run in turns.

/// Adds an edge to the start of the backward thread's work, and one from its end back to the
/// forward thread.
///
/// A gap of the forward thread in which the backward thread works is a wait. Time inside an
/// operator is a wait only if the backward thread is idle at the start and at the end of that time.
pub(super) fn autograd_edges(chains: &[Edge], facts: &Facts<'_>) -> Vec<Edge> {
    if facts.autograd.is_empty() {
        return Vec::new();
    }
    let bursts = bursts(chains, facts);
    let mut turns_of = vec![Vec::new(); bursts.len()];
    for (place, pair) in facts.autograd.iter().enumerate() {
        turns_of[pair.forward.row()].push((place, Turns::among(&bursts[pair.backward.row()])));
    }
    let mut found = vec![Vec::new(); facts.autograd.len()];
    for gap in chains.iter().filter(|it| matches!(it.kind, Kind::HostGap | Kind::Operator)) {
        for (place, turns) in &mut turns_of[facts.thread_of(gap)] {
            found[*place].extend(turns.next(gap, facts.nodes).into_iter().flatten());
        }
    }
    found.concat()
}

/// A period in which a thread works without a gap, from node to node.
#[derive(Clone, Copy)]
struct Burst {
    start: NodeId,
    end: NodeId,
}

/// Returns the bursts of each backward thread, in order; empty for other threads.
fn bursts(chains: &[Edge], facts: &Facts<'_>) -> Vec<Vec<Burst>> {
    let n_lanes = facts.tables.lanes.len();
    let mut is_backward = vec![false; n_lanes];
    for pair in &facts.autograd {
        is_backward[pair.backward.row()] = true;
    }
    let mut bursts: Vec<Vec<Burst>> = vec![Vec::new(); n_lanes];
    for edge in chains.iter().filter(|edge| edge.kind != Kind::HostGap) {
        let thread = facts.thread_of(edge);
        if !is_backward[thread] {
            continue;
        }
        match bursts[thread].last_mut() {
            Some(last) if last.end == edge.source => last.end = edge.target,
            _ => bursts[thread].push(Burst { start: edge.source, end: edge.target }),
        }
    }
    bursts
}

/// Matches the gaps of a forward thread with the bursts of a backward thread. Both are in order of
/// time, so each burst is visited once.
#[derive(Clone)]
struct Turns<'b> {
    bursts: &'b [Burst],
    /// Number of bursts that end before the gap begins.
    n_over: usize,
    /// Number of bursts that begin before the gap ends.
    n_begun: usize,
}

impl<'b> Turns<'b> {
    fn among(bursts: &'b [Burst]) -> Self {
        Self { bursts, n_over: 0, n_begun: 0 }
    }

    /// Returns the edges to and from the backward thread for the next gap, if it works in that gap.
    fn next(&mut self, gap: &Edge, nodes: &Nodes) -> [Option<Edge>; 2] {
        let (gap_start_ns, gap_end_ns) = (nodes.time_ns(gap.source), nodes.time_ns(gap.target));
        let is_over = |burst: &Burst| nodes.time_ns(burst.end) <= gap_start_ns;
        let has_begun = |burst: &Burst| nodes.time_ns(burst.start) < gap_end_ns;
        self.n_over += self.bursts[self.n_over..].iter().take_while(|it| is_over(it)).count();
        self.n_begun += self.bursts[self.n_begun..].iter().take_while(|it| has_begun(it)).count();
        if self.n_over >= self.n_begun {
            return [None, None];
        }
        let (first, last) = (self.bursts[self.n_over], self.bursts[self.n_begun - 1]);
        let idle_before = nodes.time_ns(first.start) >= gap_start_ns;
        let idle_after = nodes.time_ns(last.end) <= gap_end_ns;
        if gap.kind == Kind::Operator && !(idle_before && idle_after) {
            return [None, None];
        }
        [
            idle_before.then(|| handover((gap.source, first.start), gap.event())),
            idle_after.then(|| handover((last.end, gap.target), gap.event())),
        ]
    }
}

fn handover(nodes: (NodeId, NodeId), label: Option<Order>) -> Edge {
    Edge::new(nodes, (Kind::Handover, Role::Handover), label, Evidence::Inferred)
}

// Edges of a task queue: a thread that launches for others begins each launch after it was
// enqueued.

/// Returns the edges from enqueue events to dequeue events.
pub(super) fn task_queue_edges(facts: &Facts<'_>) -> Vec<Edge> {
    queued_tasks(facts.tables).into_iter().filter_map(|task| task_queue_edge(task, facts)).collect()
}

/// Returns the edge from the end of the enqueue event, or from its start if the other thread did
/// not wait for its end.
fn task_queue_edge(task: QueuedTask, facts: &Facts<'_>) -> Option<Edge> {
    let (timeline, nodes) = (facts.timeline, facts.nodes);
    let (enqueue, dequeue) = (timeline.order(task.enqueue)?, timeline.order(task.dequeue)?);
    if timeline.lane(enqueue) == timeline.lane(dequeue) {
        return None;
    }
    let is_over = timeline.end_ns(enqueue) <= timeline.start_ns(dequeue);
    let source = if is_over { nodes.end(enqueue) } else { nodes.start(enqueue) };
    let named = (Kind::Handover, Role::Handover);
    Some(Edge::new((source, nodes.start(dequeue)), named, Some(dequeue), Evidence::Correlation))
}

// Edges into the first event of a thread, from the last event of the main thread of its process.
//
// The cause of the first event of a thread is often not recorded. If no other edge leads to its
// first node, the main thread is assumed to have started or woken it, up to a millisecond before;
// a longer time is unexplained. Any other edge takes precedence.

/// Returns the edges into the first nodes of threads to which no edge of `edges` leads.
pub(super) fn first_event_edges(edges: &[Edge], facts: &Facts<'_>) -> Vec<Edge> {
    let mut has_reason = vec![false; facts.nodes.len()];
    for edge in edges {
        has_reason[edge.target.row()] = true;
    }
    let mut firsts: Vec<_> = facts.thread_nodes().firsts().collect();
    firsts.sort_unstable();
    firsts.retain(|node| !has_reason[node.row()]);
    firsts.into_iter().filter_map(|first| first_event_edge(first, facts)).collect()
}

fn first_event_edge(first: NodeId, facts: &Facts<'_>) -> Option<Edge> {
    let thread = facts.timeline.lane(facts.nodes.event(first));
    let main = facts.main_thread_of(thread).filter(|&main| main != thread)?;
    let nodes = facts.thread_nodes().of_lane(main);
    let last = nodes.partition_point(|&node| node < first).checked_sub(1)?;
    let gap_ns = facts.nodes.time_ns(first) - facts.nodes.time_ns(nodes[last]);
    let is_near = gap_ns <= limits::THREAD_START_NS;
    let (named, evidence) = if is_near {
        ((Kind::Handover, Role::Handover), Evidence::Inferred)
    } else {
        ((Kind::Unexplained, Role::NoReason), Evidence::None)
    };
    Some(Edge::new((nodes[last], first), named, None, evidence))
}
