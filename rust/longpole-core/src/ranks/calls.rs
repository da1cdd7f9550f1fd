//! What a call of several ranks is, and what says so.

use crate::names::named;

named! {
    /// What a match rests on, the surest first.
    Method {
        /// The number that all ranks give to the call.
        CallId "call_id",
        /// The number within the group.
        Sequence "sequence",
        /// The pair of ranks, and the number or order within it.
        Pair "pair",
        /// The order of the calls: inferred.
        Order "order",
    }
}

/// One call of several ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The place of each rank, in order, and of its member.
    pub members: Vec<(u32, u32)>,
    /// What says that they are one.
    pub method: Method,
    /// The name of the group.
    pub group: Option<String>,
    /// Its number within the group or pair.
    pub sequence: Option<i64>,
    /// Whether it is from one rank to another.
    pub is_pair: bool,
    /// Ranks of the group that are not among the traces.
    pub absent: Vec<i64>,
    /// How many ranks take part that are not among the traces, their numbers known or not.
    pub n_absent: i64,
    /// Places of ranks that should take part and have no such call.
    pub missing: Vec<u32>,
}
