//! The dependencies of each node, with their reasons.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::chains::Chains;
use super::model::{
    Dependency, DependencyKind, Dropped, FIRST_GAP, LAST_GAP, LinkedDevice, Moment, NodeKind,
    Sources, WorkloadNode,
};
use super::storages;
use super::waits::{Wait, Waits};

use crate::graph::Evidence;
use crate::ids::EventId;

/// Returns all dependencies, sorted by target, then source and kind.
pub(super) fn dependencies(
    sources: Sources<'_>,
    nodes: &[WorkloadNode],
    chains: &Chains,
    devices: &[LinkedDevice],
    waits: &Waits,
) -> (Vec<Dependency>, Dropped) {
    let mut builder = Builder::new(sources, nodes, chains);
    builder.control();
    builder.program_order();
    builder.launches(devices);
    builder.stream_order();
    for wait in &waits.all {
        builder.wait(wait);
    }
    builder.data();
    builder.finish()
}

struct Builder<'a> {
    sources: Sources<'a>,
    nodes: &'a [WorkloadNode],
    chains: &'a Chains,
    row_of_operator: Vec<usize>,
    row_of_gap: HashMap<i64, usize>,
    row_of_event: HashMap<EventId, usize>,
    /// The position of each node in an order with which all dependencies must agree.
    order: Vec<(i64, NodeKind, i64)>,
    found: Vec<Dependency>,
    dropped: Dropped,
}

impl<'a> Builder<'a> {
    fn new(sources: Sources<'a>, nodes: &'a [WorkloadNode], chains: &'a Chains) -> Self {
        let mut builder = Self {
            sources,
            nodes,
            chains,
            row_of_operator: vec![0; sources.trace.nodes.len()],
            row_of_gap: HashMap::new(),
            row_of_event: HashMap::new(),
            order: Vec::new(),
            found: Vec::with_capacity(nodes.len() * 4),
            dropped: Dropped::default(),
        };
        for (row, node) in nodes.iter().enumerate() {
            match node.kind {
                NodeKind::Operator => builder.row_of_operator[node.row] = row,
                NodeKind::Gap => drop(builder.row_of_gap.insert(node.id, row)),
                NodeKind::Device => {
                    builder.row_of_event.extend(node.event.map(|event| (event, row)));
                }
            }
        }
        builder.order = builder.ordered();
        builder
    }

    /// Returns the order of the nodes. Nodes without times begin with their enclosing node.
    fn ordered(&self) -> Vec<(i64, NodeKind, i64)> {
        let trace = self.sources.trace;
        let mut start_ns = vec![i64::MIN; trace.nodes.len()];
        for row in 0..trace.nodes.len() {
            let own = self.nodes[self.row_of_operator[row]].span.map(|span| span.0);
            // Parents have smaller ids, so they come first.
            let around = trace.parent(row).filter(|&parent| parent < row);
            start_ns[row] = own.or(around.map(|parent| start_ns[parent])).unwrap_or(i64::MIN);
        }
        let start = |node: &WorkloadNode| node.span.map_or(start_ns[node.row], |span| span.0);
        self.nodes.iter().map(|node| (start(node), node.kind, node.id)).collect()
    }

    /// Adds a dependency that the measured times allow.
    fn add(&mut self, dependency: Dependency) {
        let (source, target) = (dependency.source, dependency.target);
        let spans = (self.nodes[source].span, self.nodes[target].span);
        let is_over = match (dependency.after, spans) {
            (Moment::End, (Some(source), Some(target))) => source.1 <= target.0,
            _ => true,
        };
        if is_over && self.order[source] < self.order[target] {
            self.found.push(dependency);
        } else {
            self.dropped.against_time += 1;
        }
    }

    fn dependency(&self, source: usize, target: usize, kind: DependencyKind) -> Dependency {
        Dependency {
            source,
            target,
            kind,
            after: Moment::End,
            evidence: Evidence::Order,
            source_event: self.nodes[source].event,
            target_event: self.nodes[target].event,
        }
    }

    fn control(&mut self) {
        for row in 0..self.sources.trace.nodes.len() {
            let Some(parent) = self.sources.trace.parent(row) else { continue };
            let (source, target) = (self.row_of_operator[parent], self.row_of_operator[row]);
            let found = self.dependency(source, target, DependencyKind::Control);
            self.add(Dependency { after: Moment::Start, ..found });
        }
    }

    fn program_order(&mut self) {
        for chain in self.chains.of_lane.values() {
            let mut last = None;
            for (place, &(start_ns, _, _, operator)) in chain.nodes.iter().enumerate() {
                let row = self.row_of_operator[operator];
                let last_gap = self.gap(operator, true).filter(|_| place + 1 == chain.nodes.len());
                let gap = self.gap(operator, false);
                for next in gap.into_iter().chain([row]).chain(last_gap) {
                    if let Some(last) = last {
                        self.follows(last, next, start_ns);
                    }
                    last = Some(next);
                }
            }
        }
    }

    /// Returns the gap before an operator, or after it if it is the last of its thread.
    fn gap(&self, operator: usize, is_last: bool) -> Option<usize> {
        let first = if is_last { LAST_GAP } else { FIRST_GAP };
        self.row_of_gap.get(&(first + self.sources.trace.nodes[operator].id)).copied()
    }

    /// Adds a dependency on a node that began before on the thread, and may still enclose this one.
    fn follows(&mut self, source: usize, target: usize, start_ns: i64) {
        let start_ns = self.nodes[target].span.map_or(start_ns, |span| span.0);
        let found = self.dependency(source, target, DependencyKind::ProgramOrder);
        let is_around = self.nodes[source].span.is_some_and(|span| span.1 > start_ns);
        let after = if is_around { Moment::Start } else { Moment::End };
        self.add(Dependency { after, ..found });
    }

    fn launches(&mut self, devices: &[LinkedDevice]) {
        for device in devices {
            let target = self.row_of_event[&device.event];
            let source = self.row_of_operator[device.row];
            let found = self.dependency(source, target, DependencyKind::Launch);
            let by_number = device.call.is_some();
            self.add(Dependency {
                after: Moment::Start,
                evidence: if by_number { Evidence::Correlation } else { Evidence::Inferred },
                source_event: device.call.or(found.source_event),
                ..found
            });
        }
    }

    /// Adds the stream order: activities of one stream run in order; if they overlap, the last one
    /// that had ended counts.
    fn stream_order(&mut self) {
        let mut works: Vec<_> = (0..self.nodes.len())
            .filter(|&row| self.nodes[row].kind == NodeKind::Device)
            .map(|row| (self.nodes[row].lane, self.order[row], row))
            .collect();
        works.sort_unstable();
        for stream in works.chunk_by(|one, other| one.0 == other.0) {
            let mut running = BinaryHeap::new();
            let mut over = None;
            for &(_, order, row) in stream {
                let has_ended = |ended: &Reverse<(i64, _, usize)>| ended.0.0 <= order.0;
                while running.peek().is_some_and(has_ended) {
                    over = over.max(running.pop().map(|Reverse(ended)| ended));
                }
                let end_ns = self.nodes[row].span.map_or(i64::MAX, |span| span.1);
                running.push(Reverse((end_ns, order, row)));
                if let Some((.., over)) = over {
                    self.add(self.dependency(over, row, DependencyKind::StreamOrder));
                }
            }
        }
    }

    /// Adds a wait from the dependency graph.
    fn wait(&mut self, wait: &Wait) {
        let source = if wait.kind == DependencyKind::Handover {
            self.handed_over(wait)
        } else {
            self.row_of_event.get(&wait.source.event).copied().map(|row| (row, Moment::End))
        };
        let targets = self.went_on(wait, source);
        match (source, targets) {
            (_, [None, None]) => self.dropped.target_outside += 1,
            (None, _) => self.dropped.source_outside += 1,
            (Some((source, after)), targets) => {
                for target in targets.into_iter().flatten() {
                    let found = self.dependency(source, target, wait.kind);
                    self.add(Dependency {
                        after,
                        evidence: wait.evidence,
                        source_event: Some(wait.source.event),
                        target_event: Some(wait.target.event),
                        ..found
                    });
                }
            }
        }
    }

    /// Returns the node of a thread before a handoff: the last to end by then, otherwise the
    /// enclosing one.
    fn handed_over(&self, wait: &Wait) -> Option<(usize, Moment)> {
        let chain = self.chains.of_lane.get(&wait.source.lane.row())?;
        let ended = chain.last_ended(wait.source.time_ns);
        let begun = chain.last_begun(wait.source.time_ns);
        let row = |operator: usize| self.row_of_operator[operator];
        ended
            .map(|operator| (row(operator), Moment::End))
            .or_else(|| begun.map(|operator| (row(operator), Moment::Start)))
    }

    /// Returns the node that continued after a wait: the GPU activity itself, or the next operator
    /// of the thread, and the gap before it.
    fn went_on(&self, wait: &Wait, source: Option<(usize, Moment)>) -> [Option<usize>; 2] {
        if wait.kind == DependencyKind::EventWait {
            return [self.row_of_event.get(&wait.target.event).copied(), None];
        }
        let over_ns = source
            .filter(|&(_, after)| after == Moment::End)
            .and_then(|(row, _)| self.nodes[row].span)
            .map_or(i64::MIN, |span| span.1);
        let Some(chain) = self.chains.of_lane.get(&wait.target.lane.row()) else {
            return [None, None];
        };
        let Some(next) = chain.first_from(wait.target.time_ns.max(over_ns)) else {
            return [None, None];
        };
        let gap = self.gap(next, false);
        let begins_behind = |&gap: &usize| {
            self.nodes[gap].span.is_some_and(|span| span.0 >= over_ns && over_ns > i64::MIN)
        };
        [Some(self.row_of_operator[next]), gap.filter(begins_behind)]
    }

    fn data(&mut self) {
        for (writer, reader) in storages::reads_after_writes(self.sources.trace) {
            let (source, target) = (self.row_of_operator[writer], self.row_of_operator[reader]);
            let found = self.dependency(source, target, DependencyKind::Data);
            self.add(Dependency { evidence: Evidence::Recorded, ..found });
        }
    }

    fn finish(mut self) -> (Vec<Dependency>, Dropped) {
        let key = |found: &Dependency| (found.target, found.source, found.kind, found.after);
        let by_content = |found: &Dependency| (key(found), found.evidence, found.target_event);
        self.found.sort_by_key(by_content);
        self.found.dedup_by_key(|found| key(found));
        (self.found, self.dropped)
    }
}
