//! What a rank is reduced to, so that it fits beside a thousand others.

use crate::ids::InColumn;
use crate::measure::Group;
use crate::tables::NO_INTEGER;
use crate::vocabulary::{Collective, DataType};

/// Stands for the beginning of the recording among sources.
pub const ROOT: u32 = u32::MAX;

/// Stands for the whole trace among the steps that are complete.
pub const WHOLE: u32 = u32::MAX;

/// An integer or none in eight bytes, for there are millions of members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Maybe(i64);

impl Maybe {
    /// None.
    pub const NONE: Self = Self(NO_INTEGER);

    /// The integer, if there is one.
    pub fn get(self) -> Option<i64> {
        (self.0 != NO_INTEGER).then_some(self.0)
    }
}

impl From<Option<i64>> for Maybe {
    fn from(value: Option<i64>) -> Self {
        Self(value.in_column())
    }
}

/// What tells the calls of a rank apart where they are not numbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Channel {
    /// A process group, by place among those of the rank.
    Group(u32),
    /// A stream without named group, by place among these.
    Stream(u32),
    /// The threads of a library on the CPU.
    Cpu,
}

/// The share of one rank in a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// The row of its kernel, or range, in the events of its trace.
    pub event: u32,
    /// When it arrived, by the clock of its rank.
    pub start_ns: i64,
    /// When it ended.
    pub end_ns: i64,
    /// The step in which it was called, where that is known.
    pub step: Maybe,
    /// Its number within the group or pair.
    pub sequence: Maybe,
    /// The number that all ranks give to the call, hashed; 0 for none.
    pub id: u64,
    /// The rank that it sends to or receives from.
    pub peer: Maybe,
    /// How many elements it gives.
    pub in_elements: Maybe,
    /// The bytes of the larger buffer.
    pub bytes: Maybe,
    /// Which calls it belongs to.
    pub channel: Channel,
    /// What it does.
    pub operation: Option<Collective>,
    /// Whether more than the name of a kernel says so.
    pub is_recorded: bool,
    /// The data type of the elements.
    pub data_type: Option<DataType>,
}

/// What a boundary node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoundaryKind {
    /// A member arrives.
    Arrival(u32),
    /// A member ends.
    End(u32),
    /// A node that many chains run through, made a boundary to keep the maps small.
    Cut,
    /// A step, by its place among the steps of the rank, or with [`WHOLE`] the trace is complete.
    Completion(u32),
}

/// A node of the graph of a rank that others can feel, or that keeps its reduction small.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Boundary {
    /// What it is.
    pub kind: BoundaryKind,
    /// The node in the graph of the rank; of a completion, the one that came last.
    pub node: u32,
    /// When it was, by the clock of the rank.
    pub time_ns: i64,
    /// The boundary node that its binding edges lead back to, or [`ROOT`].
    pub bound_by: u32,
    /// Of the end of a member, when the last of what else it waited for was over.
    pub others_ns: i64,
    /// Of the end of a member, what it takes from its own arrival where nobody else counts.
    pub own_ns: i64,
    /// Its first row among the minimum latencies.
    pub first: u32,
}

/// The graph of one rank, without all that nobody else can feel.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reduced {
    /// The boundary nodes, in an order in which every latency leads onward.
    pub nodes: Vec<Boundary>,
    /// From which boundary nodes each can be reached without passing another: those of node
    /// `n` from `nodes[n].first` on.
    pub sources: Vec<u32>,
    /// The greatest minimum latency from there; from [`ROOT`], a time.
    pub lags_ns: Vec<i64>,
}

/// One rank, reduced.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rank {
    /// Its number, where the file says so.
    pub rank: Option<i64>,
    /// How many there are.
    pub world_size: Option<i64>,
    /// The machine it ran on.
    pub host: Option<String>,
    /// What its times count from, in ns since 1970; 0 where they are absolute.
    pub base_ns: i64,
    /// The window of the whole trace.
    pub window_ns: (i64, i64),
    /// When its program begins: the first step, else the first work of a main thread.
    pub entry_ns: i64,
    /// The numbers of its steps.
    pub steps: Vec<i64>,
    /// Its process groups.
    pub groups: Vec<Group>,
    /// Its shares in calls, in the order in which it made them.
    pub members: Vec<Member>,
    /// Its graph.
    pub reduced: Reduced,
}

impl Reduced {
    /// The sources of a node and the minimum latencies from them.
    pub fn reaching(&self, node: usize) -> impl Iterator<Item = (u32, i64)> + '_ {
        let range = self.range(node);
        self.sources[range.clone()].iter().copied().zip(self.lags_ns[range].iter().copied())
    }

    /// The minimum latency from one boundary node to another, if that is stored.
    pub(super) fn lag_ns(&self, source: u32, node: u32) -> Option<i64> {
        let range = self.range(node as usize);
        let at = self.sources[range.clone()].binary_search(&source).ok()?;
        Some(self.lags_ns[range.start + at])
    }

    fn range(&self, node: usize) -> std::ops::Range<usize> {
        let behind = self.nodes.get(node + 1).map_or(self.sources.len(), |it| it.first as usize);
        self.nodes[node].first as usize..behind
    }

    /// Bytes that it takes.
    pub fn n_bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Boundary>()
            + self.sources.capacity() * size_of::<u32>()
            + self.lags_ns.capacity() * size_of::<i64>()
    }
}

impl Rank {
    /// The nodes at which a member arrives and ends.
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

    /// The number of a step by its place; none for the whole trace.
    pub fn step(&self, place: u32) -> Option<i64> {
        self.steps.get(place as usize).copied()
    }

    /// The node at which a step, or the whole trace, is complete.
    pub fn completion(&self, step: Option<i64>) -> Option<usize> {
        let place = match step {
            Some(step) => {
                crate::ids::row_in_column(self.steps.iter().position(|&known| known == step)?)
            }
            None => WHOLE,
        };
        self.reduced.nodes.iter().position(|node| node.kind == BoundaryKind::Completion(place))
    }

    /// Bytes that it takes.
    pub fn n_bytes(&self) -> usize {
        self.reduced.n_bytes() + self.members.capacity() * size_of::<Member>()
    }
}

impl Boundary {
    /// A node of which nothing but its place is known yet.
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
