//! Tries many changes in one pass over the graph.
//!
//! A trial is a set of changes. Several trials share a pass. Trials that change no edge, or the
//! same edges as another one, need no pass.

use std::borrow::Cow;
use std::cell::RefCell;

use super::Fact;
use super::busy_streams::BusyStreams;
use super::causes::{Causes, Reach};
use super::missing_records::{Bound, MissingRecords, Placing};
use super::slots::Slots;
use super::unexplained_gaps::UnexplainedGap;
use crate::error::Result;
use crate::graph::Graph;
use crate::ids::NodeId;
use crate::path::clip::{moved, node_of, own_start_ns};
use crate::path::what_if::{
    Change, EdgesOf, Effect, Extra, FixedStart, Pass, Ratio, Room, Rows, integer, measured,
};
use crate::path::windows::{Moment, Opening, Window};
use crate::progress::Progress;
use crate::tables::Tables;

/// The number of trials that share a pass: their times fill a cache line.
const LANES: usize = 8;

type Times = crate::path::what_if::Times<LANES>;

/// Tries changes in the windows of one scope.
pub(super) struct Trials<'a> {
    graph: &'a Graph,
    tables: &'a Tables,
    /// For edges that begin before the start, the remaining minimum latency.
    latencies_ns: Cow<'a, [i64]>,
    start: Option<FixedStart>,
    windows: Vec<Prepared<'a>>,
    edges_of: EdgesOf<'a>,
    open: &'a MissingRecords,
    busy: &'a BusyStreams,
    /// Edges that take no time in any trial.
    unexplained_gaps: Vec<u32>,
    n_nodes: usize,
    slots: Slots,
    /// Whether the unchanged windows take as long as in the trace.
    is_as_timed: bool,
    /// Buffers shared by all passes: allocating memory costs as much as a pass over it.
    scratch: RefCell<Scratch>,
}

/// Returns the length of the window after each set of changes, as [`what_if`](crate::path::what_if())
/// does.
///
/// Many what-ifs share a pass over the graph, which ends with the window.
///
/// # Errors
///
/// As for [`what_if`](crate::path::what_if()).
pub fn lengths_ns(
    graph: &Graph,
    tables: &Tables,
    window: &Window,
    (latencies_ns, unchanged_ns): (&[i64], i64),
    sets: &[Vec<Change>],
    progress: Progress<'_>,
) -> Result<Vec<i64>> {
    let (open, busy) = (MissingRecords::default(), BusyStreams::default());
    let windows = std::slice::from_ref(window);
    let try_all = |sets: &[Vec<Change>], from_ns: Option<i64>| {
        let missing = (&open, &[][..], &busy);
        let trials = Trials::new(graph, tables, (latencies_ns, false), windows, missing, from_ns);
        let sets: Vec<_> = sets.iter().map(Vec::as_slice).collect();
        let found = trials.lengths_ns(&sets, Placing::AsTimed, progress)?;
        Ok(found.into_iter().flatten().collect())
    };
    if let Some(own_ns) = own_start_ns(graph, window) {
        return try_all(sets, Some(own_ns));
    }
    let found = measured((graph, window), unchanged_ns, sets, &try_all)?;
    Ok(found.into_iter().map(|it| it.1).collect())
}

/// The factor of each edge and the time in each slot, for all lanes.
#[derive(Default)]
struct Scratch {
    rows: Rows<LANES>,
    times: Vec<Times>,
}

impl<'a> Trials<'a> {
    /// Creates the trials. `held_ns` is a time before which everything stays as recorded.
    /// `is_as_timed` is true if the latencies are those of the graph.
    pub(super) fn new(
        graph: &'a Graph,
        tables: &'a Tables,
        (latencies_ns, is_as_timed): (&'a [i64], bool),
        windows: &'a [Window],
        (open, unexplained_gaps, busy): (&'a MissingRecords, &[UnexplainedGap], &'a BusyStreams),
        held_ns: Option<i64>,
    ) -> Self {
        let start = held_ns.map(|at_ns| FixedStart::at(at_ns, graph));
        let latencies_ns = match &start {
            Some(start) => Cow::Owned(start.left_ns(latencies_ns, graph)),
            None => Cow::Borrowed(latencies_ns),
        };
        let windows: Vec<_> = windows.iter().map(|window| Prepared::of(window, graph)).collect();
        let n_nodes = windows.iter().map(|window| window.n_nodes(graph)).max().unwrap_or(0);
        let slots = Slots::of(graph, n_nodes, &asked(&windows, n_nodes), &open.bounds);
        let (edges_of, scratch) = (EdgesOf::of(graph), RefCell::default());
        let unexplained_gaps = unexplained_gaps.iter().map(|gap| gap.edge).collect();
        Self {
            graph,
            tables,
            latencies_ns,
            start,
            windows,
            edges_of,
            open,
            busy,
            unexplained_gaps,
            n_nodes,
            slots,
            is_as_timed,
            scratch,
        }
    }

    /// Whether nothing is missing in the windows, so that there is a single gain and start.
    pub(super) fn is_closed(&self) -> bool {
        self.open.is_empty()
    }

    /// Returns the length of each window without its unexplained gaps.
    ///
    /// # Errors
    ///
    /// Returns an error only if `progress` asks to stop.
    pub(super) fn unchanged_ns(&self, progress: Progress<'_>) -> Result<Vec<i64>> {
        let found = self.lengths_ns(&[&[]], Placing::AsTimed, progress)?;
        Ok(found.into_iter().next().unwrap_or_default())
    }

    /// Returns how long a stream is known to be busy in all windows after some changes.
    pub(super) fn busy_ns(&self, changes: &[Change]) -> i64 {
        let mut removed = Vec::new();
        for change in changes {
            let is_whole = change.is_plain() && change.effect == Effect::Scale(Ratio::ZERO);
            for side in self.reach(change).causes().of_device_sides() {
                if !is_whole {
                    return 0;
                }
                if !removed.contains(&side) {
                    removed.push(side);
                }
            }
        }
        self.busy.least_ns(&removed)
    }

    /// Returns the most important kind of missing record.
    pub(super) fn missing(&self) -> Fact {
        match (self.open.has_missing_activities, self.open.n_unlinked > 0) {
            (true, _) => Fact::MissingActivities,
            (false, true) => Fact::LateLaunches,
            (false, false) => Fact::UnexplainedTime,
        }
    }

    /// Returns the length of each window in each trial, one row per trial.
    ///
    /// # Errors
    ///
    /// Returns an error if a pattern is not a valid regular expression, or if `progress` asks to
    /// stop.
    pub(super) fn lengths_ns(
        &self,
        trials: &[&[Change]],
        placing: Placing,
        progress: Progress<'_>,
    ) -> Result<Vec<Vec<i64>>> {
        let mut different: Vec<&[Change]> = Vec::new();
        let mut place_of = Vec::with_capacity(trials.len());
        for trial in trials {
            let known = different.iter().position(|other| other == trial);
            place_of.push(known.unwrap_or(different.len()));
            if known.is_none() {
                different.push(trial);
            }
        }
        let lengths = self.different_lengths_ns(&different, placing, progress)?;
        Ok(place_of.into_iter().map(|place| lengths[place].clone()).collect())
    }

    fn different_lengths_ns(
        &self,
        trials: &[&[Change]],
        placing: Placing,
        progress: Progress<'_>,
    ) -> Result<Vec<Vec<i64>>> {
        let mut lengths = vec![Vec::with_capacity(self.windows.len()); trials.len()];
        let places: Vec<_> = (0..trials.len()).collect();
        let (working, idle): (Vec<_>, Vec<_>) = places.into_iter().partition(|&place| {
            !self.is_as_timed
                || !self.unexplained_gaps.is_empty()
                || self.may_change(trials[place])
                || self.may_open(trials[place])
        });
        for place in idle {
            lengths[place].extend(self.windows.iter().map(Prepared::observed_ns));
        }
        let Scratch { rows, times } = &mut *self.scratch.borrow_mut();
        for group in working.chunks(LANES) {
            let changes: Vec<_> = group.iter().map(|&place| trials[place]).collect();
            rows.find(&changes, self.graph, &self.edges_of, self.tables)?;
            self.find_open(&changes, placing, rows);
            let bounds = if placing == Placing::Least { &self.open.bounds[..] } else { &[] };
            self.retime(rows, (bounds, &self.causes_of_lanes(&changes)), times, progress)?;
            let retimed = Retimed { slots: &self.slots, times };
            for window in &self.windows {
                let of_lanes = window.lengths_ns(self.graph, &retimed);
                for (&place, length_ns) in group.iter().zip(of_lanes) {
                    lengths[place].push(length_ns);
                }
            }
        }
        Ok(lengths)
    }

    /// Whether any edge has a kind that is changed.
    fn may_change(&self, changes: &[Change]) -> bool {
        changes.iter().any(|change| self.edges_of.may_change(change))
    }

    /// Whether missing records may be affected by the changes.
    fn may_open(&self, changes: &[Change]) -> bool {
        !self.open.gaps.is_empty()
            && changes.iter().any(|change| self.reach(change).causes() != Causes::default())
    }

    fn reach<'c>(&self, change: &'c Change) -> Reach<'c> {
        Reach::of(change, self.graph)
    }

    /// Returns the causes that the changes of each lane remove.
    fn causes_of_lanes(&self, trials: &[&[Change]]) -> Vec<Causes> {
        let of = |changes: &&[Change]| {
            let whole = changes.iter().map(|change| self.reach(change).causes_of_all());
            whole.fold(Causes::default(), Causes::with)
        };
        trials.iter().map(of).collect()
    }

    /// Shortens unexplained time if the changes may shorten it, or must, depending on the
    /// placement.
    fn find_open(&self, trials: &[&[Change]], placing: Placing, rows: &mut Rows<LANES>) {
        for &edge in &self.unexplained_gaps {
            (0..LANES).for_each(|lane| rows.at_most(edge, lane, Ratio::ZERO));
        }
        if placing == Placing::AsTimed {
            return;
        }
        for (lane, changes) in trials.iter().enumerate() {
            for change in *changes {
                let reach = self.reach(change);
                let Some(by) = reach.factor() else { continue };
                for gap in &self.open.gaps {
                    let of = if placing == Placing::Most { gap.may } else { gap.must };
                    if of.meets(reach.causes()) && reach.has(gap.edge, self.graph) {
                        rows.at_most(gap.edge, lane, by);
                    }
                }
            }
        }
    }

    /// Returns the time of each needed node in each lane, relative to the first node.
    fn retime(
        &self,
        rows: &Rows<LANES>,
        (bounds, causes): (&[Bound], &[Causes]),
        times: &mut Vec<Times>,
        progress: Progress<'_>,
    ) -> Result<()> {
        let pass = Pass {
            graph: self.graph,
            latencies_ns: &self.latencies_ns,
            start: self.start.as_ref(),
            room: &self.slots,
            n_nodes: self.n_nodes,
        };
        let extras = bounds.iter().map(|bound| self.extra(bound, causes));
        pass.run(rows, extras, times, progress)
    }

    /// Returns the edge of a bound, in the lanes that do not remove it.
    #[allow(clippy::cast_precision_loss)] // exact below 2^53
    fn extra(&self, bound: &Bound, causes: &[Causes]) -> Extra<LANES> {
        let mut latencies = [self.left_ns(bound) as f64; LANES];
        for (latency, _) in
            latencies.iter_mut().zip(causes).filter(|(_, of)| of.meets(bound.unless))
        {
            *latency = f64::NEG_INFINITY;
        }
        let is_in_all = latencies.iter().all(|latency| latency.is_finite());
        Extra { target: bound.target, source: bound.source, latencies, is_in_all }
    }

    /// Returns the remaining latency of a bound at the start, if the start is fixed.
    fn left_ns(&self, bound: &Bound) -> i64 {
        let before_ns = |start: &FixedStart| start.at_ns - self.graph.nodes.time_ns(bound.source);
        let passed_ns = self.start.as_ref().map_or(0, before_ns).max(0);
        if passed_ns == 0 { bound.least_ns } else { (bound.least_ns - passed_ns).max(0) }
    }
}

/// The result of one pass: the times of the requested nodes, relative to the first node.
struct Retimed<'a> {
    slots: &'a Slots,
    times: &'a [Times],
}

impl Retimed<'_> {
    fn of(&self, node: NodeId) -> &Times {
        &self.times[self.slots.slot(node)]
    }
}

/// A window with its moments resolved to nodes.
struct Prepared<'a> {
    window: &'a Window,
    /// The nodes that open it, and those that may end it; `None` if it cuts events or the clock of
    /// a device was shifted.
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

    /// Returns the number of nodes that must be timed to determine its length.
    fn n_nodes(&self, graph: &Graph) -> usize {
        let last = |nodes: &[NodeId]| nodes.iter().map(|node| node.row() + 1).max();
        match &self.nodes {
            Some((opening, ends)) => last(opening).max(last(ends)).unwrap_or(0),
            None => graph.nodes.len(),
        }
    }

    fn observed_ns(&self) -> i64 {
        self.window.end_ns - self.window.start_ns
    }

    /// Returns the length of the window in each lane.
    fn lengths_ns(&self, graph: &Graph, retimed: &Retimed<'_>) -> [i64; LANES] {
        let first_ns = graph.nodes.times_ns().first().copied().unwrap_or(0);
        let Some((opening, ends)) = &self.nodes else {
            return std::array::from_fn(|lane| {
                let time_ns = |node: NodeId| integer(retimed.of(node)[lane]) + first_ns;
                let (start_ns, end_ns) = moved(graph, self.window, &time_ns);
                end_ns - start_ns
            });
        };
        let (starts, ends_in) = (latest(opening, retimed), latest(ends, retimed));
        let observed_ns = ends.iter().map(|&node| graph.nodes.time_ns(node)).max();
        std::array::from_fn(|lane| {
            let moved_ns = integer(starts[lane]).saturating_add(first_ns);
            let start_ns = if opening.is_empty() { self.window.start_ns } else { moved_ns };
            let end_ns = observed_ns.map_or(self.window.end_ns, |observed_ns| {
                integer(ends_in[lane]) + first_ns + self.window.end_ns - observed_ns
            });
            (end_ns - start_ns).max(0)
        })
    }
}

/// Returns the nodes whose times determine the lengths of some windows, as far as they are timed.
/// All windows that need every node share one list, because there may be many.
fn asked(windows: &[Prepared<'_>], n_nodes: usize) -> Vec<NodeId> {
    let nodes: Option<Vec<_>> = windows.iter().map(|window| window.nodes.as_ref()).collect();
    match nodes {
        Some(nodes) => nodes
            .into_iter()
            .flat_map(|(opening, ends)| [opening, ends])
            .flatten()
            .copied()
            .collect(),
        None => (0..n_nodes).map(NodeId::from_row).collect(),
    }
}

/// Returns the time of the latest of some nodes, in each lane.
fn latest(nodes: &[NodeId], retimed: &Retimed<'_>) -> Times {
    let mut latest = [f64::NEG_INFINITY; LANES];
    for node in nodes {
        for (latest, time_ns) in latest.iter_mut().zip(retimed.of(*node)) {
            *latest = if *time_ns > *latest { *time_ns } else { *latest };
        }
    }
    latest
}
