//! A call of several ranks, and how its members were matched.

use crate::names::named;

named! {
    /// How members were matched, most reliable first.
    Method {
        /// By the call id that all ranks record.
        CallId "call_id",
        /// By the sequence number within the group.
        Sequence "sequence",
        /// By the pair of ranks, and the number or order within the pair.
        Pair "pair",
        /// By the order of calls (inferred).
        Order "order",
    }
}

/// One call of several ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Index of each rank, in order, and of its member.
    pub members: Vec<(u32, u32)>,
    /// How the members were matched.
    pub method: Method,
    /// The name of the process group.
    pub group: Option<String>,
    /// The sequence number within the group or pair.
    pub sequence: Option<i64>,
    /// Whether it is a message from one rank to another.
    pub is_pair: bool,
    /// Ranks of the group without a trace.
    pub absent: Vec<i64>,
    /// Number of participating ranks without a trace, including those with unknown numbers.
    pub n_absent: i64,
    /// Indices of ranks that should take part and have no such call.
    pub missing: Vec<u32>,
}
