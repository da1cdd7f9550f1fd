//! The reduced form of a rank, small enough for a thousand ranks in memory.

use crate::ids::InColumn;
use crate::measure::Group;
use crate::names::named;
use crate::tables::NO_INTEGER;
use crate::vocabulary::{Collective, DataType};

/// The beginning of the recording, as a source.
pub const ROOT: u32 = u32::MAX;

/// The whole trace, in place of the index of a step.
pub const WHOLE: u32 = u32::MAX;

/// An optional integer in eight bytes, because there are millions of members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Maybe(i64);

impl Maybe {
    /// None.
    pub const NONE: Self = Self(NO_INTEGER);

    /// Returns the integer, or `None`.
    pub fn get(self) -> Option<i64> {
        (self.0 != NO_INTEGER).then_some(self.0)
    }
}

impl From<Option<i64>> for Maybe {
    fn from(value: Option<i64>) -> Self {
        Self(value.in_column())
    }
}

/// Groups the calls of a rank that have no call id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Channel {
    /// A process group, by index among those of the rank.
    Group(u32),
    /// A stream without a named group, by index among these.
    Stream(u32),
    /// The threads of a CPU library.
    Cpu,
}

/// The part of one rank in a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// The row of its kernel or range in the events of its trace.
    pub event: u32,
    /// Arrival time, by the clock of its rank.
    pub start_ns: i64,
    /// End time, by the clock of its rank.
    pub end_ns: i64,
    /// The step in which it was called, if known.
    pub step: Maybe,
    /// Sequence number within the group or pair.
    pub sequence: Maybe,
    /// Hash of the call id that all ranks record; 0 for none.
    pub id: u64,
    /// The rank that it sends to or receives from.
    pub peer: Maybe,
    /// Number of input elements.
    pub in_elements: Maybe,
    /// Size of the larger buffer in bytes.
    pub bytes: Maybe,
    /// The channel of the call.
    pub channel: Channel,
    /// The operation.
    pub operation: Option<Collective>,
    /// Whether the operation is recorded by more than the name of a kernel.
    pub is_recorded: bool,
    /// The data type of the elements.
    pub data_type: Option<DataType>,
}

/// The kind of a boundary node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoundaryKind {
    /// Arrival of a member.
    Arrival(u32),
    /// End of a member.
    End(u32),
    /// A node with many sources, kept as a boundary so that the source maps stay small.
    Cut,
    /// Completion of a step, by its index among the steps of the rank, or of the trace ([`WHOLE`]).
    Completion(u32),
}

/// A node of a rank's graph that affects other ranks, or that keeps the reduced graph small.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Boundary {
    /// The kind of the node.
    pub kind: BoundaryKind,
    /// The node in the graph of the rank; for a completion, the candidate that came last.
    pub node: u32,
    /// The time of the node, by the clock of the rank.
    pub time_ns: i64,
    /// The boundary node to which its binding edges lead back, or [`ROOT`].
    pub bound_by: u32,
    /// For the end of a member: when everything it waited for besides its own arrival had finished.
    pub others_ns: i64,
    /// For an unmatched collective: latency from its own arrival to its end.
    pub own_ns: i64,
    /// Its first row in the minimum latencies.
    pub first: u32,
}

/// One rank's graph, reduced to nodes that affect other ranks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reduced {
    /// The boundary nodes, in topological order.
    pub nodes: Vec<Boundary>,
    /// The boundary nodes from which each node can be reached without passing another; those of
    /// node `n` start at `nodes[n].first`.
    pub sources: Vec<u32>,
    /// The maximum minimum latency from each source; for [`ROOT`], a time.
    pub latencies_ns: Vec<i64>,
}

/// One reduced rank.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rank {
    /// The rank number, if recorded in the file.
    pub rank: Option<i64>,
    /// The world size.
    pub world_size: Option<i64>,
    /// The host name.
    pub host: Option<String>,
    /// The base of its times in ns since 1970; 0 if times are absolute.
    pub base_ns: i64,
    /// The window of the whole trace.
    pub window_ns: (i64, i64),
    /// Start of the program: the first step, otherwise the first event of a main thread.
    pub entry_ns: i64,
    /// The numbers of its steps.
    pub steps: Vec<i64>,
    /// Its process groups.
    pub groups: Vec<Group>,
    /// Its members of calls, in call order.
    pub members: Vec<Member>,
    /// Its reduced graph.
    pub reduced: Reduced,
}

impl Reduced {
    /// Returns the sources of a node, with their minimum latencies.
    pub fn reaching(&self, node: usize) -> impl Iterator<Item = (u32, i64)> + '_ {
        let range = self.range(node);
        self.sources[range.clone()].iter().copied().zip(self.latencies_ns[range].iter().copied())
    }

    /// Returns the minimum latency from one boundary node to another, if stored.
    pub(super) fn latency_ns(&self, source: u32, node: u32) -> Option<i64> {
        let range = self.range(node as usize);
        let at = self.sources[range.clone()].binary_search(&source).ok()?;
        Some(self.latencies_ns[range.start + at])
    }

    fn range(&self, node: usize) -> std::ops::Range<usize> {
        let behind = self.nodes.get(node + 1).map_or(self.sources.len(), |it| it.first as usize);
        self.nodes[node].first as usize..behind
    }

    /// Returns the size in bytes.
    pub fn n_bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Boundary>()
            + self.sources.capacity() * size_of::<u32>()
            + self.latencies_ns.capacity() * size_of::<i64>()
    }
}

impl Rank {
    /// Returns the arrival and end nodes of each member.
    pub fn nodes_of_members(&self) -> Vec<(u32, u32)> {
        let mut found = vec![(ROOT, ROOT); self.members.len()];
        for (place, node) in self.reduced.nodes.iter().enumerate() {
            let place = crate::ids::row_in_column(place);
            match node.kind {
                BoundaryKind::Arrival(member) => found[member as usize].0 = place,
                BoundaryKind::End(member) => found[member as usize].1 = place,
                BoundaryKind::Cut | BoundaryKind::Completion(_) => {}
            }
        }
        found
    }

    /// Returns the number of a step, by index; `None` for the whole trace.
    pub fn step(&self, place: u32) -> Option<i64> {
        self.steps.get(place as usize).copied()
    }

    /// Returns the node at which a step, or the whole trace, completes.
    pub fn completion(&self, step: Option<i64>) -> Option<usize> {
        let place = match step {
            Some(step) => {
                crate::ids::row_in_column(self.steps.iter().position(|&known| known == step)?)
            }
            None => WHOLE,
        };
        self.reduced.nodes.iter().position(|node| node.kind == BoundaryKind::Completion(place))
    }

    /// Returns the size in bytes.
    pub fn n_bytes(&self) -> usize {
        self.reduced.n_bytes() + self.members.capacity() * size_of::<Member>()
    }
}

impl Boundary {
    /// Creates a node with unset values.
    pub(super) fn new(kind: BoundaryKind, node: u32, time_ns: i64) -> Self {
        Self {
            kind,
            node,
            time_ns,
            bound_by: ROOT,
            others_ns: NO_INTEGER,
            own_ns: NO_INTEGER,
            first: 0,
        }
    }
}

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

/// The conversion of the clock of a rank to that of the first: `t + offset + drift (t - origin)`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Clock {
    /// Offset added to its times.
    pub offset_ns: i64,
    /// Drift: nanoseconds added per nanosecond since `origin_ns`.
    pub drift: f64,
    /// The time at which drift is zero, by the clock of the rank.
    pub origin_ns: i64,
    /// The part of `offset_ns` that is recorded in the files.
    pub base_ns: i64,
    /// Median of the remaining differences of its ends.
    pub residual_ns: i64,
    /// Largest of these differences.
    pub worst_residual_ns: i64,
    /// Bound of the remaining clock error relative to the first rank, between the calls.
    pub bound_ns: i64,
    /// The same bound for the whole recording: drift before the first call and after the last is
    /// unknown.
    pub edge_bound_ns: i64,
    /// Number of calls used for the fit.
    pub n_calls: usize,
    /// Whether calls connect it to the first rank, directly or through other ranks.
    pub is_connected: bool,
}

impl Clock {
    /// Converts a time of the rank to common time.
    pub fn common_ns(&self, time_ns: i64) -> i64 {
        time_ns + self.offset_ns + rounded(self.drift * float(time_ns - self.origin_ns))
    }

    /// Converts a duration of the rank to common time.
    pub fn scaled_ns(&self, duration_ns: i64) -> i64 {
        duration_ns + rounded(self.drift * float(duration_ns))
    }
}

#[allow(clippy::cast_precision_loss)] // times within a trace, of which 53 bits are 104 days
pub(super) fn float(value: i64) -> f64 {
    value as f64
}

#[allow(clippy::cast_possible_truncation)] // fits: it was a time
pub(super) fn rounded(value: f64) -> i64 {
    value.round() as i64
}
