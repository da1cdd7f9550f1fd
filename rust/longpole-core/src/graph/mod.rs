//! Linked events -> the graph of what had to happen before what.
//!
//! Nodes are the starts and ends of all events, in order of time. An edge says that its
//! target could not happen before its source, what the time between them is called,
//! why it exists and how it is known. Of the edges into a node the one that finished
//! last *binds*: it decided when the node came. `docs/critical-path.md` gives every rule.
//!
//! The graph is always that of the whole trace; a window only chooses an end in it.
//! What a profiler does not record (locks, thread pools, hidden work of graphs) has no
//! edge.

mod calls;
mod edges;
mod handovers;
mod instants;
pub mod limits;
mod marks;
mod nodes;
mod recent;
mod starts;
mod streams;
mod threads;
mod timeline;
mod waits;
mod words;

pub use edges::{Edge, Edges};
pub use nodes::Nodes;
use regex::Regex;
pub use timeline::Timeline;
pub use words::{Evidence, Kind, Role};

use crate::error::{Error, ErrorKind, Result};
use crate::ids::{EventId, NodeId, Rank};
use crate::link::{self, Launches};
use crate::progress::{report, Progress};
use crate::tables::Tables;
use streams::Streams;

/// Names of what loads data, if the caller knows no better: torch calls its frames
/// `torch/utils/data/dataloader.py(...)` and `enumerate(DataLoader)#...`, and a loader of
/// one's own is usually called so too.
pub const DATA_LOADING: &str = "(?i)data_?loader";

/// Why every moment of a trace came when it did. See [`build`].
#[derive(Debug, Clone, Default)]
pub struct Graph {
    /// The events that take part, in content order.
    pub timeline: Timeline,
    /// Their starts and ends, in an order in which every edge leads onward.
    pub nodes: Nodes,
    /// The edges into each node, the binding one first.
    pub edges: Edges,
    /// Edges that would lead back in time, left out of the graph.
    pub violations: Vec<Edge>,
    /// Edges of no length that closed a circle, left out of the graph.
    pub cut: Vec<Edge>,
    /// What could not be settled, or settled with a doubt.
    pub counts: Counts,
}

/// Counts of what could not be settled, or settled with a doubt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Events that end before they begin: they take no part.
    pub negative_duration: u64,
    /// Events without an end, or too far from all others: they take no part.
    pub untimed: u64,
    /// Events of a thread that others cross.
    pub crossing: u64,
    /// Work on a device whose call is not in the trace.
    pub unlinked_work: u64,
    /// Work that began before its own call.
    pub clock_skew: u64,
    /// The same by more than clocks usually disagree.
    pub large_clock_skew: u64,
    /// Edges that would lead back in time.
    pub violation: u64,
    /// Edges that closed a circle of no length.
    pub circle: u64,
    /// Records of synchronisation that do not say what was waited for.
    pub unknown_sync: u64,
    /// Records of synchronisation whose call is not in the trace.
    pub sync_without_call: u64,
}

impl Counts {
    /// Each count with its name, in a fixed order.
    pub fn named(&self) -> [(&'static str, u64); 10] {
        [
            ("negative_duration", self.negative_duration),
            ("untimed", self.untimed),
            ("crossing", self.crossing),
            ("unlinked_work", self.unlinked_work),
            ("clock_skew", self.clock_skew),
            ("large_clock_skew", self.large_clock_skew),
            ("violation", self.violation),
            ("circle", self.circle),
            ("unknown_sync", self.unknown_sync),
            ("sync_without_call", self.sync_without_call),
        ]
    }
}

/// Builds the graph of a whole trace. `data_load` is the pattern of names of what
/// loads data.
///
/// # Errors
///
/// When `data_load` is no regular expression, and when `progress` asks to stop.
pub fn build(
    tables: &Tables,
    launches: &Launches,
    data_load: &str,
    progress: Progress<'_>,
) -> Result<Graph> {
    let is_loader = matching(data_load, tables)?;
    let timeline = Timeline::of(tables, launches);
    report(progress, timeline.len() as u64)?;
    let nodes = Nodes::of(&timeline);
    let mut counts = Counts {
        negative_duration: timeline.negative_durations,
        untimed: timeline.untimed,
        ..Counts::default()
    };
    let mut edges = Vec::with_capacity(nodes.len() * 5 / 4);
    counts.crossing = threads::chains(&timeline, &nodes, &is_loader, &mut edges, progress)?;
    let pairs = link::autograd_pairs(tables, &link::main_threads(tables));
    let handovers = handovers::handovers(&pairs, &timeline, &nodes, &edges);
    device_edges(tables, launches, &timeline, &nodes, &mut edges, &mut counts, progress)?;
    edges.extend(handovers);
    report(progress, edges.len() as u64)?;
    Ok(Graph::of(timeline, nodes, edges, counts))
}

/// Which names a pattern is found in, one row for each text.
pub(crate) fn matching(pattern: &str, tables: &Tables) -> Result<Vec<bool>> {
    let pattern =
        Regex::new(pattern).map_err(|error| Error::new(ErrorKind::Pattern(sentence(&error)), 0))?;
    Ok(tables.strings.matching(|name| pattern.is_match(name)))
}

/// The reason without the drawing of where it is.
fn sentence(error: &regex::Error) -> String {
    let drawn = error.to_string();
    drawn.rsplit("error: ").next().unwrap_or(&drawn).trim().to_owned()
}

/// Adds the edges into device work, and into calls that wait for it.
fn device_edges(
    tables: &Tables,
    launches: &Launches,
    timeline: &Timeline,
    nodes: &Nodes,
    edges: &mut Vec<Edge>,
    counts: &mut Counts,
    progress: Progress<'_>,
) -> Result<()> {
    let streams = Streams::of(timeline, tables);
    let roles = tables.roles();
    let records = link::sync_records(tables, launches);
    let records = waits::Records { all: &records, tables, streams: &streams, nodes };
    let (waits, asked) = (records.stream_waits(), records.asked_to_wait(&roles));
    let marks = marks::Marks::of(&streams, &roles);
    starts::Starts::new(&streams, nodes, &roles, &waits, &asked, &marks).edges(edges, progress)?;
    let syncs = records.syncs(&roles);
    calls::Calls::new(&streams, nodes, tables, &roles, &marks).edges(&syncs, edges, progress)?;
    counts.unknown_sync = syncs.unknown;
    counts.sync_without_call = syncs.without_call;
    let is_unlinked =
        |work: &Rank| timeline.kind(*work).is_device_work() && timeline.launcher(*work).is_none();
    counts.unlinked_work = timeline.ranks().filter(is_unlinked).count() as u64;
    Ok(())
}

impl Graph {
    /// A graph of events that come from no trace, given as `(start, end)`, with the
    /// edges that `edges` lays among their starts and ends.
    pub fn of_events(
        spans: &[(i64, i64)],
        edges: impl FnOnce(&Timeline, &Nodes) -> Vec<Edge>,
    ) -> Self {
        let timeline = Timeline::of_spans(spans);
        let nodes = Nodes::of(&timeline);
        let edges = edges(&timeline, &nodes);
        Self::of(timeline, nodes, edges, Counts::default())
    }

    /// Puts nodes and edges in order.
    fn of(timeline: Timeline, nodes: Nodes, mut edges: Vec<Edge>, counts: Counts) -> Self {
        let violations: Vec<_> = edges.extract_if(.., |edge| edge.gap_ns(&nodes) < 0).collect();
        let order = instants::order(&edges, &nodes);
        let cut: Vec<_> = order.cut.iter().map(|&place| edges[place]).collect();
        for &place in order.cut.iter().rev() {
            edges.remove(place);
        }
        let mut graph = Self { timeline, nodes, violations, cut, counts, ..Self::default() };
        if let Some(order) = order.nodes {
            graph.reorder(&order, &mut edges);
        }
        graph.edges = Edges::of(&edges, &graph.nodes);
        graph.count_skew();
        graph
    }

    fn reorder(&mut self, order: &[NodeId], edges: &mut [Edge]) {
        let mut place = vec![NodeId::from_row(0); order.len()];
        for (row, node) in order.iter().enumerate() {
            place[node.row()] = NodeId::from_row(row);
        }
        self.nodes = self.nodes.reordered(order);
        for edge in edges.iter_mut().chain(&mut self.violations).chain(&mut self.cut) {
            edge.source = place[edge.source.row()];
            edge.target = place[edge.target.row()];
        }
    }

    fn count_skew(&mut self) {
        let early_ns =
            |edge: &&Edge| (edge.role == Role::Launch).then(|| -edge.gap_ns(&self.nodes));
        let skews: Vec<_> = self.violations.iter().filter_map(|edge| early_ns(&edge)).collect();
        let large = skews.iter().filter(|&&ns| ns > limits::CLOCK_TOLERANCE_NS);
        self.counts.large_clock_skew = large.count() as u64;
        self.counts.clock_skew = skews.len() as u64;
        self.counts.violation = self.violations.len() as u64;
        self.counts.circle = self.cut.len() as u64;
    }

    /// The node at which an event of the trace ends, if it takes part.
    pub fn end_of(&self, event: EventId) -> Option<NodeId> {
        self.timeline.rank(event).map(|rank| self.nodes.end(rank))
    }

    /// The node at which an event of the trace starts, if it takes part.
    pub fn start_of(&self, event: EventId) -> Option<NodeId> {
        self.timeline.rank(event).map(|rank| self.nodes.start(rank))
    }
}
