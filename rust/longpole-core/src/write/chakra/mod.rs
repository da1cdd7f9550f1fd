//! Writes a workload as a Chakra graph: the protobuf file that ASTRA-sim and its feeders read.
//!
//! The file is a sequence of messages, each after its length: one `GlobalMetadata`, then a `Node`
//! for each node, by id. Field numbers are those of Chakra's `et_def.proto`.
//!
//! Simulators read only `data_deps`, so these contain every dependency except that on the enclosing
//! node, and never ids without a node. Durations are whole microseconds, rounded so that those of
//! one thread or stream add up to the measured time; the attribute `duration_ns` has nanoseconds.
//! Communication nodes have the attributes that ASTRA-sim requires, with process groups numbered by
//! their names.

mod message;

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::io::Write;

use super::protobuf::Message;
use crate::ids::LaneId;
use crate::tables::{ExecutionTrace, chakra};
use crate::vocabulary::Collective;
use crate::workload::{
    Communication, DependencyKind, Linked, NodeKind, WorkloadNode, communications,
};
use message::{Content, global_metadata, metadata_message, node_message};

/// Writes a workload. With `gaps`, the nodes for time between operators are included.
///
/// # Errors
///
/// Returns the errors of `out`.
pub fn chakra(linked: Linked<'_>, gaps: bool, out: &mut dyn Write) -> io::Result<()> {
    let writer = Writer::new(linked, gaps);
    delimited(&global_metadata(linked), out)?;
    if let Some(message) = writer.groups.metadata_node(linked.trace) {
        delimited(&message, out)?;
    }
    let mut rounding = HashMap::new();
    let mut next = 0;
    for (row, node) in linked.workload.nodes.iter().enumerate() {
        let from = next;
        while linked.workload.dependencies.get(next).is_some_and(|found| found.target == row) {
            next += 1;
        }
        if gaps || node.kind != NodeKind::Gap {
            let content = writer.content(row, node, from..next, &mut rounding);
            delimited(&node_message(&content, linked), out)?;
        }
    }
    Ok(())
}

fn delimited(message: &Message, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(&Message::length_of(message))?;
    out.write_all(message.as_bytes())
}

struct Writer<'a> {
    linked: Linked<'a>,
    groups: Groups,
    communications: BTreeMap<usize, Communication>,
    /// For each gap that is left out, the nodes that replace it as a dependency.
    in_place_of: HashMap<usize, Vec<usize>>,
}

impl<'a> Writer<'a> {
    fn new(linked: Linked<'a>, gaps: bool) -> Self {
        let communications = communications(linked);
        let groups = Groups::of(&communications, linked.trace);
        let communications = communications.into_iter().map(|found| (found.row, found)).collect();
        let in_place_of = if gaps { HashMap::new() } else { before_gaps(linked) };
        Self { linked, groups, communications, in_place_of }
    }

    fn content(
        &self,
        row: usize,
        node: &'a WorkloadNode,
        dependencies: std::ops::Range<usize>,
        rounding: &mut HashMap<usize, i64>,
    ) -> Content<'_> {
        let communication = self.communications.get(&row);
        Content {
            node,
            name: self.linked.name(node),
            node_type: node_type(node, communication, self.linked.trace),
            control: self.control(node),
            data: self.data(dependencies),
            duration_us: duration_us(node, rounding),
            communication,
            group: communication.and_then(|found| self.groups.number(found.group.as_deref())),
        }
    }

    /// Returns the enclosing node; for GPU activities and work after a wait, their operator.
    fn control(&self, node: &WorkloadNode) -> Option<i64> {
        let trace = self.linked.trace;
        match node.kind {
            NodeKind::Device | NodeKind::AfterWait => Some(trace.nodes[node.row].id),
            NodeKind::Operator | NodeKind::Gap => {
                trace.parent(node.row).map(|parent| trace.nodes[parent].id)
            }
        }
    }

    /// Returns the ids of the nodes that must have ended, sorted, each once.
    fn data(&self, dependencies: std::ops::Range<usize>) -> Vec<i64> {
        let workload = self.linked.workload;
        let found = workload.dependencies[dependencies].iter();
        let rows = found.filter(|found| found.kind != DependencyKind::Control);
        let mut ids: Vec<_> = rows
            .flat_map(|found| match self.in_place_of.get(&found.source) {
                Some(rows) => rows.clone(),
                None => vec![found.source],
            })
            .map(|row| workload.nodes[row].id)
            .collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }
}

/// Returns the dependencies of each gap on other nodes than gaps. A gap depends on at most one
/// other, which ends with a wait and depends on none.
fn before_gaps(linked: Linked<'_>) -> HashMap<usize, Vec<usize>> {
    let mut before: HashMap<usize, Vec<usize>> = HashMap::new();
    let is_gap = |row: usize| linked.workload.nodes[row].kind == NodeKind::Gap;
    for (row, _) in linked.workload.nodes.iter().enumerate().filter(|&(row, _)| is_gap(row)) {
        before.insert(row, Vec::new());
    }
    for found in &linked.workload.dependencies {
        if is_gap(found.target) && found.kind != DependencyKind::Control {
            before.entry(found.target).or_default().push(found.source);
        }
    }
    let of_gaps = before.clone();
    let through = |rows: Vec<usize>| -> Vec<usize> {
        let before = |row: usize| of_gaps.get(&row).cloned().unwrap_or_else(|| vec![row]);
        rows.into_iter().flat_map(before).collect()
    };
    before.into_iter().map(|(row, rows)| (row, through(rows))).collect()
}

fn node_type(
    node: &WorkloadNode,
    communication: Option<&Communication>,
    trace: &ExecutionTrace,
) -> u64 {
    // For communication with incomplete information, simulators only use the duration.
    match communication.filter(|found| found.is_complete()).and_then(|found| found.collective) {
        Some(Collective::Send) => chakra::SEND,
        Some(Collective::Receive) => chakra::RECEIVE,
        Some(_) => chakra::COLLECTIVE,
        None if node.kind == NodeKind::Operator && is_record(node.row, trace) => chakra::METADATA,
        None => chakra::COMPUTE,
    }
}

/// Returns the duration in us; the remainder is carried to the next node of the lane.
fn duration_us(node: &WorkloadNode, rounding: &mut HashMap<usize, i64>) -> i64 {
    let carried = rounding.entry(node.lane.map_or(usize::MAX, LaneId::row)).or_default();
    let exact_ns = node.work_ns + *carried;
    let rounded_us = (exact_ns + 500).div_euclid(1_000).max(0);
    *carried = exact_ns - rounded_us * 1_000;
    rounded_us
}

// Process groups, numbered as simulators expect.

/// The number of each process group.
pub(super) struct Groups {
    numbers: BTreeMap<String, i64>,
    /// The sizes of groups that are not announced by a node of the execution trace.
    unannounced: Vec<(i64, Option<i64>)>,
    /// The groups that the execution trace announces, with their numbers.
    announced: Vec<serde_json::Value>,
}

/// Whether a node announces process groups.
pub(super) fn is_record(row: usize, trace: &ExecutionTrace) -> bool {
    trace.name(row).contains("process_group:init")
}

/// The id of the node that announces groups missing from the execution trace; larger than all other
/// ids.
const METADATA_ID: i64 = (1 << 52) + (3 << 50);

impl Groups {
    /// Numbers the groups. A group whose name is a number keeps it; others get free numbers, in
    /// order of their names.
    pub(super) fn of(communications: &[Communication], trace: &ExecutionTrace) -> Self {
        let records = (0..trace.nodes.len()).filter(|&row| is_record(row, trace));
        let announced: Vec<_> = records.flat_map(|row| announced(row, trace)).collect();
        let known: Vec<_> = announced.iter().filter_map(name).map(str::to_owned).collect();
        let used = communications.iter().filter_map(|found| found.group.clone());
        let mut names: Vec<_> = known.iter().cloned().chain(used).collect();
        names.sort();
        names.dedup();
        let mut numbers: BTreeMap<String, i64> =
            names.iter().filter_map(|name| Some((name.clone(), number(name)?))).collect();
        let mut next = numbers.values().max().map_or(0, |largest| largest + 1);
        for name in names {
            numbers.entry(name).or_insert_with(|| {
                next += 1;
                next - 1
            });
        }
        let mut unannounced: Vec<_> = communications
            .iter()
            .filter_map(|found| Some((found.group.as_ref()?, found.group_size)))
            .filter(|(name, _)| !known.contains(name))
            .map(|(name, size)| (numbers[name], size))
            .collect();
        unannounced.sort_unstable();
        unannounced.dedup_by_key(|group| group.0);
        Self { numbers, unannounced, announced }
    }

    pub(super) fn number(&self, group: Option<&str>) -> Option<i64> {
        self.numbers.get(group?).copied()
    }

    /// Returns a node for the groups that the execution trace does not announce, or whose names are
    /// not numbers; `None` if there are none.
    pub(super) fn metadata_node(&self, _trace: &ExecutionTrace) -> Option<Message> {
        let renamed = self
            .announced
            .iter()
            .filter(|group| name(group).is_some_and(|name| number(name).is_none()));
        let mut groups: Vec<_> = renamed.map(|group| self.numbered(group)).collect();
        groups.extend(self.unannounced.iter().map(|&(number, size)| {
            serde_json::json!({
                "pg_name": number.to_string(),
                "ranks": [],
                "group_size": size,
            })
        }));
        (!groups.is_empty())
            .then(|| metadata_message(METADATA_ID, &serde_json::Value::from(groups).to_string()))
    }

    fn numbered(&self, group: &serde_json::Value) -> serde_json::Value {
        let mut group = group.clone();
        let number = name(&group).and_then(|name| self.number(Some(name)));
        if let Some(number) = number {
            group["pg_name"] = number.to_string().into();
        }
        group
    }
}

fn number(name: &str) -> Option<i64> {
    name.parse().ok().filter(|&number: &i64| (0..1 << 31).contains(&number))
}

fn name(group: &serde_json::Value) -> Option<&str> {
    group["pg_name"].as_str()
}

/// Returns the groups that a node announces: a JSON list, stored as the text of its first input.
fn announced(row: usize, trace: &ExecutionTrace) -> Vec<serde_json::Value> {
    let inputs = trace.strings.get(trace.nodes[row].inputs.values);
    let inputs: Vec<serde_json::Value> = serde_json::from_str(inputs).unwrap_or_default();
    let text = inputs.first().and_then(|first| first.as_str()).unwrap_or_default();
    serde_json::from_str(text).unwrap_or_default()
}
