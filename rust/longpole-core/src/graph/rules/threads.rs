//! Chains the nodes of each thread. The time between two nodes belongs to the open call, operator
//! or Python function that started last.
//!
//! This does not require proper nesting: if an event begins inside another and outlives it, the
//! first has the time before the second begins. Such crossings are counted.

use crate::error::Result;
use crate::graph::facts::Facts;
use crate::graph::model::{Edge, Evidence, Kind, Role};
use crate::ids::{NodeId, Order, RowSet};
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
