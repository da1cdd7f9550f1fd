//! The columns of a workload: nodes, what they depend on, and what was left out.

use crate::graph::{Evidence, Graph};
use crate::ids::{EventId, LaneId};
use crate::link::{ExecutionLink, Launches};
use crate::names::named;
use crate::stack::Nesting;
use crate::tables::{ExecutionTrace, Tables};

named! {
    /// What a node of a workload is.
    NodeKind {
        /// A node of the execution trace.
        Operator "operator",
        /// Time of a thread between operators.
        Gap "gap",
        /// Work on a device.
        Device "device",
    }
}

/// One node of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkloadNode {
    /// Its id: that of the execution trace, or one that no such node has.
    pub id: i64,
    /// What it is.
    pub kind: NodeKind,
    /// The row in the execution trace: of the node itself, of the operator that launched
    /// it, or of the operator that the gap ends at.
    pub row: usize,
    /// The event; none for gaps and for nodes that were not found in the trace.
    pub event: Option<EventId>,
    /// The thread or stream, where the node has times.
    pub lane: Option<LaneId>,
    /// When it started and ended.
    pub span: Option<(i64, i64)>,
    /// How long it worked: for operators, the self time without waiting; for labels that
    /// only hold others, nothing.
    pub work_ns: i64,
    /// How long nothing inside it ran on its thread, waiting included.
    pub self_ns: i64,
    /// How long its thread waited while nothing inside it ran.
    pub blocked_ns: i64,
}

/// An execution trace with times and dependencies. See [`workload`](crate::workload::workload).
#[derive(Debug, Clone, Default)]
pub struct Workload {
    /// The nodes, by id.
    pub nodes: Vec<WorkloadNode>,
    /// What depends on what, as rows of `nodes`, by target.
    pub dependencies: Vec<Dependency>,
    /// Device work that stands under no node, with the reason.
    pub unlinked: Vec<(EventId, DeviceReason)>,
    /// Dependencies that were left out.
    pub dropped: Dropped,
}

/// What a workload is made from.
#[derive(Clone, Copy)]
pub struct Sources<'a> {
    /// The execution trace.
    pub trace: &'a ExecutionTrace,
    /// The Kineto trace.
    pub tables: &'a Tables,
    /// Which event each node is.
    pub link: &'a ExecutionLink,
    /// Which call launched what.
    pub launches: &'a Launches,
    /// Which event encloses which.
    pub nesting: &'a Nesting,
    /// What waited for what.
    pub graph: &'a Graph,
}

/// A workload beside the files it comes from.
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
    /// What a node is called.
    pub fn name(&self, node: &WorkloadNode) -> &str {
        let event = node.event.and_then(|event| self.tables.events.name(event));
        match node.kind {
            NodeKind::Gap => "gap",
            NodeKind::Device => event.map_or("", |name| self.tables.strings.get(name)),
            NodeKind::Operator => self.trace.name(node.row),
        }
    }
}

named! {
    /// Why a node depends on another one.
    DependencyKind {
        /// The source is the node around the target.
        Control "control",
        /// The source came before the target on its thread.
        ProgramOrder "program_order",
        /// The target reads a storage that the source wrote last.
        Data "data",
        /// The source launched the target.
        Launch "launch",
        /// The source came before the target on its stream.
        StreamOrder "stream_order",
        /// The stream of the target waited for an event behind the source.
        EventWait "event_wait",
        /// The thread of the target was blocked until the source had ended.
        Sync "sync",
        /// The thread of the target found a queue full until the source had ended.
        QueueFull "queue_full",
        /// The forward thread and the backward thread take turns.
        Handover "thread_handoff",
    }
}

named! {
    /// What must have happened to the source before the target starts.
    Moment {
        /// It has begun.
        Start "start",
        /// It is over.
        End "end",
    }
}

/// One node depends on another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dependency {
    /// The row of what must come first.
    pub source: usize,
    /// The row of what depends on it.
    pub target: usize,
    /// Why.
    pub kind: DependencyKind,
    /// What must have happened to the source.
    pub after: Moment,
    /// How that is known.
    pub evidence: Evidence,
    /// The event on the side of the source that justifies it.
    pub source_event: Option<EventId>,
    /// The event on the side of the target: the blocking call, or the work itself.
    pub target_event: Option<EventId>,
}

/// Dependencies that were left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dropped {
    /// The measured times contradict them.
    pub against_time: u64,
    /// What was waited for is not in the workload.
    pub source_outside: u64,
    /// What waited is not in the workload, or nothing followed it there.
    pub target_outside: u64,
}

/// Device work and the node it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkedDevice {
    /// The id of its node.
    pub id: i64,
    /// The work.
    pub event: EventId,
    /// The call that launched it, where the trace holds it.
    pub call: Option<EventId>,
    /// The node of the execution trace that launched it.
    pub row: usize,
}

named! {
    /// Why device work belongs to no node.
    DeviceReason {
        /// The call that launched it is not in the trace.
        NoCall "call_not_in_trace",
        /// Its call ran inside no operator of the execution trace.
        OutsideOperators "outside_operators",
        /// It has no end, or one before its start.
        NoDuration "no_duration",
    }
}

/// Ids of gaps: above all ids of nodes and device work, and below 2^53.
pub(super) const FIRST_GAP: i64 = 1 << 52;
/// The same for what follows the last operator of a thread.
pub(super) const LAST_GAP: i64 = FIRST_GAP + (1 << 51);
