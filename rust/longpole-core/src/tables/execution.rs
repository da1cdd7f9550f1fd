//! The nodes of an execution trace as columns: operators with inputs, outputs and control parents.
//!
//! An execution trace says what depends on what and has no times; linking it to a trace gives them.

use std::sync::Arc;

use crate::diagnostics::Diagnostics;
use crate::ids::{NO_INTEGER, StringId};
use crate::strings::Strings;

/// Ids of nodes are below: above them begin the ids of device work and of gaps in a graph.
pub const NODE_IDS_BELOW: i64 = 1 << 40;

/// One node of a PyTorch execution trace: an operator or a `record_function` range, with
/// what went in and came out, and without times.
///
/// Numbers that the file does not give are [`NO_INTEGER`]. Lists are kept as the JSON
/// text of the file: most nodes are never asked for theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExecutionNode {
    /// Its id; nodes, tensors and storages are counted by one counter.
    pub id: i64,
    /// Its name.
    pub name: StringId,
    /// The id of the node around it (`parent` or `ctrl_deps`); the process root is its own.
    pub parent: i64,
    /// The number of its record function, which the profiler writes as
    /// `Record function id`.
    pub rf_id: i64,
    /// The node of the forward thread it belongs to.
    pub fw_parent: i64,
    /// The sequence number of autograd.
    pub seq_id: i64,
    /// The kind of its record function: 0 function, 1 backward, 7 user.
    pub scope: i64,
    /// The thread, by a small number of the trace's own.
    pub tid: i64,
    /// The forward thread.
    pub fw_tid: i64,
    /// The schema of the operator; empty for ranges.
    pub op_schema: StringId,
    /// What went in.
    pub inputs: NodeValues,
    /// What came out.
    pub outputs: NodeValues,
    /// The attributes without a column here: JSON objects with commas between them
    /// (members of the node, in the flat layout).
    pub attributes: StringId,
    /// The members of the node without a column here, as JSON text.
    pub members: StringId,
}

/// The four lists that describe the inputs or outputs of a node, as JSON text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeValues {
    /// The values; a tensor is `[id, storage id, offset, elements, item size, device]`.
    pub values: StringId,
    /// The shapes.
    pub shapes: StringId,
    /// The types.
    pub types: StringId,
    /// The strides; empty where the schema has none.
    pub strides: StringId,
}

/// How a file spells its nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NodeLayout {
    /// Every fact is a member of the node (schema 1.0.1).
    Flat,
    /// Numbers and texts stand in a list `attrs` (schema 1.0.2 and later).
    #[default]
    Attributes,
}

/// What an execution trace says about itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExecutionHeader {
    /// The version of the format.
    pub schema: String,
    /// The process that wrote it.
    pub pid: Option<i64>,
    /// Every member of the document beside the nodes: its name and its JSON text.
    pub fields: Vec<(String, String)>,
    /// How the nodes are spelled.
    pub layout: NodeLayout,
}

impl ExecutionHeader {
    /// Takes a member of the document.
    pub(crate) fn keep(&mut self, name: String, text: String) {
        match name.as_str() {
            "schema" => text.trim_matches('"').clone_into(&mut self.schema),
            "pid" => self.pid = text.parse().ok(),
            _ => {}
        }
        self.fields.push((name, text));
    }
}

/// A PyTorch execution trace: its nodes in order of their ids.
#[derive(Debug, Clone, Default)]
pub struct ExecutionTrace {
    /// Every name, schema and list.
    pub strings: Arc<Strings>,
    /// The nodes, by id; no two have the same.
    pub nodes: Arc<Vec<ExecutionNode>>,
    /// What the file says about itself.
    pub header: Arc<ExecutionHeader>,
    /// What was found wrong.
    pub diagnostics: Diagnostics,
    /// Bytes of the uncompressed document.
    pub bytes: u64,
}

/// Parts of the names of the nodes that PyTorch puts around all others.
const ROOTS: [(&str, Root); 2] = [("|process]", Root::Process), ("|thread]", Root::Thread)];

/// A node that stands for a process or a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Root {
    /// The process.
    Process,
    /// A thread.
    Thread,
}

impl ExecutionTrace {
    /// The row of the node with an id.
    pub fn row(&self, id: i64) -> Option<usize> {
        self.nodes.binary_search_by_key(&id, |node| node.id).ok()
    }

    /// The row of the node around a node; none for the process root, and where the
    /// file does not hold it.
    pub fn parent(&self, row: usize) -> Option<usize> {
        let node = &self.nodes[row];
        self.row(node.parent).filter(|&parent| parent != row)
    }

    /// The name of a node.
    pub fn name(&self, row: usize) -> &str {
        self.strings.get(self.nodes[row].name)
    }

    /// Whether a node stands for a process or a thread.
    pub fn root(&self, row: usize) -> Option<Root> {
        let name = self.name(row);
        if !name.starts_with("[pytorch|profiler|execution_") {
            return None;
        }
        ROOTS.iter().find(|(end, _)| name.ends_with(end)).map(|&(_, root)| root)
    }

    /// The JSON text of an attribute or member that has no column.
    pub fn extra(&self, row: usize, name: &str) -> Option<serde_json::Value> {
        let node = &self.nodes[row];
        let attributes = self.strings.get(node.attributes);
        member(self.strings.get(node.members), name)
            .or_else(|| attribute(attributes, name))
            .or_else(|| member(attributes, name))
    }
}

fn member(members: &str, name: &str) -> Option<serde_json::Value> {
    if !members.contains(name) {
        return None;
    }
    let all: serde_json::Value = serde_json::from_str(&format!("{{{members}}}")).ok()?;
    all.get(name).cloned()
}

fn attribute(attributes: &str, name: &str) -> Option<serde_json::Value> {
    if !attributes.contains(name) {
        return None;
    }
    let all: Vec<serde_json::Value> = serde_json::from_str(&format!("[{attributes}]")).ok()?;
    all.iter().find(|one| one["name"] == name).map(|one| one["value"].clone())
}

/// A number of a node, if the file gives it.
pub fn given(number: i64) -> Option<i64> {
    (number != NO_INTEGER).then_some(number)
}
