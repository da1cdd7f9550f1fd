//! The nodes of an execution trace as columns: operators with inputs, outputs and control parents.
//!
//! An execution trace contains dependencies but no times; linking it to a trace adds them.

use std::sync::Arc;

use crate::diagnostics::Diagnostics;
use crate::ids::{NO_INTEGER, StringId};
use crate::strings::Strings;

/// Upper bound of the ids of nodes: ids of GPU activities and of gaps in a graph begin there.
pub const NODE_IDS_BELOW: i64 = 1 << 40;

/// A node of a PyTorch execution trace: an operator or a `record_function` range, with inputs and
/// outputs, and without times.
///
/// Missing numbers are [`NO_INTEGER`]. Lists are kept as JSON text, because those of most nodes are
/// never needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExecutionNode {
    /// Its id; nodes, tensors and storages share one counter.
    pub id: i64,
    /// Its name.
    pub name: StringId,
    /// The id of the enclosing node (`parent` or `ctrl_deps`); the process root is its own parent.
    pub parent: i64,
    /// The id of its record function, which the profiler writes as `Record function id`.
    pub rf_id: i64,
    /// The corresponding node of the forward thread.
    pub fw_parent: i64,
    /// The autograd sequence number.
    pub seq_id: i64,
    /// The kind of its record function: 0 function, 1 backward, 7 user.
    pub scope: i64,
    /// The thread, as a small number assigned by the trace.
    pub tid: i64,
    /// The forward thread.
    pub fw_tid: i64,
    /// The schema of the operator; empty for ranges.
    pub op_schema: StringId,
    /// The inputs.
    pub inputs: NodeValues,
    /// The outputs.
    pub outputs: NodeValues,
    /// The attributes without a column: JSON objects separated by commas (in the flat layout,
    /// members of the node).
    pub attributes: StringId,
    /// The members of the node without a column, as JSON text.
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
    /// The strides; empty if the schema has none.
    pub strides: StringId,
}

/// The layout of nodes in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NodeLayout {
    /// All values are members of the node (schema 1.0.1).
    Flat,
    /// Numbers and strings are in a list `attrs` (schema 1.0.2 and later).
    #[default]
    Attributes,
}

/// The metadata of an execution trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExecutionHeader {
    /// The version of the format.
    pub schema: String,
    /// The process that wrote it.
    pub pid: Option<i64>,
    /// Every member of the document except the nodes, as name and JSON text.
    pub fields: Vec<(String, String)>,
    /// The layout of the nodes.
    pub layout: NodeLayout,
}

impl ExecutionHeader {
    /// Stores a member of the document.
    pub(crate) fn keep(&mut self, name: String, text: String) {
        match name.as_str() {
            "schema" => text.trim_matches('"').clone_into(&mut self.schema),
            "pid" => self.pid = text.parse().ok(),
            _ => {}
        }
        self.fields.push((name, text));
    }
}

/// A PyTorch execution trace, with its nodes sorted by id.
#[derive(Debug, Clone, Default)]
pub struct ExecutionTrace {
    /// All names, schemas and lists.
    pub strings: Arc<Strings>,
    /// The nodes, sorted by id; ids are unique.
    pub nodes: Arc<Vec<ExecutionNode>>,
    /// The metadata of the file.
    pub header: Arc<ExecutionHeader>,
    /// The problems found.
    pub diagnostics: Diagnostics,
    /// Size of the uncompressed document in bytes.
    pub bytes: u64,
}

/// Parts of the names of PyTorch's root nodes.
const ROOTS: [(&str, Root); 2] = [("|process]", Root::Process), ("|thread]", Root::Thread)];

/// The kind of a root node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Root {
    /// The process.
    Process,
    /// A thread.
    Thread,
}

impl ExecutionTrace {
    /// Returns the row of the node with an id.
    pub fn row(&self, id: i64) -> Option<usize> {
        self.nodes.binary_search_by_key(&id, |node| node.id).ok()
    }

    /// Returns the row of the enclosing node; `None` for the process root, and if it is not in the
    /// file.
    pub fn parent(&self, row: usize) -> Option<usize> {
        let node = &self.nodes[row];
        self.row(node.parent).filter(|&parent| parent != row)
    }

    /// Returns the name of a node.
    pub fn name(&self, row: usize) -> &str {
        self.strings.get(self.nodes[row].name)
    }

    /// Returns the kind of a root node; `None` for other nodes.
    pub fn root(&self, row: usize) -> Option<Root> {
        let name = self.name(row);
        if !name.starts_with("[pytorch|profiler|execution_") {
            return None;
        }
        ROOTS.iter().find(|(end, _)| name.ends_with(end)).map(|&(_, root)| root)
    }

    /// Returns the value of an attribute or member that has no column.
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

/// Returns a number of a node; `None` if it is missing.
pub fn given(number: i64) -> Option<i64> {
    (number != NO_INTEGER).then_some(number)
}
