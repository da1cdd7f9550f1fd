//! The result of linking an execution trace to a trace: methods, links, reasons.

use crate::ids::{EventId, InColumn, NO_ROW};
use crate::names::named;
use crate::tables::{ExecutionTrace, Root, Tables};

/// Minimum percentage of the common ids of two files that must have the same operator name. Real
/// pairs agree completely, files of different runs in a quarter of the ids.
pub(super) const LEAST_AGREEMENT_PERCENT: usize = 99;

named! {
    /// How nodes were linked.
    Method {
        /// By the record function id.
        RecordFunction "record_function_id",
        /// By the order of names on its thread.
        ThreadOrder "thread_order",
        /// By the external id.
        ExternalId "external_id",
    }
}

named! {
    /// Reason why a node has no event.
    Unlinked {
        /// It represents the process.
        ProcessRoot "process_root",
        /// It represents a thread.
        ThreadRoot "thread_root",
        /// It announces a process group, which happens before the profiler runs.
        ProcessGroup "process_group_record",
        /// The trace contains no event with its id.
        NumberNotInTrace "number_not_in_trace",
        /// The event with its id has another name.
        NameDiffers "name_differs",
        /// Its thread matches no thread of the trace in the chosen iteration.
        NoThreadFits "no_thread_fits",
    }
}

/// The event of each node of an execution trace.
#[derive(Debug, Clone)]
pub struct ExecutionLink {
    pub(super) event: Vec<u32>,
    pub(super) reason: Vec<Option<Unlinked>>,
    /// How the nodes were linked.
    pub method: Method,
    /// The matching iterations of the trace, in order of time; empty if the nodes were linked by
    /// id.
    pub iterations: Vec<Iteration>,
    /// The index of the iteration that was used.
    pub chosen: Option<usize>,
    /// Whether the two files contain different process ids.
    pub pids_differ: bool,
}

impl ExecutionLink {
    /// Returns the event of a node.
    pub fn event(&self, row: usize) -> Option<EventId> {
        EventId::from_column(self.event[row])
    }

    /// Returns the reason why a node has no event.
    pub fn reason(&self, row: usize) -> Option<Unlinked> {
        self.reason[row]
    }

    /// Returns the number of nodes with an event.
    pub fn n_linked(&self) -> usize {
        self.event.iter().filter(|&&event| event != NO_ROW).count()
    }
}

/// Whether the trace has operators, but none in the process recorded in the execution trace.
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

/// Returns the reason why a node cannot have an event in any trace.
pub(super) fn unlinkable(trace: &ExecutionTrace, row: usize) -> Option<Unlinked> {
    match trace.root(row) {
        Some(Root::Process) => Some(Unlinked::ProcessRoot),
        Some(Root::Thread) => Some(Unlinked::ThreadRoot),
        None => None,
    }
}

/// Returns the reason why a node has no event although it could have one.
fn missing(trace: &ExecutionTrace, row: usize, otherwise: Unlinked) -> Unlinked {
    let is_group = trace.name(row).contains("process_group:init");
    unlinkable(trace, row).unwrap_or(if is_group { Unlinked::ProcessGroup } else { otherwise })
}

/// Returns the link with the events that `event_of` returns.
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

/// A time range of a trace that ran the operators of an execution trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Iteration {
    /// Start of its first operator.
    pub start_ns: i64,
    /// End of its last operator.
    pub end_ns: i64,
    /// For each thread of the execution trace, its nodes (rows) and their events.
    pub(super) threads: Vec<(Vec<usize>, Vec<EventId>)>,
}

impl Iteration {
    /// Returns the number of nodes with an event.
    pub fn n_nodes(&self) -> usize {
        self.threads.iter().map(|(_, events)| events.len()).sum()
    }

    pub(super) fn duration_ns(&self) -> i64 {
        self.end_ns - self.start_ns
    }
}
