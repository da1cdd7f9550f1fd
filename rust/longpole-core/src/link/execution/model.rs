//! The values that linking an execution trace to a trace gives: methods, links, reasons.

use crate::ids::{EventId, InColumn, NO_ROW};
use crate::names::named;
use crate::tables::{ExecutionTrace, Root, Tables};

/// Of the numbers that two files have in common, so many in a hundred must name the
/// same operator. Real pairs agree in all, files of different runs in a quarter.
pub(super) const LEAST_AGREEMENT_PERCENT: usize = 99;

named! {
    /// How a node was found.
    Method {
        /// By the record function id.
        RecordFunction "record_function_id",
        /// By the order of names on its thread.
        ThreadOrder "thread_order",
        /// By the External id.
        ExternalId "external_id",
    }
}

named! {
    /// Why a node has no event.
    Unlinked {
        /// It stands for the process.
        ProcessRoot "process_root",
        /// It stands for a thread.
        ThreadRoot "thread_root",
        /// It announces a process group, which happens before the profiler runs.
        ProcessGroup "process_group_record",
        /// The trace holds no event with its number.
        NumberNotInTrace "number_not_in_trace",
        /// The event with its number has another name.
        NameDiffers "name_differs",
        /// Its thread fits no thread of the trace in the chosen iteration.
        NoThreadFits "no_thread_fits",
    }
}

/// Which event each node of an execution trace is.
#[derive(Debug, Clone)]
pub struct ExecutionLink {
    pub(super) event: Vec<u32>,
    pub(super) reason: Vec<Option<Unlinked>>,
    /// How the nodes were found.
    pub method: Method,
    /// The iterations of the trace that fit, in order of time; none where the nodes were
    /// found by number.
    pub iterations: Vec<Iteration>,
    /// Which of them was taken.
    pub chosen: Option<usize>,
    /// Whether the two files name different processes.
    pub pids_differ: bool,
}

impl ExecutionLink {
    /// The event of a node.
    pub fn event(&self, row: usize) -> Option<EventId> {
        EventId::from_column(self.event[row])
    }

    /// Why a node has no event.
    pub fn reason(&self, row: usize) -> Option<Unlinked> {
        self.reason[row]
    }

    /// How many nodes have an event.
    pub fn n_linked(&self) -> usize {
        self.event.iter().filter(|&&event| event != NO_ROW).count()
    }
}

/// Whether the trace has operators, and none of them in the process that the execution
/// trace names.
pub(super) fn pids_differ(trace: &ExecutionTrace, tables: &Tables) -> bool {
    let Some(pid) = trace.header.pid.map(|pid| pid.to_string()) else { return false };
    let mut processes = tables
        .events
        .ids()
        .filter(|&event| tables.events.kind(event).is_on_thread())
        .map(|event| tables.lanes.place(tables.events.lane(event)).process)
        .peekable();
    processes.peek().is_some() && !processes.any(|process| tables.strings.get(process) == pid)
}

/// Why a node can have no event, whatever the trace holds.
pub(super) fn unlinkable(trace: &ExecutionTrace, row: usize) -> Option<Unlinked> {
    match trace.root(row) {
        Some(Root::Process) => Some(Unlinked::ProcessRoot),
        Some(Root::Thread) => Some(Unlinked::ThreadRoot),
        None => None,
    }
}

/// A node that has no event although it could have one.
fn missing(trace: &ExecutionTrace, row: usize, otherwise: Unlinked) -> Unlinked {
    let is_group = trace.name(row).contains("process_group:init");
    unlinkable(trace, row).unwrap_or(if is_group { Unlinked::ProcessGroup } else { otherwise })
}

/// The link that `event_of` gives.
pub(super) fn link(
    trace: &ExecutionTrace,
    tables: &Tables,
    method: Method,
    event_of: impl Fn(usize) -> std::result::Result<EventId, Unlinked>,
) -> ExecutionLink {
    let found: Vec<_> = (0..trace.nodes.len()).map(event_of).collect();
    let reason = |row: usize, found: &std::result::Result<EventId, Unlinked>| {
        found.err().map(|reason| missing(trace, row, reason))
    };
    ExecutionLink {
        event: found.iter().map(|found| found.ok().in_column()).collect(),
        reason: found.iter().enumerate().map(|(row, found)| reason(row, found)).collect(),
        method,
        iterations: Vec::new(),
        chosen: None,
        pids_differ: pids_differ(trace, tables),
    }
}

/// A stretch of a trace that ran the operators of an execution trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Iteration {
    /// When its first operator started.
    pub start_ns: i64,
    /// When its last operator ended.
    pub end_ns: i64,
    /// For each thread of the execution trace, its nodes (rows) and the events.
    pub(super) threads: Vec<(Vec<usize>, Vec<EventId>)>,
}

impl Iteration {
    /// How many nodes it gives an event.
    pub fn n_nodes(&self) -> usize {
        self.threads.iter().map(|(_, events)| events.len()).sum()
    }

    pub(super) fn duration_ns(&self) -> i64 {
        self.end_ns - self.start_ns
    }
}
