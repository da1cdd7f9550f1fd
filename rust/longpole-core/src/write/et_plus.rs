//! A workload as an ET+ file: the execution trace with times, dependencies and device work.
//!
//! Names are those of Chakra's linker: `inclusive_dur`, `exclusive_dur` and `ts` in us,
//! `inter_thread_dep`, `sync_dep`, and on device work `cat`, `ph` and `stream`. The nodes
//! are spelled as the execution trace spells its own. Beside these stand `blocked_dur`, the
//! waiting inside `exclusive_dur`, and `dependencies`, each with its kind and evidence.

use std::io::{self, Write};
use std::ops::Range;

use crate::tables::{given, ExecutionNode, NodeLayout, NodeValues};
use crate::workload::{Dependency, DependencyKind, Linked, NodeKind, WorkloadNode};

/// What an ET+ file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Everything that is known.
    Full,
    /// The members and nodes that Chakra's linker writes: no gaps, and device work with the
    /// inputs and outputs of the operator that launched it.
    Chakra,
}

/// Writes a workload.
///
/// # Errors
///
/// Those of `out`.
pub fn et_plus(linked: Linked<'_>, extent: Extent, out: &mut dyn Write) -> io::Result<()> {
    let header = &linked.trace.header;
    let (before, behind): (Vec<_>, Vec<_>) =
        header.fields.iter().partition(|(name, _)| name != "finish_ts");
    write!(out, "{{")?;
    for (name, text) in before {
        write!(out, "\n  {}: {text},", quoted(name))?;
    }
    write!(out, "\n  \"nodes\": [")?;
    nodes(linked, extent, out)?;
    write!(out, "\n  ]")?;
    for (name, text) in behind {
        write!(out, ",\n  {}: {text}", quoted(name))?;
    }
    writeln!(out, "\n}}")
}

fn nodes(linked: Linked<'_>, extent: Extent, out: &mut dyn Write) -> io::Result<()> {
    let workload = linked.workload;
    let mut next = 0;
    let mut separator = "";
    for (row, node) in workload.nodes.iter().enumerate() {
        let from = next;
        while workload.dependencies.get(next).is_some_and(|found| found.target == row) {
            next += 1;
        }
        if extent == Extent::Chakra && node.kind == NodeKind::Gap {
            continue;
        }
        let text = Line { linked, extent }.node(node, from..next);
        write!(out, "{separator}\n    {{{text}}}")?;
        separator = ",";
    }
    Ok(())
}

#[derive(Clone, Copy)]
struct Line<'a> {
    linked: Linked<'a>,
    extent: Extent,
}

impl Line<'_> {
    fn node(self, node: &WorkloadNode, dependencies: Range<usize>) -> String {
        let record = &self.linked.trace.nodes[node.row];
        let layout = self.linked.trace.header.layout;
        let mut members =
            vec![member("id", node.id), member("name", quoted(self.linked.name(node)))];
        let around = if layout == NodeLayout::Flat { "parent" } else { "ctrl_deps" };
        members.push(member(around, self.around(node)));
        members.extend(self.lists(node, record));
        members.extend(self.attributes(record, layout));
        if node.kind == NodeKind::Operator {
            members.push(self.text(record.members).to_owned());
        }
        members.extend(self.times(node));
        members.extend(self.dependencies(node, dependencies));
        members.retain(|member| !member.is_empty());
        members.join(", ")
    }

    fn text(&self, id: crate::ids::StringId) -> &str {
        self.linked.trace.strings.get(id)
    }

    fn around(self, node: &WorkloadNode) -> i64 {
        let record = &self.linked.trace.nodes[node.row];
        if node.kind == NodeKind::Device {
            record.id
        } else {
            record.parent
        }
    }

    fn lists(self, node: &WorkloadNode, record: &ExecutionNode) -> Vec<String> {
        let is_given = node.kind == NodeKind::Operator
            || (node.kind == NodeKind::Device && self.extent == Extent::Chakra);
        let sides = [("inputs", record.inputs), ("outputs", record.outputs)];
        let lists = sides.map(|(side, values)| self.side(side, values, is_given));
        lists.concat()
    }

    /// The lists of one side; empty ones where the node has none of its own.
    fn side(self, side: &str, values: NodeValues, is_given: bool) -> Vec<String> {
        let parts = [
            ("values", values.values),
            ("shapes", values.shapes),
            ("types", values.types),
            ("strides", values.strides),
        ];
        let parts = parts.map(|(name, id)| (name, self.text(id)));
        let parts = parts.iter().filter(|(_, text)| !text.is_empty());
        let list = |text: &str| if is_given { text.to_owned() } else { "[]".to_owned() };
        if self.linked.trace.header.layout == NodeLayout::Attributes {
            let parts: Vec<_> = parts.map(|(name, text)| member(name, list(text))).collect();
            return vec![member(side, format!("{{{}}}", parts.join(", ")))];
        }
        let flat = |name: &str| match name {
            "values" => side.to_owned(),
            _ => format!("{}_{name}", side.trim_end_matches('s')),
        };
        parts.map(|(name, text)| member(&flat(name), list(text))).collect()
    }

    fn attributes(self, record: &ExecutionNode, layout: NodeLayout) -> Vec<String> {
        let numbers = [
            ("rf_id", "uint64", record.rf_id),
            ("fw_parent", "uint64", record.fw_parent),
            ("seq_id", "int64", record.seq_id),
            ("scope", "uint64", record.scope),
            ("tid", "uint64", record.tid),
            ("fw_tid", "uint64", record.fw_tid),
        ];
        let numbers = numbers.iter().filter_map(|&(name, kind, value)| {
            given(value).map(|value| (name, kind, value.to_string()))
        });
        let schema = quoted(self.text(record.op_schema));
        let all = numbers.chain([("op_schema", "string", schema)]);
        if layout == NodeLayout::Flat {
            return all.map(|(name, _, value)| member(name, value)).collect();
        }
        let objects = all.map(|(name, kind, value)| {
            format!("{{\"name\": \"{name}\", \"type\": \"{kind}\", \"value\": {value}}}")
        });
        let others = self.text(record.attributes);
        let objects: Vec<_> =
            objects.chain((!others.is_empty()).then(|| others.to_owned())).collect();
        vec![member("attrs", format!("[{}]", objects.join(", ")))]
    }

    fn times(self, node: &WorkloadNode) -> Vec<String> {
        let Some((start_ns, end_ns)) = node.span else { return Vec::new() };
        let mut members = vec![
            member("inclusive_dur", micros(end_ns - start_ns)),
            member("exclusive_dur", micros(node.self_ns)),
            member("ts", micros(start_ns)),
        ];
        if self.extent == Extent::Full {
            members.push(member("blocked_dur", micros(node.blocked_ns)));
        }
        if node.kind == NodeKind::Gap {
            members.push(member("gap", true));
        }
        members.extend(self.device(node));
        members
    }

    /// What only device work has.
    fn device(self, node: &WorkloadNode) -> Vec<String> {
        let tables = self.linked.tables;
        let event = node.event.filter(|_| node.kind == NodeKind::Device);
        let Some(event) = event else { return Vec::new() };
        let category = tables.events.category(event);
        let category = category.map_or("kernel", |category| tables.strings.get(category));
        let place = tables.lanes.place(tables.events.lane(event));
        let numbers = [
            ("stream", place.stream),
            ("device", place.device),
            ("correlation", tables.events.correlation(event)),
        ];
        let wanted = if self.extent == Extent::Full { 3 } else { 1 };
        let numbers = numbers[..wanted].iter();
        let numbers = numbers.filter_map(|&(name, value)| Some(member(name, value?)));
        let group = crate::tables::argument_text(event, "Process Group Name", tables);
        [member("cat", quoted(category)), member("ph", "\"X\"")]
            .into_iter()
            .chain(numbers)
            .chain(group.map(|group| member("pg_name", quoted(group))))
            .collect()
    }

    fn dependencies(self, node: &WorkloadNode, found: Range<usize>) -> Vec<String> {
        if node.span.is_none() {
            return Vec::new();
        }
        let workload = self.linked.workload;
        let found = &workload.dependencies[found];
        let id = |found: &Dependency| workload.nodes[found.source].id;
        let of = |kind: DependencyKind| found.iter().filter(move |found| found.kind == kind);
        let synced: Vec<_> = of(DependencyKind::Sync).map(|found| id(found).to_string()).collect();
        let handed = of(DependencyKind::Handover).map(|found| id(found).to_string()).next();
        let mut members = Vec::new();
        if node.kind != NodeKind::Device || self.extent == Extent::Chakra {
            let handed = handed.unwrap_or_else(|| "null".to_owned());
            members.push(member("inter_thread_dep", handed));
        }
        if node.kind != NodeKind::Device {
            members.push(member("sync_dep", format!("[{}]", synced.join(", "))));
        }
        if self.extent == Extent::Full {
            let all: Vec<_> = found
                .iter()
                .map(|found| {
                    let kind = DependencyKind::NAMES[found.kind as usize];
                    format!("[{}, \"{kind}\", \"{}\"]", id(found), found.evidence.name())
                })
                .collect();
            members.push(member("dependencies", format!("[{}]", all.join(", "))));
        }
        members
    }
}

fn member(name: &str, value: impl std::fmt::Display) -> String {
    format!("\"{name}\": {value}")
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Microseconds with the nanoseconds behind the point.
fn micros(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let (whole, rest) = (ns.unsigned_abs() / 1_000, ns.unsigned_abs() % 1_000);
    if rest == 0 {
        format!("{sign}{whole}")
    } else {
        format!("{sign}{whole}.{rest:03}")
    }
}
