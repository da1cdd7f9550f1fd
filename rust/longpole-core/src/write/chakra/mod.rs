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

mod groups;
mod message;

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use groups::Groups;
use message::{Content, global_metadata, node_message};

use super::protobuf::Message;
use crate::ids::LaneId;
use crate::tables::{ExecutionTrace, chakra};
use crate::vocabulary::Collective;
use crate::workload::{
    Communication, DependencyKind, Linked, NodeKind, WorkloadNode, communications,
};

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

    /// Returns the enclosing node; for GPU activities and gaps, the operator to which they belong.
    fn control(&self, node: &WorkloadNode) -> Option<i64> {
        let trace = self.linked.trace;
        match node.kind {
            NodeKind::Device => Some(trace.nodes[node.row].id),
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

/// Returns the dependencies of each gap. Gaps do not depend on each other, because there is always
/// an operator in between.
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
    before
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
        None if node.kind == NodeKind::Operator && groups::is_record(node.row, trace) => {
            chakra::METADATA
        }
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
