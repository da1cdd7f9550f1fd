//! The dependencies of each node, with their reasons.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use super::chains::Chains;
use super::model::{
    Dependency, DependencyKind, Dropped, LinkedDevice, Moment, NodeKind, Sources, WorkloadNode,
    gap_id,
};
use super::waits::{Wait, Waits};
use crate::graph::Evidence;
use crate::ids::{EventId, LaneId, StringId};
use crate::strings::Strings;
use crate::tables::{ExecutionNode, ExecutionTrace};

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
    /// For each lane, the work of its operators after their waits, in order of time.
    after_waits: BTreeMap<usize, Vec<usize>>,
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
            after_waits: BTreeMap::new(),
            row_of_event: HashMap::new(),
            order: Vec::new(),
            found: Vec::with_capacity(nodes.len() * 4),
            dropped: Dropped::default(),
        };
        for (row, node) in nodes.iter().enumerate() {
            match node.kind {
                NodeKind::Operator => builder.row_of_operator[node.row] = row,
                NodeKind::Gap => drop(builder.row_of_gap.insert(node.id, row)),
                NodeKind::AfterWait => {
                    let lane = node.lane.map_or(0, LaneId::row);
                    builder.after_waits.entry(lane).or_default().push(row);
                }
                NodeKind::Device => {
                    builder.row_of_event.extend(node.event.map(|event| (event, row)));
                }
            }
        }
        for rows in builder.after_waits.values_mut() {
            rows.sort_unstable_by_key(|&row| (nodes[row].span, nodes[row].id));
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
        for (&lane, chain) in &self.chains.of_lane {
            let mut last = None;
            let mut after_waits = self.after_waits_of(lane).to_vec().into_iter().peekable();
            for (place, &(start_ns, _, _, operator)) in chain.nodes.iter().enumerate() {
                let row = self.row_of_operator[operator];
                let is_last = place + 1 == chain.nodes.len();
                let behind = self.gaps(operator, true).filter(|_| is_last);
                let mut rows: Vec<_> = self.gaps(operator, false).collect();
                while let Some(after) = after_waits.next_if(|&row| self.start_ns(row) < start_ns) {
                    rows.push(after);
                }
                rows.sort_by_key(|&row| self.start_ns(row));
                rows.push(row);
                let from = rows.len();
                rows.extend(behind);
                if is_last {
                    rows.extend(after_waits.by_ref());
                }
                rows[from..].sort_by_key(|&row| self.start_ns(row));
                for next in rows {
                    if let Some(last) = last {
                        self.follows(last, next, start_ns);
                    }
                    last = Some(next);
                }
            }
        }
    }

    fn start_ns(&self, row: usize) -> i64 {
        self.nodes[row].span.map_or(i64::MIN, |span| span.0)
    }

    /// Returns the work after waits of a thread, in order of time.
    fn after_waits_of(&self, lane: usize) -> &[usize] {
        self.after_waits.get(&lane).map_or(&[], Vec::as_slice)
    }

    /// Returns the last work after a wait of a thread that began by a time.
    fn last_after_wait(&self, lane: usize, time_ns: i64) -> Option<usize> {
        let rows = self.after_waits_of(lane);
        let place = rows.partition_point(|&row| self.start_ns(row) <= time_ns);
        place.checked_sub(1).map(|place| rows[place])
    }

    /// Returns the gaps before an operator, or after it if it is the last of its thread.
    fn gaps(&self, operator: usize, is_last: bool) -> impl Iterator<Item = usize> + '_ {
        let id = self.sources.trace.nodes[operator].id;
        let ids = [true, false].map(|ends_waiting| gap_id(id, is_last, ends_waiting));
        ids.into_iter().filter_map(|id| self.row_of_gap.get(&id).copied())
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
            let source = self.launching(device);
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

    /// Returns the node that launched a GPU activity: its operator, or the work of that after a wait.
    fn launching(&self, device: &LinkedDevice) -> usize {
        let operator = self.row_of_operator[device.row];
        let events = &self.sources.tables.events;
        let called = device.call.and_then(|call| events.span(call)).map(|span| span.0);
        let lane = self.nodes[operator].lane.map(LaneId::row);
        called
            .zip(lane)
            .and_then(|(called_ns, lane)| self.last_after_wait(lane, called_ns))
            .filter(|&after| self.nodes[after].row == device.row)
            .unwrap_or(operator)
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
            (_, [None, None, None]) => self.dropped.target_outside += 1,
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

    /// Returns the node of a thread before a handoff: the last to end by then, or its work after a
    /// wait, otherwise the enclosing one.
    fn handed_over(&self, wait: &Wait) -> Option<(usize, Moment)> {
        let chain = self.chains.of_lane.get(&wait.source.lane.row())?;
        let ended = chain.last_ended(wait.source.time_ns);
        let begun = chain.last_begun(wait.source.time_ns);
        let row = |operator: usize| self.row_of_operator[operator];
        let after = self.last_after_wait(wait.source.lane.row(), wait.source.time_ns);
        let later = |operator: usize| {
            let over = |&after: &usize| {
                self.start_ns(after) > self.start_ns(row(operator))
                    && self.nodes[after].span.is_some_and(|span| span.1 <= wait.source.time_ns)
            };
            after.filter(over).unwrap_or(row(operator))
        };
        ended
            .map(|operator| (later(operator), Moment::End))
            .or_else(|| begun.map(|operator| (row(operator), Moment::Start)))
    }

    /// Returns the nodes that continued after a wait: the GPU activity itself, or the next operator
    /// of the thread, and before it the gap and the work of the operator that waited.
    fn went_on(&self, wait: &Wait, source: Option<(usize, Moment)>) -> [Option<usize>; 3] {
        if wait.kind == DependencyKind::EventWait {
            return [self.row_of_event.get(&wait.target.event).copied(), None, None];
        }
        let over_ns = source
            .filter(|&(_, after)| after == Moment::End)
            .and_then(|(row, _)| self.nodes[row].span)
            .map_or(i64::MIN, |span| span.1);
        let lane = wait.target.lane.row();
        let next = self.chains.of_lane.get(&lane);
        let next = next.and_then(|chain| chain.first_from(wait.target.time_ns.max(over_ns)));
        let next_ns = next.map_or(i64::MAX, |next| self.start_ns(self.row_of_operator[next]));
        let after_waits = self.after_waits_of(lane);
        let first = after_waits.partition_point(|&row| self.start_ns(row) < over_ns);
        let after = after_waits.get(first).copied();
        let after = after.filter(|&row| over_ns > i64::MIN && self.start_ns(row) < next_ns);
        let Some(next) = next else { return [None, None, after] };
        let gap = self.gaps(next, false).last();
        let begins_behind = |&gap: &usize| {
            self.nodes[gap].span.is_some_and(|span| span.0 >= over_ns && over_ns > i64::MIN)
        };
        [Some(self.row_of_operator[next]), gap.filter(begins_behind), after]
    }

    fn data(&mut self) {
        for (writer, reader) in reads_after_writes(self.sources.trace) {
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

// Data dependencies: which node reads a storage that another node wrote.
//
// A tensor contains its storage id. In older traces storage ids are recycled addresses, so an id
// alone does not identify a storage: a reader sees what was last written to that id, and a storage
// on another device is a different one. Only nodes without children count, because the others read
// and write through these.

/// A storage, as far as the file identifies it.
type Storage<'a> = (i64, &'a str);

/// Returns rows of writers and readers, sorted by reader, each pair once.
fn reads_after_writes(trace: &ExecutionTrace) -> Vec<(usize, usize)> {
    let has_children = has_children(trace);
    let mut in_place = InPlace { strings: &trace.strings, known: HashMap::new() };
    let mut last_writer: HashMap<Storage<'_>, usize> = HashMap::new();
    let mut pairs = Vec::new();
    for (row, node) in trace.nodes.iter().enumerate().filter(|&(row, _)| !has_children[row]) {
        let read = tensors(trace.strings.get(node.inputs.values));
        let before = pairs.len();
        for (_, tensor) in &read {
            let writer = last_writer.get(&tensor.storage()).copied();
            pairs.extend(writer.filter(|&writer| writer != row).map(|writer| (writer, row)));
        }
        pairs[before..].sort_unstable();
        for tensor in written(node, trace, &read, &mut in_place) {
            last_writer.insert(tensor.storage(), row);
        }
    }
    pairs.dedup();
    pairs
}

fn has_children(trace: &ExecutionTrace) -> Vec<bool> {
    let mut has_children = vec![false; trace.nodes.len()];
    for row in 0..trace.nodes.len() {
        if let Some(parent) = trace.parent(row) {
            has_children[parent] = true;
        }
    }
    has_children
}

/// Returns the outputs, and the inputs that the schema marks as written.
fn written<'a>(
    node: &ExecutionNode,
    trace: &'a ExecutionTrace,
    read: &[(usize, Tensor<'a>)],
    in_place: &mut InPlace<'_>,
) -> Vec<Tensor<'a>> {
    let arguments = in_place.arguments(node.op_schema);
    let altered = read.iter().filter(|(place, _)| arguments.contains(place));
    let outputs = tensors(trace.strings.get(node.outputs.values));
    outputs
        .into_iter()
        .map(|(_, tensor)| tensor)
        .chain(altered.map(|&(_, tensor)| tensor))
        .collect()
}

/// The arguments that each schema marks as written, as in `Tensor(a!) self`.
struct InPlace<'a> {
    strings: &'a Strings,
    known: HashMap<StringId, Vec<usize>>,
}

impl InPlace<'_> {
    fn arguments(&mut self, schema: StringId) -> &[usize] {
        let strings = self.strings;
        self.known.entry(schema).or_insert_with(|| written_arguments(strings.get(schema)))
    }
}

fn written_arguments(schema: &str) -> Vec<usize> {
    let inside = schema.split("->").next().unwrap_or_default();
    let inside = inside.split_once('(').map_or("", |(_, inside)| inside);
    let arguments = inside.split(", ").filter(|argument| *argument != "*");
    arguments
        .enumerate()
        .filter(|(_, argument)| argument.contains("!)"))
        .map(|(place, _)| place)
        .collect()
}

/// A tensor: `[id, storage id, offset, elements, item size, device]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tensor<'a> {
    storage: i64,
    device: &'a str,
    /// Number of elements times their size.
    pub(super) bytes: i64,
}

impl<'a> Tensor<'a> {
    fn storage(self) -> Storage<'a> {
        (self.storage, self.device)
    }
}

/// Returns the tensors in a list of values, at any depth, with the index of the argument. A storage
/// id of 0 means none.
pub(super) fn tensors(values: &str) -> Vec<(usize, Tensor<'_>)> {
    let mut found = Vec::new();
    let (mut depth, mut argument, mut start) = (0_usize, 0, 0);
    let mut in_text = false;
    let bytes = values.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if in_text => at += 1,
            b'"' => in_text = !in_text,
            _ if in_text => {}
            b'[' => {
                depth += 1;
                start = at + 1;
            }
            b']' => {
                let inside = &values[start.min(at)..at];
                found.extend(tensor(inside).map(|tensor| (argument, tensor)));
                depth = depth.saturating_sub(1);
                start = at + 1;
            }
            b',' if depth == 1 => argument += 1,
            _ => {}
        }
        at += 1;
    }
    found
}

fn tensor(inside: &str) -> Option<Tensor<'_>> {
    let device = inside.strip_suffix('"')?;
    let (numbers, device) = device.split_once('"')?;
    let numbers = numbers.trim_end().strip_suffix(',')?;
    let numbers: Vec<i64> =
        numbers.split(',').map(|number| number.trim().parse()).collect::<Result<_, _>>().ok()?;
    let &[_, storage, _, elements, item, ..] = numbers.as_slice() else { return None };
    let bytes = elements.saturating_mul(item);
    (numbers.len() == 5 && storage != 0).then_some(Tensor { storage, device, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_are_found_at_any_depth() {
        let values = r#"[[1,2,0,4,4,"cpu"], [[3,5,0,9,4,"cuda:0"],[4,0,0,9,4,"cpu"]], "a]", 7]"#;
        let found = tensors(values);
        let cpu = Tensor { storage: 2, device: "cpu", bytes: 16 };
        let cuda = Tensor { storage: 5, device: "cuda:0", bytes: 36 };
        assert_eq!(found, [(0, cpu), (1, cuda)]);
    }

    #[test]
    fn a_schema_says_what_it_writes() {
        let schema = "aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out)";
        assert_eq!(written_arguments(schema), [3]);
        assert_eq!(written_arguments("aten::mm(Tensor self) -> Tensor(a!)"), [] as [usize; 0]);
        assert_eq!(written_arguments(""), [] as [usize; 0]);
    }
}
