//! Chakra graphs as their files hold them (`et_def.proto`).

/// One node of a Chakra graph (`et_def.proto`).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ChakraNode {
    /// Its id.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// What it is, as the number of the schema; see [`NODE_TYPES`].
    pub node_type: u64,
    /// Ids of nodes around it.
    pub control: Vec<u64>,
    /// Ids of nodes that must be over before it starts.
    pub data: Vec<u64>,
    /// When it started, in us.
    pub start_us: u64,
    /// How long it takes, in us.
    pub duration_us: u64,
    /// Values, shapes and types of what goes in.
    pub inputs: [String; 3],
    /// Values, shapes and types of what comes out.
    pub outputs: [String; 3],
    /// Its attributes, in the order of the file.
    pub attributes: Vec<(String, ChakraValue)>,
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub enum ChakraValue {
    /// A number of any of the integer types.
    Integer(i64),
    /// A number of the unsigned types beyond that.
    Unsigned(u64),
    /// A number of one of the floating-point types.
    Float(f64),
    /// Yes or no.
    Bool(bool),
    /// A text.
    Text(String),
    /// A list of integers.
    Integers(Vec<i64>),
    /// Any other kind, by the number of its field.
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

/// A Chakra graph, as a file holds it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ChakraTrace {
    /// The version in the global metadata.
    pub version: String,
    /// The attributes of the global metadata.
    pub attributes: Vec<(String, ChakraValue)>,
    /// The nodes, in the order of the file.
    pub nodes: Vec<ChakraNode>,
    /// Bytes behind the last whole message.
    pub trailing_bytes: u64,
}

/// The names of the types of nodes, by their number.
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

/// A node that describes the job.
pub const METADATA: u64 = 1;
/// A node that computes.
pub const COMPUTE: u64 = 4;
/// A node that sends to one rank.
pub const SEND: u64 = 5;
/// A node that receives from one rank.
pub const RECEIVE: u64 = 6;
/// A node of a collective.
pub const COLLECTIVE: u64 = 7;

impl ChakraNode {
    /// An attribute.
    pub fn attribute(&self, name: &str) -> Option<&ChakraValue> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// An attribute that is a number.
    pub fn integer(&self, name: &str) -> Option<i64> {
        match self.attribute(name)? {
            ChakraValue::Integer(value) => Some(*value),
            ChakraValue::Unsigned(value) => i64::try_from(*value).ok(),
            _ => None,
        }
    }

    /// An attribute that is a text.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.attribute(name)? {
            ChakraValue::Text(value) => Some(value),
            _ => None,
        }
    }

    /// An attribute that is yes or no.
    pub fn flag(&self, name: &str) -> Option<bool> {
        match self.attribute(name)? {
            ChakraValue::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// Whether it talks to other ranks.
    pub fn communicates(&self) -> bool {
        matches!(self.node_type, SEND | RECEIVE | COLLECTIVE)
    }
}
