//! Encodes the messages of `et_def.proto`.

use crate::ids::StringId;
use crate::read::Field;
use crate::tables::{ExecutionNode, NodeValues, chakra, given};
use crate::vocabulary::Collective;
use crate::workload::{Communication, Linked, NodeKind, WorkloadNode, tensor_bytes};
use crate::write::protobuf::Message;

// GlobalMetadata
const VERSION: Field = 1;
const METADATA_ATTRIBUTE: Field = 2;
// Node
const ID: Field = 1;
const NAME: Field = 2;
const TYPE: Field = 3;
const CONTROL: Field = 4;
const DATA: Field = 5;
const START_MICROS: Field = 6;
const DURATION_MICROS: Field = 7;
const INPUTS: Field = 8;
const OUTPUTS: Field = 9;
const ATTRIBUTE: Field = 10;
// IOInfo
const VALUES: Field = 1;
const SHAPES: Field = 2;
const TYPES: Field = 3;
// AttributeProto
const ATTRIBUTE_NAME: Field = 1;
const INT64: Field = 9;
const UINT64: Field = 13;
const BOOL: Field = 27;
const STRING: Field = 29;

/// The schema version that is written.
const SCHEMA_VERSION: &str = "0.0.4";

/// The content of one node.
pub(super) struct Content<'a> {
    pub(super) node: &'a WorkloadNode,
    pub(super) name: &'a str,
    pub(super) node_type: u64,
    pub(super) control: Option<i64>,
    pub(super) data: Vec<i64>,
    pub(super) duration_us: i64,
    pub(super) communication: Option<&'a Communication>,
    pub(super) group: Option<i64>,
}

/// Returns the metadata of the execution trace, and the rank.
pub(super) fn global_metadata(linked: Linked<'_>) -> Message {
    let mut message = Message::default().text(VERSION, SCHEMA_VERSION);
    for (name, text) in &linked.trace.header.fields {
        let attribute = match text.parse::<u64>() {
            Ok(number) => named(name).number(UINT64, number),
            Err(_) => named(name).text(STRING, text.trim_matches('"')),
        };
        message = message.message(METADATA_ATTRIBUTE, &attribute);
    }
    match linked.tables.header.rank {
        Some(rank) => message.message(METADATA_ATTRIBUTE, &named("rank").signed(INT64, rank)),
        None => message,
    }
}

pub(super) fn node_message(content: &Content<'_>, linked: Linked<'_>) -> Message {
    let node = content.node;
    let start_us = node.span.map_or(0, |span| span.0.div_euclid(1_000));
    let message = Message::default()
        .unless_zero(ID, node.id)
        .text(NAME, content.name)
        .number(TYPE, content.node_type)
        .packed(CONTROL, content.control.as_slice())
        .packed(DATA, &content.data)
        .unless_zero(START_MICROS, start_us.max(0))
        .unless_zero(DURATION_MICROS, content.duration_us);
    let message = with_lists(message, content, linked);
    attributes(content, linked)
        .into_iter()
        .fold(message, |message, attribute| message.message(ATTRIBUTE, &attribute))
}

/// Returns a node that announces process groups. ASTRA-sim removes two characters on each side.
pub(super) fn metadata_message(id: i64, groups: &str) -> Message {
    let inputs = Message::default()
        .text(VALUES, &format!("['{groups}']"))
        .text(SHAPES, "[[]]")
        .text(TYPES, "['String']");
    Message::default()
        .unless_zero(ID, id)
        .text(NAME, "## process_group:init ##")
        .number(TYPE, chakra::METADATA)
        .message(INPUTS, &inputs)
        .message(ATTRIBUTE, &flag("is_cpu_op", true))
}

/// Adds the inputs and outputs; gaps and GPU activities have none, because they belong to the
/// operator.
fn with_lists(message: Message, content: &Content<'_>, linked: Linked<'_>) -> Message {
    let record = &linked.trace.nodes[content.node.row];
    let text = |id: StringId| linked.trace.strings.get(id);
    if content.node.kind != NodeKind::Operator {
        return message;
    }
    let quoted = content.node_type == chakra::METADATA;
    let list = |values: &NodeValues| {
        let first = text(values.values);
        let first = if quoted { python_list(first) } else { first.to_owned() };
        Message::default()
            .unless_empty(VALUES, &first)
            .unless_empty(SHAPES, text(values.shapes))
            .unless_empty(TYPES, text(values.types))
    };
    message.message(INPUTS, &list(&record.inputs)).message(OUTPUTS, &list(&record.outputs))
}

/// Returns a JSON list with one string, as Python prints it, because readers of process groups rely
/// on this format.
fn python_list(values: &str) -> String {
    let texts: Vec<String> = serde_json::from_str(values).unwrap_or_default();
    match texts.first() {
        Some(text) => format!("['{text}']"),
        None => values.to_owned(),
    }
}

fn attributes(content: &Content<'_>, linked: Linked<'_>) -> Vec<Message> {
    let node = content.node;
    let record = &linked.trace.nodes[node.row];
    let on_cpu = node.kind != NodeKind::Device && !talks(content);
    let mut found = if node.kind == NodeKind::Operator {
        operator_attributes(record, linked)
    } else {
        vec![integer("tid", given(record.tid).unwrap_or(0))]
    };
    found.push(flag("is_cpu_op", on_cpu));
    found.extend(place(node, linked));
    found.extend(times(node));
    if node.kind == NodeKind::Gap {
        found.push(flag("is_gap", true));
    }
    if node.kind == NodeKind::Device && !talks(content) {
        let bytes = tensor_bytes(node.row, linked.trace);
        found.extend(bytes.map(|bytes| integer("tensor_size", bytes)));
    }
    found.extend(communication(content));
    found
}

/// Whether simulators pass the node to their network model.
fn talks(content: &Content<'_>) -> bool {
    matches!(content.node_type, chakra::SEND | chakra::RECEIVE | chakra::COLLECTIVE)
}

fn operator_attributes(record: &ExecutionNode, linked: Linked<'_>) -> Vec<Message> {
    let numbers = [
        ("rf_id", record.rf_id),
        ("fw_parent", record.fw_parent),
        ("seq_id", record.seq_id),
        ("scope", record.scope),
        ("tid", record.tid),
        ("fw_tid", record.fw_tid),
    ];
    let numbers = numbers.iter().filter_map(|&(name, value)| Some((name, given(value)?)));
    let mut found: Vec<_> = numbers.map(|(name, value)| integer(name, value)).collect();
    found.push(text("op_schema", linked.trace.strings.get(record.op_schema)));
    found
}

/// Returns the stream (0 for thread events), and the device or the thread.
fn place(node: &WorkloadNode, linked: Linked<'_>) -> Vec<Message> {
    let place = node.lane.filter(|_| node.kind == NodeKind::Device);
    let place = place.map(|lane| linked.tables.lanes.place(lane));
    let stream = place.and_then(|place| place.stream).unwrap_or(0);
    let device = place.and_then(|place| place.device);
    let device = device.map(|device| integer("device", device));
    let lane = node.lane.filter(|_| node.kind != NodeKind::Device);
    let thread = lane.map(|lane| linked.tables.strings.get(linked.tables.lanes.place(lane).thread));
    let thread = thread.and_then(|thread| thread.parse().ok());
    let thread = thread.map(|thread| integer("os_thread", thread));
    [integer("stream", stream)].into_iter().chain(device).chain(thread).collect()
}

/// Returns the measured times in ns; empty for nodes that are not in the trace.
fn times(node: &WorkloadNode) -> Vec<Message> {
    let Some((start_ns, end_ns)) = node.span else { return Vec::new() };
    let mut found = vec![
        integer("start_ns", start_ns),
        integer("duration_ns", node.work_ns),
        integer("inclusive_ns", end_ns - start_ns),
    ];
    if node.blocked_ns > 0 {
        found.push(integer("blocked_ns", node.blocked_ns));
    }
    found
}

fn communication(content: &Content<'_>) -> Vec<Message> {
    let Some(found) = content.communication else { return Vec::new() };
    let mut messages = Vec::new();
    if !found.is_complete() {
        messages.push(flag("is_incomplete_communication", true));
    }
    messages
        .extend(found.collective.and_then(comm_type).map(|number| integer("comm_type", number)));
    messages.extend(found.bytes.map(|bytes| integer("comm_size", bytes)));
    messages.extend(content.group.map(|group| text("pg_name", &group.to_string())));
    let other_end = match found.collective {
        Some(Collective::Send) => "comm_dst",
        Some(Collective::Receive) => "comm_src",
        _ => return messages,
    };
    messages.extend(found.peer.map(|peer| unsigned(other_end, peer)));
    messages.push(unsigned("comm_tag", found.sequence.unwrap_or(0)));
    messages
}

/// Returns the `CommType` number of a collective.
fn comm_type(collective: Collective) -> Option<i64> {
    Some(match collective {
        Collective::AllReduce => 0,
        Collective::Reduce => 1,
        Collective::AllGather => 2,
        Collective::Gather => 3,
        Collective::Scatter => 4,
        Collective::Broadcast => 5,
        Collective::AllToAll => 6,
        Collective::ReduceScatter => 7,
        Collective::Barrier => 9,
        Collective::Send | Collective::Receive | Collective::SendReceive => return None,
    })
}

fn named(name: &str) -> Message {
    Message::default().text(ATTRIBUTE_NAME, name)
}

fn integer(name: &str, value: i64) -> Message {
    named(name).signed(INT64, value)
}

fn unsigned(name: &str, value: i64) -> Message {
    named(name).signed(UINT64, value)
}

fn flag(name: &str, value: bool) -> Message {
    named(name).number(BOOL, u64::from(value))
}

fn text(name: &str, value: &str) -> Message {
    named(name).text(STRING, value)
}
