//! Many changes tried in one pass over the graph.
//!
//! A trial is a set of changes. What bounds a single what-if is the way through memory, so
//! several trials share it: a node has a time for each.

use std::cell::RefCell;
use std::ops::Range;

use crate::error::Result;
use crate::graph::{Edge, Graph, Kind, Role};
use crate::ids::{row_in_column, NodeId};
use crate::path::clip::{moved, node_of};
use crate::path::what_if::{Change, Chosen, Effect, Ratio};
use crate::path::windows::{Moment, Opening, Window};
use crate::progress::{report, Progress};
use crate::tables::Tables;

/// So many trials share a pass: their times fill a line of the cache.
const LANES: usize = 8;

type Times = [i64; LANES];

/// What happens to the lag of an edge; of several effects the last one holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u16)]
enum Fate {
    Kept,
    Halved,
    Dropped,
    Removed,
}

const BITS: usize = 2;

/// Tries changes on the windows of one scope.
pub(super) struct Trials<'a> {
    graph: &'a Graph,
    tables: &'a Tables,
    lags_ns: &'a [i64],
    windows: Vec<Prepared<'a>>,
    edges_of: EdgesOf,
    n_nodes: usize,
    /// What all passes share: fresh memory costs as much as a pass over it.
    scratch: RefCell<Scratch>,
}

/// The fate of each edge and the times of each node, in all lanes.
#[derive(Default)]
struct Scratch {
    fates: Vec<u16>,
    times: Vec<Times>,
}

impl<'a> Trials<'a> {
    pub(super) fn new(
        graph: &'a Graph,
        tables: &'a Tables,
        lags_ns: &'a [i64],
        windows: &'a [Window],
    ) -> Self {
        let windows: Vec<_> = windows.iter().map(|window| Prepared::of(window, graph)).collect();
        let last = windows.iter().map(|window| window.n_nodes(graph)).max();
        let edges_of = EdgesOf::of(graph);
        let (n_nodes, scratch) = (last.unwrap_or(0), RefCell::default());
        Self { graph, tables, lags_ns, windows, edges_of, n_nodes, scratch }
    }

    /// How long each window takes in each trial: a row for each trial.
    ///
    /// Changes drop, halve, or remove waits; no other factor is known here.
    ///
    /// # Errors
    ///
    /// When a pattern is no regular expression, and when `progress` asks to stop.
    pub(super) fn lengths_ns(
        &self,
        trials: &[&[Change]],
        progress: Progress<'_>,
    ) -> Result<Vec<Vec<i64>>> {
        let mut lengths = Vec::with_capacity(trials.len());
        let Scratch { fates, times } = &mut *self.scratch.borrow_mut();
        for group in trials.chunks(LANES) {
            self.find_fates(group, fates)?;
            self.retime(fates, times, progress)?;
            for lane in 0..group.len() {
                let of = |window: &Prepared<'_>| window.length_ns(self.graph, times, lane);
                lengths.push(self.windows.iter().map(of).collect());
            }
        }
        Ok(lengths)
    }

    /// For each edge what happens to it in each lane.
    fn find_fates(&self, trials: &[&[Change]], fates: &mut Vec<u16>) -> Result<()> {
        let mut of_kind = vec![0_u16; Kind::ALL.len()];
        let mut of_role = vec![0_u16; Role::ALL.len()];
        let mut special = Vec::new();
        for (lane, changes) in trials.iter().enumerate() {
            for change in *changes {
                let fate = fate(change.effect);
                let is_plain = change.matching.is_none() && change.events.is_none();
                if !is_plain || change.event_kind.is_some() {
                    special.push((lane, fate, change));
                } else if fate == Fate::Removed {
                    let waits = change.kind.unwrap_or(Kind::SyncReturn);
                    for role in Role::ALL.iter().filter(|role| role.waits() == Some(waits)) {
                        raise(&mut of_role[*role as usize], lane, fate);
                    }
                } else {
                    let is_meant =
                        |kind: &&Kind| change.kind.map_or(kind.is_work(), |of| of == **kind);
                    for kind in Kind::ALL.iter().filter(is_meant) {
                        raise(&mut of_kind[*kind as usize], lane, fate);
                    }
                }
            }
        }
        let edges = self.graph.edges.as_slice();
        let plain =
            |edge: &Edge| combined(of_kind[edge.kind as usize], of_role[edge.role as usize]);
        fates.clear();
        fates.extend(edges.iter().map(plain));
        for (lane, fate, change) in special {
            let chosen = Chosen::by(change, self.graph, self.tables)?;
            for &number in self.edges_of.candidates(change) {
                let edge = &edges[number as usize];
                if chosen.holds(number as usize, edge, self.graph) {
                    raise(&mut fates[number as usize], lane, fate);
                }
            }
        }
        Ok(())
    }

    /// The time of each node in each lane, counted from the first node.
    fn retime(&self, fates: &[u16], times: &mut Vec<Times>, progress: Progress<'_>) -> Result<()> {
        times.clear();
        times.reserve(self.n_nodes);
        let first_ns = self.first_ns();
        for node in self.graph.nodes.ids().take(self.n_nodes) {
            if node.row() % (1 << 16) == 0 {
                report(progress, node.row() as u64)?;
            }
            let mut latest = [REMOVED; LANES];
            for number in self.graph.edges.range(node) {
                let source = &times[self.graph.edges.as_slice()[number].source.row()];
                reach(&mut latest, source, self.lags_ns[number], fates[number]);
            }
            // Nodes to which nothing leads keep their time; all others come behind the first.
            let observed_ns = self.graph.nodes.time_ns(node) - first_ns;
            times.push(latest.map(|time_ns| if time_ns < 0 { observed_ns } else { time_ns }));
        }
        Ok(())
    }

    fn first_ns(&self) -> i64 {
        self.graph.nodes.times_ns().first().copied().unwrap_or(0)
    }
}

/// Added to any time, this makes it negative: times here count from the first node.
const REMOVED: i64 = i64::MIN;

/// Lets a node come no earlier than an edge says, in each lane.
#[inline]
fn reach(latest: &mut Times, source: &Times, lag_ns: i64, fates: u16) {
    if fates == 0 {
        for (latest, source) in latest.iter_mut().zip(source) {
            *latest = (*latest).max(source.wrapping_add(lag_ns));
        }
        return;
    }
    let changed_ns = [lag_ns, Ratio::HALF.of(lag_ns), 0, REMOVED];
    for (lane, (latest, source)) in latest.iter_mut().zip(source).enumerate() {
        let fate = usize::from(fates >> (BITS * lane)) % changed_ns.len();
        *latest = (*latest).max(source.wrapping_add(changed_ns[fate]));
    }
}

fn fate(effect: Effect) -> Fate {
    match effect {
        Effect::RemoveWait => Fate::Removed,
        Effect::Scale(ratio) if ratio == Ratio::ZERO => Fate::Dropped,
        Effect::Scale(ratio) if ratio == Ratio::HALF => Fate::Halved,
        Effect::Scale(_) => Fate::Kept,
    }
}

/// Raises the fate of one lane to another, if that is stronger.
fn raise(fates: &mut u16, lane: usize, fate: Fate) {
    let shift = BITS * lane;
    let known = (*fates >> shift) & 3;
    *fates = (*fates & !(3 << shift)) | (known.max(fate as u16) << shift);
}

/// The stronger fate of each lane.
fn combined(one: u16, two: u16) -> u16 {
    if one == 0 || two == 0 {
        return one | two;
    }
    let strongest = |lane: usize| ((one >> (BITS * lane)) & 3).max((two >> (BITS * lane)) & 3);
    (0..LANES).fold(0, |all, lane| all | strongest(lane) << (BITS * lane))
}

/// The numbers of the edges of each kind, and of those that wait.
struct EdgesOf {
    numbers: Vec<u32>,
    of_kind: Vec<Range<usize>>,
    waits: Vec<u32>,
}

impl EdgesOf {
    fn of(graph: &Graph) -> Self {
        let edges = graph.edges.as_slice();
        let mut count = vec![0_usize; Kind::ALL.len() + 1];
        for edge in edges {
            count[edge.kind as usize + 1] += 1;
        }
        for kind in 1..count.len() {
            count[kind] += count[kind - 1];
        }
        let of_kind = count.windows(2).map(|pair| pair[0]..pair[1]).collect();
        let mut numbers = vec![0; edges.len()];
        let mut waits = Vec::new();
        for (number, edge) in edges.iter().enumerate() {
            let slot = &mut count[edge.kind as usize];
            numbers[*slot] = row_in_column(number);
            *slot += 1;
            if edge.role.waits().is_some() {
                waits.push(row_in_column(number));
            }
        }
        Self { numbers, of_kind, waits }
    }

    /// Those that a change may be about.
    fn candidates(&self, change: &Change) -> &[u32] {
        match (change.effect, change.kind) {
            (Effect::RemoveWait, _) => &self.waits,
            (Effect::Scale(_), Some(kind)) => &self.numbers[self.of_kind[kind as usize].clone()],
            // Without a kind, a change is about work, whose kinds come first.
            (Effect::Scale(_), None) => {
                &self.numbers[..self.of_kind[Kind::Communication as usize].end]
            }
        }
    }
}

/// A window whose moments are looked up once.
struct Prepared<'a> {
    window: &'a Window,
    /// The nodes that open it, and those that may end it, unless it cuts events in two
    /// or the clock of a device was shifted.
    nodes: Option<(Vec<NodeId>, Vec<NodeId>)>,
}

impl<'a> Prepared<'a> {
    fn of(window: &'a Window, graph: &Graph) -> Self {
        let nodes_of = |moments: &[Moment]| -> Vec<NodeId> {
            moments.iter().filter_map(|&moment| node_of(graph, moment)).collect()
        };
        let nodes = match &window.opening {
            Opening::Moments(opening) => Some((nodes_of(opening), nodes_of(&window.candidates))),
            Opening::Time => None,
        };
        let is_plain = |&node: &NodeId| {
            let is_shifted = graph.timeline.clock_shift_ns(graph.nodes.event(node)) != 0;
            !is_shifted && graph.nodes.time_ns(node) <= window.end_ns
        };
        let are_plain =
            |(opening, ends): &(Vec<NodeId>, Vec<NodeId>)| opening.iter().chain(ends).all(is_plain);
        Self { window, nodes: nodes.filter(are_plain) }
    }

    /// So many nodes must be known to tell how long it takes.
    fn n_nodes(&self, graph: &Graph) -> usize {
        let last = |nodes: &[NodeId]| nodes.iter().map(|node| node.row() + 1).max();
        match &self.nodes {
            Some((opening, ends)) => last(opening).max(last(ends)).unwrap_or(0),
            None => graph.nodes.len(),
        }
    }

    fn length_ns(&self, graph: &Graph, times: &[Times], lane: usize) -> i64 {
        let first_ns = graph.nodes.times_ns().first().copied().unwrap_or(0);
        let Some((opening, ends)) = &self.nodes else {
            let time_ns = |node: NodeId| times[node.row()][lane] + first_ns;
            let (start_ns, end_ns) = moved(graph, self.window, &time_ns);
            return end_ns - start_ns;
        };
        let time_ns = |node: NodeId| times[node.row()][lane] + first_ns;
        let start_ns = opening.iter().map(|&node| time_ns(node)).max();
        let start_ns = start_ns.unwrap_or(self.window.start_ns);
        let observed_ns = ends.iter().map(|&node| graph.nodes.time_ns(node)).max();
        let end_ns = match (ends.iter().map(|&node| time_ns(node)).max(), observed_ns) {
            (Some(moved_ns), Some(observed_ns)) => moved_ns + self.window.end_ns - observed_ns,
            _ => self.window.end_ns,
        };
        (end_ns - start_ns).max(0)
    }
}
