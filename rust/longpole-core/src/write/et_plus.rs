//! Writes a workload as an ET+ file: the execution trace with times, dependencies and GPU
//! activities.
//!
//! Names are those of Chakra's linker: `inclusive_dur`, `exclusive_dur` and `ts` in us,
//! `inter_thread_dep`, `sync_dep`, and for GPU activities `cat`, `ph` and `stream`. Nodes have the
//! layout of the execution trace. In addition, there are `blocked_dur`, the waiting inside
//! `exclusive_dur`, and `dependencies`, each with its kind and evidence.

use crate::names::Names;
use std::fmt::{self, Display, Write as _};
use std::io::{self, Write};
use std::ops::Range;

use crate::ids::{EventId, StringId};
use crate::tables::{ExecutionNode, NodeLayout, NodeValues, argument_text, given};
use crate::workload::{Dependency, DependencyKind, Linked, NodeKind, WorkloadNode};

/// Writes a workload. With `gaps`, the nodes for time between operators and for work after waits are
/// included; without them, that work is part of its operator.
///
/// # Errors
///
/// Returns the errors of `out`.
pub fn et_plus(linked: Linked<'_>, gaps: bool, out: &mut dyn Write) -> io::Result<()> {
    let header = &linked.trace.header;
    let (before, behind): (Vec<_>, Vec<_>) =
        header.fields.iter().partition(|(name, _)| name != "finish_ts");
    write!(out, "{{")?;
    for (name, text) in before {
        write!(out, "\n  {}: {text},", Quoted(name))?;
    }
    write!(out, "\n  \"nodes\": [")?;
    nodes(linked, gaps, out)?;
    write!(out, "\n  ]")?;
    for (name, text) in behind {
        write!(out, ",\n  {}: {text}", Quoted(name))?;
    }
    writeln!(out, "\n}}")
}

fn nodes(linked: Linked<'_>, gaps: bool, out: &mut dyn Write) -> io::Result<()> {
    let workload = linked.workload;
    let mut next = 0;
    let mut separator = "";
    let mut line = String::new();
    for (row, node) in workload.nodes.iter().enumerate() {
        let from = next;
        while workload.dependencies.get(next).is_some_and(|found| found.target == row) {
            next += 1;
        }
        if !gaps && is_added(node) {
            continue;
        }
        line.clear();
        Line { linked, gaps }.node(node, from..next, &mut line);
        write!(out, "{separator}\n    {{{line}}}")?;
        separator = ",";
    }
    Ok(())
}

/// Whether the node is part of a thread, without an event of its own.
fn is_added(node: &WorkloadNode) -> bool {
    matches!(node.kind, NodeKind::Gap | NodeKind::AfterWait)
}

/// Writes the members of one node.
#[derive(Clone, Copy)]
struct Line<'a> {
    linked: Linked<'a>,
    gaps: bool,
}

impl<'a> Line<'a> {
    fn node(self, node: &WorkloadNode, dependencies: Range<usize>, line: &mut String) {
        let record = &self.linked.trace.nodes[node.row];
        let layout = self.linked.trace.header.layout;
        member(line, "id", node.id);
        text_member(line, "name", self.linked.name(node));
        let around = if layout == NodeLayout::Flat { "parent" } else { "ctrl_deps" };
        member(line, around, self.around(node));
        self.lists(node, record, line);
        self.attributes(record, layout, line);
        if node.kind == NodeKind::Operator {
            append(line, self.text(record.members));
        }
        self.times(node, line);
        self.dependencies(node, dependencies, line);
    }

    fn text(self, id: StringId) -> &'a str {
        self.linked.trace.strings.get(id)
    }

    fn around(self, node: &WorkloadNode) -> i64 {
        let record = &self.linked.trace.nodes[node.row];
        let is_inside = matches!(node.kind, NodeKind::Device | NodeKind::AfterWait);
        if is_inside { record.id } else { record.parent }
    }

    fn lists(self, node: &WorkloadNode, record: &ExecutionNode, line: &mut String) {
        let is_given = !is_added(node);
        self.side("inputs", record.inputs, is_given, line);
        self.side("outputs", record.outputs, is_given, line);
    }

    /// Writes the lists of one side, which are empty if the node has none of its own.
    fn side(self, side: &str, values: NodeValues, is_given: bool, line: &mut String) {
        let parts = [
            ("values", values.values),
            ("shapes", values.shapes),
            ("types", values.types),
            ("strides", values.strides),
        ];
        let nested = self.linked.trace.header.layout == NodeLayout::Attributes;
        if nested {
            member(line, side, "{");
        }
        for (name, id) in parts {
            let text = self.text(id);
            let list = if is_given { text } else { "[]" };
            match name {
                _ if text.is_empty() => {}
                _ if nested => member(line, name, list),
                "values" => member(line, side, list),
                _ => member(line, &format!("{}_{name}", side.trim_end_matches('s')), list),
            }
        }
        if nested {
            line.push('}');
        }
    }

    fn attributes(self, record: &ExecutionNode, layout: NodeLayout, line: &mut String) {
        let numbers = [
            ("rf_id", "uint64", record.rf_id),
            ("fw_parent", "uint64", record.fw_parent),
            ("seq_id", "int64", record.seq_id),
            ("scope", "uint64", record.scope),
            ("tid", "uint64", record.tid),
            ("fw_tid", "uint64", record.fw_tid),
        ];
        let is_flat = layout == NodeLayout::Flat;
        if !is_flat {
            member(line, "attrs", "[");
        }
        for (name, kind, value) in numbers {
            match given(value) {
                Some(value) if is_flat => member(line, name, value),
                Some(value) => attribute(line, name, kind, value),
                None => {}
            }
        }
        let schema = Quoted(self.text(record.op_schema));
        if is_flat {
            member(line, "op_schema", schema);
        } else {
            attribute(line, "op_schema", "string", schema);
            append(line, self.text(record.attributes));
            line.push(']');
        }
    }

    fn times(self, node: &WorkloadNode, line: &mut String) {
        let Some((start_ns, end_ns)) = self.span(node) else { return };
        // Gap nodes hold the time of a label between its operators, others the work after waits.
        let own_ns = if self.gaps { node.work_ns + node.blocked_ns } else { node.self_ns };
        member(line, "inclusive_dur", Micros(end_ns - start_ns));
        member(line, "exclusive_dur", Micros(own_ns));
        member(line, "ts", Micros(start_ns));
        member(line, "blocked_dur", Micros(node.blocked_ns));
        if node.kind == NodeKind::Gap {
            member(line, "gap", true);
        }
        if node.kind == NodeKind::AfterWait {
            member(line, "after_wait", true);
        }
        if let Some(event) = node.event.filter(|_| node.kind == NodeKind::Device) {
            self.device(event, line);
        }
    }

    /// Returns start and end of a node; none of a step of the profiler, as in Chakra's linker:
    /// Chakra's converter would take its time for work before the first operator.
    fn span(self, node: &WorkloadNode) -> Option<(i64, i64)> {
        let is_step = node.kind == NodeKind::Operator
            && self.linked.trace.name(node.row).contains("ProfilerStep");
        node.span.filter(|_| !is_step)
    }

    /// Writes the members that only GPU activities have.
    fn device(self, event: EventId, line: &mut String) {
        let tables = self.linked.tables;
        let category = tables.events.category(event);
        let category = category.map_or("kernel", |category| tables.strings.get(category));
        let place = tables.lanes.place(tables.events.lane(event));
        text_member(line, "cat", category);
        text_member(line, "ph", "X");
        let numbers = [
            ("stream", place.stream),
            ("device", place.device),
            ("correlation", tables.events.correlation(event)),
        ];
        for (name, value) in numbers {
            if let Some(value) = value {
                member(line, name, value);
            }
        }
        if let Some(group) = argument_text(event, "Process Group Name", tables) {
            text_member(line, "pg_name", group);
        }
    }

    fn dependencies(self, node: &WorkloadNode, found: Range<usize>, line: &mut String) {
        if self.span(node).is_none() {
            return;
        }
        let workload = self.linked.workload;
        let found = &workload.dependencies[found];
        let id = |found: &Dependency| workload.nodes[found.source].id;
        let of = |kind: DependencyKind| found.iter().filter(move |found| found.kind == kind);
        match of(DependencyKind::Handover).next() {
            Some(handed) => member(line, "inter_thread_dep", id(handed)),
            None => member(line, "inter_thread_dep", "null"),
        }
        if node.kind != NodeKind::Device {
            member(line, "sync_dep", "[");
            for found in of(DependencyKind::Sync) {
                append(line, id(found));
            }
            line.push(']');
        }
        member(line, "dependencies", "[");
        let is_written =
            |found: &&Dependency| self.gaps || !is_added(&workload.nodes[found.source]);
        for found in found.iter().filter(is_written) {
            let kind = DependencyKind::NAMES[found.kind as usize];
            let evidence = found.evidence.name();
            append(line, format_args!("[{}, \"{kind}\", \"{evidence}\"]", id(found)));
        }
        line.push(']');
    }
}

/// Appends a list item, after a comma if needed.
fn append(line: &mut String, item: impl Display) {
    let before = line.len();
    let is_first = line.is_empty() || line.ends_with(['[', '{']);
    if !is_first {
        line.push_str(", ");
    }
    let behind = line.len();
    // Writing to a string in memory cannot fail.
    let _ = write!(line, "{item}");
    if line.len() == behind {
        line.truncate(before);
    }
}

fn member(line: &mut String, name: &str, value: impl Display) {
    append(line, format_args!("\"{name}\": {value}"));
}

fn text_member(line: &mut String, name: &str, text: &str) {
    member(line, name, Quoted(text));
}

fn attribute(line: &mut String, name: &str, kind: &str, value: impl Display) {
    append(
        line,
        format_args!("{{\"name\": \"{name}\", \"type\": \"{kind}\", \"value\": {value}}}"),
    );
}

/// A string in quotation marks, with escapes.
struct Quoted<'a>(&'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_plain = |byte: u8| byte >= b' ' && byte != b'"' && byte != b'\\';
        if self.0.bytes().all(is_plain) {
            write!(f, "\"{}\"", self.0)
        } else {
            write!(f, "{}", serde_json::Value::from(self.0))
        }
    }
}

/// Microseconds with nanoseconds as decimals.
struct Micros(i64);

impl Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let (whole, rest) = (self.0.unsigned_abs() / 1_000, self.0.unsigned_abs() % 1_000);
        match rest {
            0 => write!(f, "{sign}{whole}"),
            _ => write!(f, "{sign}{whole}.{rest:03}"),
        }
    }
}
