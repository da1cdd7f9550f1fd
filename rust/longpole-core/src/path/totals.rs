//! Totals of a path, and measures of its segments: work without waits, busy time of devices, and
//! synchronization dependencies.

use std::collections::HashMap;

use super::schedule::Schedule;
use super::walk::Path;
use crate::graph::{Edge, Evidence, Graph, Kind, Role};
use crate::ids::{EventId, StringId, row_in_column};
use crate::intervals::Spans;
use crate::names::Names;
use crate::tables::Tables;

/// The segments of one kind, or of one kind and name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Total {
    /// The kind.
    pub kind: Kind,
    /// Event name; `None` for gaps and for per-kind totals.
    pub name: Option<StringId>,
    /// The total time.
    pub duration_ns: i64,
    /// Number of segments.
    pub count: u64,
    /// The duration of the longest segment.
    pub longest_ns: i64,
    /// The event of the longest segment, the first of several; `None` for gaps.
    pub longest: Option<EventId>,
}

/// Returns the time of each kind on the path, or of each kind and name, largest first; ties are
/// sorted by name.
pub fn totals(tables: &Tables, path: &Path, by_name: bool) -> Vec<Total> {
    let mut row_of = HashMap::new();
    let mut rows: Vec<Total> = Vec::new();
    for segment in &path.segments {
        let name = segment.event.filter(|_| by_name).and_then(|event| tables.events.name(event));
        let row = *row_of.entry((segment.kind, name)).or_insert(rows.len());
        let (kind, longest) = (segment.kind, segment.event);
        if row == rows.len() {
            rows.push(Total { kind, name, duration_ns: 0, count: 0, longest_ns: -1, longest });
        }
        rows[row].add(segment.duration_ns(), longest);
    }
    let words = |row: &Total| (row.kind.name(), row.name.map(|name| tables.strings.get(name)));
    rows.sort_by(|one, two| {
        two.duration_ns.cmp(&one.duration_ns).then_with(|| words(one).cmp(&words(two)))
    });
    rows
}

impl Total {
    fn add(&mut self, length_ns: i64, event: Option<EventId>) {
        self.duration_ns += length_ns;
        self.count += 1;
        if (length_ns, self.longest) > (self.longest_ns, event) {
            (self.longest_ns, self.longest) = (length_ns, event);
        }
    }
}

/// Returns the number of waits on a path for GPU activities that are inferred, and the number of
/// all such waits.
pub fn waits_on_path(graph: &Graph, path: &Path) -> (u64, u64) {
    let edges = path.edges.iter().map(|&edge| &graph.edges.as_slice()[edge as usize]);
    edges.filter(|edge| edge.role.waits().is_some()).fold((0, 0), |(inferred, all), edge| {
        (inferred + u64::from(edge.evidence == Evidence::Inferred), all + 1)
    })
}

// How long the devices were busy during unexplained time.
//
// Unexplained time does not imply idle devices. A gap with a busy device has other causes than one
// with an idle device, so device activity is measured.

/// For each unexplained segment of a path, returns how long any device was busy in it; `None` for
/// other segments. All times are those of the schedule.
pub fn busy_ns(graph: &Graph, path: &Path, schedule: &Schedule) -> Vec<Option<i64>> {
    let is_unknown = |evidence| evidence == Evidence::None;
    if !path.segments.iter().any(|segment| is_unknown(segment.evidence)) {
        return vec![None; path.segments.len()];
    }
    let is_work = |order: &_| graph.timeline.kind(*order).is_device_work();
    let works = graph.timeline.orders().filter(is_work);
    let time_ns = |node| schedule.time_ns(node, graph);
    let spans =
        works.map(|work| (time_ns(graph.nodes.start(work)), time_ns(graph.nodes.end(work))));
    let busy = Spans::union_of(spans);
    let within = |start_ns, end_ns| busy.length_within_ns(start_ns, end_ns);
    let segments = path.segments.iter();
    segments.map(|it| is_unknown(it.evidence).then(|| within(it.start_ns, it.end_ns))).collect()
}

// The work in each step, without waits.

/// The work of one event in one step, or of the host outside events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Work {
    /// The event; `None` between events.
    pub event: Option<EventId>,
    /// The kind of its time.
    pub kind: Kind,
    /// The row of the step.
    pub step: u32,
    /// Its duration.
    pub work_ns: i64,
}

/// Returns the work of each event in each step, sorted by event, kind and step.
///
/// Work belongs to the step in which the host was when it began or, for a GPU activity, when it was
/// launched. `steps` are the time ranges of the steps, in order. For a call that waits, only its
/// own work counts, not its wait.
pub fn work(graph: &Graph, latencies_ns: &[i64], steps: &[(i64, i64)]) -> Vec<Work> {
    let step_at = |time_ns: i64| {
        let row = steps.partition_point(|step| step.0 <= time_ns).checked_sub(1)?;
        (time_ns < steps[row].1).then(|| row_in_column(row))
    };
    let row = |(edge, &work_ns): (&Edge, &i64)| {
        let event = edge.event().map(|order| graph.timeline.event(order));
        let step = step_at(begun_ns(graph, edge))?;
        Some(Work { event, kind: edge.kind, step, work_ns })
    };
    let edges = graph.edges.as_slice().iter().zip(latencies_ns);
    let mut rows: Vec<Work> = edges.filter(|(edge, _)| is_work(edge)).filter_map(row).collect();
    rows.sort_unstable();
    rows.dedup_by(|row, kept| {
        let is_same = (row.event, row.kind, row.step) == (kept.event, kept.kind, kept.step);
        if is_same {
            kept.work_ns += row.work_ns;
        }
        is_same
    });
    rows
}

/// Whether an edge is work. What a call does for a copy, such as staging it, takes the time of the
/// copy itself, which would count twice.
fn is_work(edge: &Edge) -> bool {
    let is_of_device = matches!(edge.kind, Kind::Kernel | Kind::Copy | Kind::Communication);
    match edge.role {
        Role::DeviceWork => edge.kind.is_work(),
        Role::ThreadOrder => edge.kind.is_work() && !is_of_device,
        _ => false,
    }
}

/// Returns when the host began the work: at its launch call, if known.
fn begun_ns(graph: &Graph, edge: &Edge) -> i64 {
    let call = edge.event().and_then(|order| graph.timeline.launcher(order));
    call.map_or_else(|| graph.nodes.time_ns(edge.source), |call| graph.timeline.start_ns(call))
}

// Synchronization dependencies inside a window.

/// A GPU activity that a call or another GPU activity had to wait for, or might have had to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyncDependency {
    /// The awaited activity.
    pub source: EventId,
    /// The waiting event.
    pub target: EventId,
    /// The kind of the wait.
    pub kind: Kind,
    /// How the dependency is known.
    pub evidence: Evidence,
    /// Whether the wait determined when the target continued.
    pub waited: bool,
    /// Whether the dependency lies on the path.
    pub on_path: bool,
}

/// Returns the waits that end in a time range, at the times of a schedule, in content order of the
/// waiting event, then of the awaited activity.
pub fn sync_dependencies(
    graph: &Graph,
    path: &Path,
    schedule: &Schedule,
    within: (i64, i64),
) -> Vec<SyncDependency> {
    let mut on_path = path.edges.clone();
    on_path.sort_unstable();
    let mut found: Vec<_> = graph
        .edges
        .as_slice()
        .iter()
        .enumerate()
        .filter_map(|(number, edge)| {
            let kind = edge.role.waits()?;
            let time_ns = schedule.time_ns(edge.target, graph);
            let (source, target) = (graph.nodes.event(edge.source), graph.nodes.event(edge.target));
            let is_number = |other: &u32| (*other as usize).cmp(&number);
            let sync = SyncDependency {
                source: graph.timeline.event(source),
                target: graph.timeline.event(target),
                kind,
                evidence: edge.evidence,
                waited: schedule.reached_by(edge.target, graph) == Some(number),
                on_path: on_path.binary_search_by(is_number).is_ok(),
            };
            (within.0 <= time_ns && time_ns <= within.1).then_some((target, source, sync))
        })
        .collect();
    found.sort_by_key(|&(target, source, _)| (target, source));
    found.into_iter().map(|(_, _, sync)| sync).collect()
}
