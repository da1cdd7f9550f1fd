//! The communication nodes: operation, process group, and size.
//!
//! The profiler's own arguments have priority, then `record_param_comms` and the ranges around the
//! node (`nccl:all_reduce`), then the name of the kernel. A kernel of a communication library that
//! none of these describes is marked as unknown.

use super::dependencies::tensors;
use super::model::{Linked, NodeKind, WorkloadNode};
use crate::ids::EventId;
use crate::tables::{ExecutionTrace, argument, argument_text};
use crate::vocabulary::{Collective, WorkClass, data_type, runs_on_cpu};

/// The communication of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Communication {
    /// The row of its node in the workload.
    pub row: usize,
    /// The operation, if recorded.
    pub collective: Option<Collective>,
    /// The name of its process group.
    pub group: Option<String>,
    /// The number of ranks in the group.
    pub group_size: Option<i64>,
    /// The sequence number within the group.
    pub sequence: Option<i64>,
    /// The number of bytes that the rank sends.
    pub bytes: Option<i64>,
    /// The other rank of a send or receive.
    pub peer: Option<i64>,
}

impl Communication {
    /// Whether enough is known to run it on a simulated network.
    pub fn is_complete(&self) -> bool {
        self.bytes.is_some()
            && match self.collective {
                None => false,
                Some(Collective::Send | Collective::Receive) => self.peer.is_some(),
                Some(_) => true,
            }
    }
}

/// Returns all communications, by row of their node. Parts of a communication are not listed
/// separately.
pub fn communications(linked: Linked<'_>) -> Vec<Communication> {
    let class_of = linked.tables.work_classes();
    let communicates = |node: &WorkloadNode| match node.kind {
        NodeKind::Device => node.event.and_then(&class_of) == Some(WorkClass::Communication),
        NodeKind::Operator => {
            let mut around = around(node.row, linked.trace).into_iter().skip(1);
            node.event.is_some()
                && runs_on_cpu(linked.trace.name(node.row))
                && !around.any(|row| runs_on_cpu(linked.trace.name(row)))
        }
        NodeKind::Gap | NodeKind::AfterWait => false,
    };
    let nodes = linked.workload.nodes.iter().enumerate();
    nodes
        .filter(|(_, node)| communicates(node))
        .map(|(row, node)| communication(row, node, linked))
        .collect()
}

fn communication(row: usize, node: &WorkloadNode, linked: Linked<'_>) -> Communication {
    let around = around(node.row, linked.trace);
    let recorded = around.iter().find_map(|&row| Recorded::of(row, linked.trace));
    let recorded = recorded.unwrap_or_default();
    let arguments = Arguments { event: node.event, linked };
    let collective = collective(node, &around, &recorded, &arguments, linked);
    let peer = match collective {
        Some(Collective::Send) => arguments.number("Dst Rank").or(recorded.root),
        Some(Collective::Receive) => arguments.number("Src Rank").or(recorded.root),
        _ => None,
    };
    Communication {
        row,
        collective,
        group: arguments.text("Process Group Name").map(str::to_owned).or(recorded.group),
        group_size: arguments.number("Group size").or(recorded.group_size),
        sequence: arguments.number("Seq").or(recorded.sequence),
        bytes: arguments
            .bytes()
            .or(recorded.bytes)
            .or_else(|| around.iter().find_map(|&row| tensor_bytes(row, linked.trace))),
        peer,
    }
}

/// Returns the node and up to five enclosing nodes, innermost first.
fn around(row: usize, trace: &ExecutionTrace) -> Vec<usize> {
    std::iter::successors(Some(row), |&row| trace.parent(row)).take(6).collect()
}

fn collective(
    node: &WorkloadNode,
    around: &[usize],
    recorded: &Recorded,
    arguments: &Arguments<'_>,
    linked: Linked<'_>,
) -> Option<Collective> {
    let event = node.event.and_then(|event| linked.tables.events.name(event));
    let own = event.map_or("", |name| linked.tables.strings.get(name));
    let ranges = around.iter().map(|&row| linked.trace.name(row));
    let ranges = ranges.filter(|name| name.contains(':') && !name.contains("coalesced"));
    arguments
        .text("Operation name")
        .into_iter()
        .chain(recorded.collective.as_deref())
        .chain([own])
        .chain(ranges)
        .filter_map(Collective::of_name)
        // The name of a kernel for both directions does not show the direction.
        .find(|&found| found != Collective::SendReceive)
}

/// The profiler's arguments of an event.
struct Arguments<'a> {
    event: Option<EventId>,
    linked: Linked<'a>,
}

impl Arguments<'_> {
    fn number(&self, key: &str) -> Option<i64> {
        argument(self.event?, key, self.linked.tables).filter(|&number| number >= 0)
    }

    fn text(&self, key: &str) -> Option<&str> {
        argument_text(self.event?, key, self.linked.tables).filter(|text| !text.is_empty())
    }

    fn bytes(&self) -> Option<i64> {
        let item = data_type(self.text("dtype")?)?.1;
        self.number("In msg nelems")?.checked_mul(item)
    }
}

/// The record of `record_param_comms`: in attributes since schema 1.1.0, before that in its inputs
/// (tensors, sequence number, group, rank or root, ...).
#[derive(Default)]
struct Recorded {
    collective: Option<String>,
    group: Option<String>,
    group_size: Option<i64>,
    sequence: Option<i64>,
    bytes: Option<i64>,
    root: Option<i64>,
}

impl Recorded {
    fn of(row: usize, trace: &ExecutionTrace) -> Option<Self> {
        match trace.name(row) {
            "record_param_comms" => {}
            "c10d::send" | "c10d::recv_" => return Some(Self::of_peer(row, trace)),
            _ => return None,
        }
        let text = |name: &str| Some(trace.extra(row, name)?.as_str()?.to_owned());
        let number = |name: &str| trace.extra(row, name)?.as_i64();
        let item = text("dtype").and_then(|dtype| Some(data_type(&dtype)?.1));
        let inputs = trace.strings.get(trace.nodes[row].inputs.values);
        let inputs: Vec<serde_json::Value> = serde_json::from_str(inputs).unwrap_or_default();
        let pair = inputs.get(2).and_then(|pair| pair.as_array()).filter(|pair| pair.len() == 2);
        let input = |place: usize| pair.and(inputs.get(place)).and_then(serde_json::Value::as_i64);
        Some(Self {
            collective: text("collective_name"),
            group: text("pg_name")
                .or_else(|| pair.and_then(|pair| Some(pair[0].as_str()?.to_owned()))),
            group_size: number("pg_size"),
            sequence: input(1),
            bytes: number("in_msg_nelems")
                .zip(item)
                .and_then(|(count, item)| count.checked_mul(item)),
            root: input(3),
        })
    }
}

impl Recorded {
    /// Returns the arguments of send and receive operators: tensors, group, rank, tag.
    fn of_peer(row: usize, trace: &ExecutionTrace) -> Self {
        let inputs = trace.strings.get(trace.nodes[row].inputs.values);
        let inputs: Vec<serde_json::Value> = serde_json::from_str(inputs).unwrap_or_default();
        let number = |place: usize| inputs.get(place).and_then(serde_json::Value::as_i64);
        Self { root: number(2), sequence: number(3), ..Self::default() }
    }
}

/// Returns the size of the input tensors of a node in bytes.
pub fn tensor_bytes(row: usize, trace: &ExecutionTrace) -> Option<i64> {
    let values = trace.strings.get(trace.nodes[row].inputs.values);
    let sizes = tensors(values).into_iter().map(|(_, tensor)| tensor.bytes);
    sizes.reduce(i64::saturating_add).filter(|&bytes| bytes > 0)
}
