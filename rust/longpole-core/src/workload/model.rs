//! The tables of a workload: nodes, dependencies, and what was left out.

use crate::graph::{Evidence, Graph};
use crate::ids::{EventId, LaneId};
use crate::link::{ExecutionLink, Launches};
use crate::names::named;
use crate::stack::Nesting;
use crate::tables::{ExecutionTrace, Tables};

named! {
    /// The kind of a workload node.
    NodeKind {
        /// A node of the execution trace.
        Operator "operator",
        /// Time of a thread between operators.
        Gap "gap",
        /// Work of an operator after a wait in it.
        AfterWait "after_wait",
        /// A GPU activity.
        Device "device",
    }
}

/// A node of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkloadNode {
    /// Its id: that of the execution trace, or a new one.
    pub id: i64,
    /// Its kind.
    pub kind: NodeKind,
    /// The row in the execution trace: of the node itself, of the operator that launched it, of the
    /// operator at which the gap ends, or of the one that waited.
    pub row: usize,
    /// The event; `None` for gaps and for nodes that are not in the trace.
    pub event: Option<EventId>,
    /// The thread or stream, if the node has times.
    pub lane: Option<LaneId>,
    /// Start and end.
    pub span: Option<(i64, i64)>,
    /// Work time: for operators, the self time without waiting; zero for labels that only contain
    /// others.
    pub work_ns: i64,
    /// Self time, including waiting.
    pub self_ns: i64,
    /// Waiting time within the self time.
    pub blocked_ns: i64,
}

/// An execution trace with times and dependencies. See [`workload`](crate::workload::workload).
#[derive(Debug, Clone, Default)]
pub struct Workload {
    /// The nodes, by id.
    pub nodes: Vec<WorkloadNode>,
    /// The dependencies, as rows of `nodes`, sorted by target.
    pub dependencies: Vec<Dependency>,
    /// GPU activities without a node, with the reason.
    pub unlinked: Vec<(EventId, DeviceReason)>,
    /// Dependencies that were left out.
    pub dropped: Dropped,
}

/// The input of a workload.
#[derive(Clone, Copy)]
pub struct Sources<'a> {
    /// The execution trace.
    pub trace: &'a ExecutionTrace,
    /// The Kineto trace.
    pub tables: &'a Tables,
    /// The event of each node.
    pub link: &'a ExecutionLink,
    /// The launch call of each GPU activity.
    pub launches: &'a Launches,
    /// The nesting of events.
    pub nesting: &'a Nesting,
    /// The dependency graph.
    pub graph: &'a Graph,
}

/// A workload with the files from which it was built.
#[derive(Clone, Copy)]
pub struct Linked<'a> {
    /// The execution trace.
    pub trace: &'a ExecutionTrace,
    /// The Kineto trace.
    pub tables: &'a Tables,
    /// The workload.
    pub workload: &'a Workload,
}

impl Linked<'_> {
    /// Returns the name of a node.
    pub fn name(&self, node: &WorkloadNode) -> &str {
        let event = node.event.and_then(|event| self.tables.events.name(event));
        match node.kind {
            NodeKind::Gap => "gap",
            NodeKind::Device => event.map_or("", |name| self.tables.strings.get(name)),
            NodeKind::Operator | NodeKind::AfterWait => self.trace.name(node.row),
        }
    }
}

named! {
    /// The reason for a dependency.
    DependencyKind {
        /// The source encloses the target.
        Control "control",
        /// The source precedes the target on its thread.
        ProgramOrder "program_order",
        /// The target reads a storage that the source was the last to write.
        Data "data",
        /// The source launched the target.
        Launch "launch",
        /// The source precedes the target on its stream.
        StreamOrder "stream_order",
        /// The stream of the target waited for an event after the source.
        EventWait "event_wait",
        /// The thread of the target was blocked until the source had ended.
        Sync "sync",
        /// The thread of the target found a queue full until the source had ended.
        QueueFull "queue_full",
        /// Handoff between the forward and the backward thread.
        Handover "thread_handoff",
    }
}

named! {
    /// What must have happened to the source before the target starts.
    Moment {
        /// It has begun.
        Start "start",
        /// It has ended.
        End "end",
    }
}

/// A dependency between two nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dependency {
    /// The row of the source.
    pub source: usize,
    /// The row of the target.
    pub target: usize,
    /// The reason.
    pub kind: DependencyKind,
    /// What must have happened to the source.
    pub after: Moment,
    /// How the dependency is known.
    pub evidence: Evidence,
    /// The source event that justifies it.
    pub source_event: Option<EventId>,
    /// The target event that justifies it: the blocking call, or the activity itself.
    pub target_event: Option<EventId>,
}

/// Dependencies that were left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Number of dependencies that contradict the measured times.
    pub against_time: u64,
    /// Number of dependencies whose source is not in the workload.
    pub source_outside: u64,
    /// Number of dependencies whose target is not in the workload, and has no successor there.
    pub target_outside: u64,
}

/// A GPU activity and its node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkedDevice {
    /// The id of its node.
    pub id: i64,
    /// The GPU activity.
    pub event: EventId,
    /// The launch call, if it is in the trace.
    pub call: Option<EventId>,
    /// The node of the execution trace that launched it.
    pub row: usize,
}

named! {
    /// Why a GPU activity has no node.
    DeviceReason {
        /// Its launch call is not in the trace.
        NoCall "call_not_in_trace",
        /// Its launch call ran outside all operators of the execution trace.
        OutsideOperators "outside_operators",
        /// It has no end, or ends before its start.
        NoDuration "no_duration",
    }
}

/// Number of nodes for the work of an operator after its waits; later work is added to the last.
pub(super) const MOST_AFTER_WAITS: i64 = 1 << 8;

/// Returns the id of the work of an operator after a wait, of which there may be several. It is
/// among the ids of gaps, and none of them.
pub(super) fn after_wait_id(operator: i64, place: i64) -> i64 {
    (1 << 52) + (1 << 48) + (place << 40) + operator
}

/// Returns the id of the gap before an operator, or after it if it is the last of its thread: above
/// all ids of nodes and GPU activities, and below 2^53.
pub(super) fn gap_id(operator: i64, is_last: bool, ends_waiting: bool) -> i64 {
    (1 << 52) + (i64::from(is_last) << 51) + (i64::from(ends_waiting) << 49) + operator
}
