//! Chakra graphs as stored in their files (`et_def.proto`).

/// A node of a Chakra graph (`et_def.proto`).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ChakraNode {
    /// Its id.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// Its type, as a number of the schema; see [`NODE_TYPES`].
    pub node_type: u64,
    /// Ids of enclosing nodes.
    pub control: Vec<u64>,
    /// Ids of nodes that must end before it starts.
    pub data: Vec<u64>,
    /// Start time in us.
    pub start_us: u64,
    /// Duration in us.
    pub duration_us: u64,
    /// Values, shapes and types of the inputs.
    pub inputs: [String; 3],
    /// Values, shapes and types of the outputs.
    pub outputs: [String; 3],
    /// Its attributes, in file order.
    pub attributes: Vec<(String, ChakraValue)>,
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub enum ChakraValue {
    /// An integer of any type.
    Integer(i64),
    /// An unsigned integer above the signed range.
    Unsigned(u64),
    /// A floating-point number of any type.
    Float(f64),
    /// A boolean.
    Bool(bool),
    /// A string.
    Text(String),
    /// A list of integers.
    Integers(Vec<i64>),
    /// Any other type, by field number.
    Other(u64),
}

impl std::fmt::Display for ChakraValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Integer(value) => write!(f, "{value}"),
            Self::Unsigned(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value}"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Text(value) => write!(f, "{value}"),
            Self::Integers(values) => write!(f, "{values:?}"),
            Self::Other(field) => write!(f, "(field {field})"),
        }
    }
}

/// A Chakra graph.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ChakraTrace {
    /// The version in the global metadata.
    pub version: String,
    /// The attributes of the global metadata.
    pub attributes: Vec<(String, ChakraValue)>,
    /// The nodes, in file order.
    pub nodes: Vec<ChakraNode>,
    /// Number of bytes after the last complete message.
    pub trailing_bytes: u64,
}

/// The names of node types, by number.
pub const NODE_TYPES: [&str; 11] = [
    "INVALID_NODE",
    "METADATA_NODE",
    "MEM_LOAD_NODE",
    "MEM_STORE_NODE",
    "COMP_NODE",
    "COMM_SEND_NODE",
    "COMM_RECV_NODE",
    "COMM_COLL_NODE",
    "STORAGE_NODE",
    "BATCH_NODE",
    "CHECKPOINT_NODE",
];

/// The type of a node that describes the job.
pub const METADATA: u64 = 1;
/// The type of a compute node.
pub const COMPUTE: u64 = 4;
/// The type of a node that sends to one rank.
pub const SEND: u64 = 5;
/// The type of a node that receives from one rank.
pub const RECEIVE: u64 = 6;
/// The type of a collective node.
pub const COLLECTIVE: u64 = 7;

impl ChakraNode {
    /// Returns an attribute by name.
    pub fn attribute(&self, name: &str) -> Option<&ChakraValue> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Returns an integer attribute.
    pub fn integer(&self, name: &str) -> Option<i64> {
        match self.attribute(name)? {
            ChakraValue::Integer(value) => Some(*value),
            ChakraValue::Unsigned(value) => i64::try_from(*value).ok(),
            _ => None,
        }
    }

    /// Returns a string attribute.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.attribute(name)? {
            ChakraValue::Text(value) => Some(value),
            _ => None,
        }
    }

    /// Returns a boolean attribute.
    pub fn flag(&self, name: &str) -> Option<bool> {
        match self.attribute(name)? {
            ChakraValue::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// Whether the node communicates with other ranks.
    pub fn communicates(&self) -> bool {
        matches!(self.node_type, SEND | RECEIVE | COLLECTIVE)
    }
}
