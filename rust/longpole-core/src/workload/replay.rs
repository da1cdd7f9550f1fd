//! Replays a graph as a simulator would: every node runs as soon as its dependencies have ended and
//! its thread or stream is free. A node that began in the run while a node was running on which it
//! depends, such as a kernel that started inside the operator that launched it, begins as long after
//! the start of that node as it did in the run.
//!
//! Threads and streams run first the node that is ready first, then the one with the smaller id.
//! With the measured durations, the replay should end when the run did; the difference is the error
//! of the dependencies.
//!
//! Files of other programs can contain any numbers, so sums of times saturate.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::model::{DependencyKind, NodeKind, Workload, WorkloadNode};
use crate::ids::row_in_column;

/// A resource that runs one node at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    /// A thread.
    Thread(i64),
    /// A stream.
    Stream(i64),
}

/// A node of a replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayNode {
    /// Decides between nodes that are ready at the same time.
    pub id: i64,
    /// The resource that runs it; `None` for nodes that only group others.
    pub resource: Option<Resource>,
    /// Duration.
    pub duration_ns: i64,
    /// Start and end in the recorded run.
    pub measured: Option<(i64, i64)>,
}

/// The result for a thread or stream, in the run and in its replay, relative to the first start of
/// all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResourceReplay {
    /// Number of nodes it ran.
    pub n_nodes: usize,
    /// The sum of their durations.
    pub busy_ns: i64,
    /// End of the last node in the replay.
    pub end_ns: i64,
    /// End of the last node in the run; `None` if nothing was measured.
    pub measured_end_ns: Option<i64>,
}

/// The largest difference between a replay and the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deviation {
    /// The node that started too early or too late in the replay; or the last one, if it ended too
    /// early or too late.
    pub row: usize,
    /// Start of the part of the run with the difference, relative to the first start of all.
    pub start_ns: i64,
    /// Its end.
    pub end_ns: i64,
    /// How much longer it took in the run; negative if the replay took longer.
    pub missing_ns: i64,
}

/// The result of a replay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Replay {
    /// When each node started.
    pub start_ns: Vec<i64>,
    /// Whether each node ran.
    pub has_run: Vec<bool>,
    /// When the last node ended.
    pub makespan_ns: i64,
    /// The length of the run; `None` if nothing was measured.
    pub measured_ns: Option<i64>,
    /// Each thread and stream.
    pub resources: BTreeMap<Resource, ResourceReplay>,
    /// Number of nodes that never ran, because they wait for each other or for nodes that do.
    pub stuck: usize,
    /// The place that explains most of the error; `None` if nothing was measured.
    pub deviation: Option<Deviation>,
}

/// Replays a workload with its measured durations; without `gaps`, as if no time passed between
/// operators.
pub fn replay_workload(workload: &Workload, gaps: bool) -> Replay {
    let nodes: Vec<_> = workload.nodes.iter().map(|node| replay_node(node, gaps)).collect();
    let dependencies = workload.dependencies.iter();
    let dependencies: Vec<_> = dependencies
        .filter(|dependency| dependency.kind != DependencyKind::Control)
        .map(|dependency| (dependency.source, dependency.target))
        .collect();
    replay(&nodes, &dependencies)
}

fn replay_node(node: &WorkloadNode, gaps: bool) -> ReplayNode {
    let lane = node.lane.map(|lane| i64::from(row_in_column(lane.row())));
    let resource = match node.kind {
        NodeKind::Device => lane.map(Resource::Stream),
        NodeKind::Operator | NodeKind::Gap | NodeKind::AfterWait => lane.map(Resource::Thread),
    };
    let is_counted = gaps || node.kind != NodeKind::Gap;
    let duration_ns = if is_counted { node.work_ns } else { 0 };
    let measured = node.span.filter(|_| node.kind != NodeKind::Gap);
    ReplayNode { id: node.id, resource, duration_ns, measured }
}

/// Replays nodes with dependencies given as `(source, target)` rows.
pub fn replay(nodes: &[ReplayNode], dependencies: &[(usize, usize)]) -> Replay {
    let mut dependents = Dependents::of(nodes.len(), dependencies);
    let mut ready = vec![Ready::default(); nodes.len()];
    let mut start_ns = vec![0_i64; nodes.len()];
    let mut free: BTreeMap<Resource, Ready> = BTreeMap::new();
    let first: Vec<_> = dependents.without_sources().collect();
    let mut queue: BinaryHeap<_> =
        first.into_iter().map(|row| Reverse((0, nodes[row].id, row))).collect();
    let mut has_run = vec![false; nodes.len()];
    while let Some(Reverse((_, _, row))) = queue.pop() {
        has_run[row] = true;
        let node = &nodes[row];
        let free = node.resource.map(|resource| free.entry(resource).or_default());
        if let Some(free) = free.as_ref() {
            ready[row].wait_for(**free);
        }
        start_ns[row] = ready[row].time_ns;
        let over =
            Ready { time_ns: start_ns[row].saturating_add(node.duration_ns), after: Some(row) };
        if let Some(free) = free {
            *free = over;
        }
        for next in dependents.release(row) {
            let lag_ns = lag_ns(&nodes[row], &nodes[next]);
            let time_ns = start_ns[row].saturating_add(lag_ns);
            ready[next].wait_for(Ready { time_ns, ..over });
        }
        for next in dependents.take_ready() {
            queue.push(Reverse((ready[next].time_ns, nodes[next].id, next)));
        }
    }
    let mut replay = summary(nodes, start_ns, has_run);
    replay.deviation = deviation(nodes, &replay, &ready);
    replay
}

/// Returns how long after the start of a node another one that depends on it may start: when it has
/// ended, or when the other one started inside it in the run.
fn lag_ns(source: &ReplayNode, target: &ReplayNode) -> i64 {
    let spans = source.measured.zip(target.measured);
    let inside = spans.filter(|(source, target)| source.0 <= target.0 && target.0 < source.1);
    let lag_ns = inside.map(|(source, target)| target.0.saturating_sub(source.0));
    lag_ns.map_or(source.duration_ns, |lag_ns| lag_ns.min(source.duration_ns))
}

/// When a node or a resource is ready, and after which node.
#[derive(Debug, Clone, Copy, Default)]
struct Ready {
    time_ns: i64,
    after: Option<usize>,
}

impl Ready {
    fn wait_for(&mut self, other: Self) {
        if other.time_ns >= self.time_ns && other.after.is_some() {
            *self = other;
        }
    }
}

/// Follows the nodes that determined the end back to the start, and finds the part that took a
/// different time in the run. The parts add up to the whole difference.
fn deviation(nodes: &[ReplayNode], replay: &Replay, ready: &[Ready]) -> Option<Deviation> {
    let first_ns = nodes.iter().filter_map(|node| node.measured).map(|span| span.0).min()?;
    let is_short = replay.makespan_ns < replay.measured_ns?;
    let rows = (0..nodes.len()).filter(|&row| replay.has_run[row]);
    let end_ns = |row: usize| replay.start_ns[row].saturating_add(nodes[row].duration_ns);
    let since = |time_ns: i64| time_ns.saturating_sub(first_ns);
    let span = |row: usize| nodes[row].measured.map(|span| (since(span.0), since(span.1)));
    let last = rows
        .filter_map(|row| Some((if is_short { span(row)?.1 } else { end_ns(row) }, row)))
        .max()?
        .1;
    // The later node, as row, time in the run and time in the replay.
    let mut later = span(last).map(|span| (last, span.1, end_ns(last)));
    let mut found: Option<Deviation> = None;
    let mut next = Some(last);
    while let Some(row) = next {
        next = ready[row].after;
        let Some((start_ns, _)) = span(row) else { continue };
        let here = later.map(|later| time_range(later, start_ns, replay.start_ns[row]));
        found = larger(here, found);
        later = Some((row, start_ns, replay.start_ns[row]));
    }
    larger(later.map(|later| time_range(later, 0, 0)), found)
}

/// Returns the part from a point of the run and of the replay to a later one.
fn time_range(later: (usize, i64, i64), start_ns: i64, replayed_ns: i64) -> Deviation {
    let (row, end_ns, replayed_end_ns) = later;
    let measured_ns = end_ns.saturating_sub(start_ns);
    let missing_ns = measured_ns.saturating_sub(replayed_end_ns.saturating_sub(replayed_ns));
    Deviation { row, start_ns, end_ns, missing_ns }
}

fn larger(one: Option<Deviation>, other: Option<Deviation>) -> Option<Deviation> {
    one.into_iter().chain(other).max_by_key(|found| found.missing_ns.unsigned_abs())
}

fn summary(nodes: &[ReplayNode], start_ns: Vec<i64>, has_run: Vec<bool>) -> Replay {
    let first_ns = nodes.iter().filter_map(|node| node.measured).map(|span| span.0).min();
    let stuck = has_run.iter().filter(|&&has_run| !has_run).count();
    let mut replay = Replay { start_ns, has_run, stuck, ..Replay::default() };
    for (node, &start_ns) in nodes.iter().zip(&replay.start_ns) {
        let end_ns = start_ns.saturating_add(node.duration_ns);
        replay.makespan_ns = replay.makespan_ns.max(end_ns);
        let measured_end_ns =
            node.measured.zip(first_ns).map(|(span, first)| span.1.saturating_sub(first));
        replay.measured_ns = replay.measured_ns.max(measured_end_ns);
        let Some(resource) = node.resource else { continue };
        let known = replay.resources.entry(resource).or_default();
        known.n_nodes += 1;
        known.busy_ns = known.busy_ns.saturating_add(node.duration_ns);
        known.end_ns = known.end_ns.max(end_ns);
        known.measured_end_ns = known.measured_end_ns.max(measured_end_ns);
    }
    replay
}

/// For each node, its dependents and the number of its unfinished dependencies.
struct Dependents {
    first: Vec<usize>,
    targets: Vec<usize>,
    waiting_for: Vec<usize>,
    ready: Vec<usize>,
}

impl Dependents {
    fn of(n_nodes: usize, dependencies: &[(usize, usize)]) -> Self {
        let mut first = vec![0; n_nodes + 1];
        let mut waiting_for = vec![0; n_nodes];
        for &(source, target) in dependencies {
            first[source + 1] += 1;
            waiting_for[target] += 1;
        }
        for row in 0..n_nodes {
            first[row + 1] += first[row];
        }
        let mut next = first.clone();
        let mut targets = vec![0; dependencies.len()];
        for &(source, target) in dependencies {
            targets[next[source]] = target;
            next[source] += 1;
        }
        Self { first, targets, waiting_for, ready: Vec::new() }
    }

    fn without_sources(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.waiting_for.len()).filter(|&row| self.waiting_for[row] == 0)
    }

    /// Marks a node as ended and returns the dependents that become ready.
    fn release(&mut self, row: usize) -> Vec<usize> {
        let released = self.targets[self.first[row]..self.first[row + 1]].to_vec();
        for &target in &released {
            self.waiting_for[target] -= 1;
            if self.waiting_for[target] == 0 {
                self.ready.push(target);
            }
        }
        released
    }

    fn take_ready(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.ready)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(id: i64, resource: Resource, duration_ns: i64) -> ReplayNode {
        ReplayNode { id, resource: Some(resource), duration_ns, measured: None }
    }

    #[test]
    fn a_thread_runs_one_node_at_a_time_and_streams_run_beside_it() {
        let (thread, stream) = (Resource::Thread(1), Resource::Stream(7));
        let nodes =
            [node(1, thread, 10), node(2, thread, 10), node(3, stream, 50), node(4, thread, 5)];
        // The first node launches the kernel, and the last waits for it.
        let replay = replay(&nodes, &[(0, 1), (0, 2), (2, 3)]);
        assert_eq!(replay.start_ns, [0, 10, 10, 60]);
        assert_eq!((replay.makespan_ns, replay.stuck), (65, 0));
        assert_eq!(replay.resources[&thread].busy_ns, 25);
    }

    #[test]
    fn the_place_of_the_missing_time_is_where_the_run_waited_for_nothing_known() {
        let (thread, stream) = (Resource::Thread(1), Resource::Stream(7));
        let at = |id, resource, duration_ns, span| ReplayNode {
            measured: Some(span),
            ..node(id, resource, duration_ns)
        };
        let nodes = [
            at(1, thread, 10, (100, 110)),
            at(2, thread, 10, (150, 160)),
            at(3, stream, 5, (170, 175)),
        ];
        let found = replay(&nodes, &[(0, 1), (1, 2)]);
        assert_eq!((found.makespan_ns, found.measured_ns), (25, Some(75)));
        let expected = Deviation { row: 1, start_ns: 0, end_ns: 50, missing_ns: 40 };
        assert_eq!(found.deviation, Some(expected));
    }

    #[test]
    fn what_waits_for_itself_is_counted() {
        let nodes = [node(1, Resource::Thread(1), 1), node(2, Resource::Thread(1), 1)];
        assert_eq!(replay(&nodes, &[(0, 1), (1, 0)]).stuck, 2);
    }
}
