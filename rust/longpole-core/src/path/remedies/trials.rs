//! Many changes tried in one pass over the graph.
//!
//! A trial is a set of changes. What bounds a single what-if is the way through memory, so
//! several trials share it: a node has a time for each. Trials that change no edge, or the
//! same edges as another one, take no pass at all.
//!
//! Times are floating-point numbers, which every processor adds and compares in pairs. They
//! are counted from the first node, so that they are exact for traces of up to 104 days.
//!
//! One file: what a pass does and what it saves explain each other.

use crate::names::Names;
use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};

use super::Fact;
use super::busy_streams::BusyStreams;
use super::causes::Causes;
use super::holes::Hole;
use super::model::Side;
use super::open::{Bound, Open, Placing};
use super::slots::Slots;
use crate::error::Result;
use crate::graph::{Edge, Graph, Kind, Role, matching};
use crate::ids::{NodeId, row_in_column};
use crate::path::clip::{moved, node_of};
use crate::path::what_if::{Change, Chosen, Effect, Ratio};
use crate::path::windows::{Moment, Opening, Window};
use crate::progress::{Progress, report};
use crate::tables::Tables;

/// So many trials share a pass: their times fill a line of the cache.
const LANES: usize = 8;

type Times = [f64; LANES];

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
    /// Of those that begin before the start what is left of them then.
    lags_ns: Cow<'a, [i64]>,
    start: Option<FixedStart>,
    windows: Vec<Prepared<'a>>,
    edges_of: EdgesOf<'a>,
    open: &'a Open,
    busy: &'a BusyStreams,
    /// Edges that take no time in any trial.
    holes: Vec<u32>,
    n_nodes: usize,
    slots: Slots,
    /// What all passes share: fresh memory costs as much as a pass over it.
    scratch: RefCell<Scratch>,
}

/// The fate of each edge and the times in each slot, in all lanes.
#[derive(Default)]
struct Scratch {
    fates: Vec<u16>,
    times: Vec<Times>,
}

impl<'a> Trials<'a> {
    /// `held_ns` is a time at which the first window begins, whatever changes.
    pub(super) fn new(
        graph: &'a Graph,
        tables: &'a Tables,
        lags_ns: &'a [i64],
        windows: &'a [Window],
        (open, holes, busy): (&'a Open, &[Hole], &'a BusyStreams),
        held_ns: Option<i64>,
    ) -> Self {
        let fixed_ns = windows.iter().find_map(Window::fixed_start_ns).or(held_ns);
        let start = fixed_ns.map(|at_ns| FixedStart::at(at_ns, graph));
        let lags_ns = match &start {
            Some(start) => Cow::Owned(start.left_ns(lags_ns, graph)),
            None => Cow::Borrowed(lags_ns),
        };
        let windows: Vec<_> = windows.iter().map(|window| Prepared::of(window, graph)).collect();
        let n_nodes = windows.iter().map(|window| window.n_nodes(graph)).max().unwrap_or(0);
        let asked = windows.iter().flat_map(|window| window.asked(n_nodes));
        let slots = Slots::of(graph, n_nodes, asked, &open.bounds);
        let (edges_of, scratch) = (EdgesOf::of(graph), RefCell::default());
        let holes = holes.iter().map(|hole| hole.edge).collect();
        Self {
            graph,
            tables,
            lags_ns,
            start,
            windows,
            edges_of,
            open,
            busy,
            holes,
            n_nodes,
            slots,
            scratch,
        }
    }

    /// Whether nothing is missing in the windows, so that there is one gain from one start.
    pub(super) fn is_closed(&self) -> bool {
        self.open.is_empty()
    }

    /// How long each window takes without its holes.
    ///
    /// # Errors
    ///
    /// Only when `progress` asks to stop.
    pub(super) fn unchanged_ns(&self, progress: Progress<'_>) -> Result<Vec<i64>> {
        let found = self.lengths_ns(&[&[]], Placing::AsTimed, progress)?;
        Ok(found.into_iter().next().unwrap_or_default())
    }

    /// How long a stream is busy in all windows after some changes.
    pub(super) fn busy_ns(&self, changes: &[Change]) -> i64 {
        let is_halved = |change: &Change| fate(change.effect) == Fate::Halved;
        if changes.iter().any(is_halved) {
            return 0;
        }
        let is_dropped = |side: &&Side| {
            let of_side = |change: &Change| change.kind.is_some_and(|kind| side.has(kind));
            **side != Side::Host && changes.iter().any(of_side)
        };
        self.busy.least_ns(&Side::ALL.iter().filter(is_dropped).copied().collect::<Vec<_>>())
    }

    /// What is missing above all.
    pub(super) fn missing(&self) -> Fact {
        match (self.open.has_lost_work, self.open.n_unlinked > 0) {
            (true, _) => Fact::LostWork,
            (false, true) => Fact::LateLaunches,
            (false, false) => Fact::UnexplainedTime,
        }
    }

    /// So many more trials fit into the passes that some take.
    pub(super) fn n_free(&self, trials: &[Vec<Change>]) -> usize {
        let is_new = |place: usize| !trials[..place].contains(&trials[place]);
        let works = |place: &usize| is_new(*place) && self.may_change(&trials[*place]);
        let n_working = (0..trials.len()).filter(works).count();
        n_working.next_multiple_of(LANES) - n_working
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
            !self.holes.is_empty() || self.may_change(trials[place]) || self.may_open(trials[place])
        });
        for place in idle {
            lengths[place].extend(self.windows.iter().map(Prepared::observed_ns));
        }
        let Scratch { fates, times } = &mut *self.scratch.borrow_mut();
        for group in working.chunks(LANES) {
            let changes: Vec<_> = group.iter().map(|&place| trials[place]).collect();
            self.find_fates(&changes, fates)?;
            self.find_open(&changes, placing, fates);
            let bounds = if placing == Placing::Least { &self.open.bounds[..] } else { &[] };
            self.retime(fates, (bounds, &causes_of_lanes(&changes)), times, progress)?;
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

    /// Whether there is an edge of a kind that is changed.
    fn may_change(&self, changes: &[Change]) -> bool {
        changes.iter().any(|change| match (change.effect, change.kind) {
            (Effect::RemoveWait, _) => !self.edges_of.waits().is_empty(),
            (Effect::Scale(_), Some(kind)) => self.edges_of.has_kind[kind as usize],
            (Effect::Scale(_), None) => true,
        })
    }

    /// Whether something that is missing may be what is changed.
    fn may_open(&self, changes: &[Change]) -> bool {
        !self.open.gaps.is_empty()
            && changes.iter().any(|change| Causes::of(change) != Causes::default())
    }

    /// Removes what nothing explains where the changes may remove it, or must.
    fn find_open(&self, trials: &[&[Change]], placing: Placing, fates: &mut [u16]) {
        for &edge in &self.holes {
            (0..LANES).for_each(|lane| raise(&mut fates[edge as usize], lane, Fate::Dropped));
        }
        if placing == Placing::AsTimed {
            return;
        }
        for (lane, changes) in trials.iter().enumerate() {
            for change in *changes {
                let causes = Causes::of(change);
                let fate = fate(change.effect).min(Fate::Dropped);
                for gap in &self.open.gaps {
                    let of = if placing == Placing::Most { gap.may } else { gap.must };
                    if of.meets(causes) {
                        raise(&mut fates[gap.edge as usize], lane, fate);
                    }
                }
            }
        }
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
        self.find_named(&mut special, fates)?;
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

    /// The same for changes of a kind by name alone, which share a pass; takes them out of the
    /// others.
    fn find_named(
        &self,
        special: &mut Vec<(usize, Fate, &Change)>,
        fates: &mut [u16],
    ) -> Result<()> {
        let strings = &self.tables.strings;
        let mut of_kinds: Vec<Vec<u16>> = vec![Vec::new(); Kind::ALL.len()];
        for (lane, fate, change) in special.iter() {
            let Some((kind, pattern)) = named(change) else { continue };
            let of_kind = &mut of_kinds[kind as usize];
            of_kind.resize(strings.len(), 0);
            for (of_name, is_meant) in of_kind.iter_mut().zip(matching(pattern, self.tables)?) {
                if is_meant {
                    raise(of_name, *lane, *fate);
                }
            }
        }
        special.retain(|(_, _, change)| named(change).is_none());
        let timeline = &self.graph.timeline;
        let edges = self.graph.edges.as_slice();
        for (kind, of_name) in Kind::ALL.iter().zip(&of_kinds) {
            if of_name.is_empty() {
                continue;
            }
            for &number in self.edges_of.of_kind(*kind) {
                let name = edges[number as usize].event().and_then(|event| timeline.name(event));
                if let Some(name) = name {
                    let known = &mut fates[number as usize];
                    *known = combined(*known, of_name[name.row()]);
                }
            }
        }
        Ok(())
    }

    /// The time of each node that is needed in each lane, counted from the first node.
    fn retime(
        &self,
        fates: &mut [u16],
        (bounds, causes): (&[Bound], &[Causes]),
        times: &mut Vec<Times>,
        progress: Progress<'_>,
    ) -> Result<()> {
        let weights = Weights::of(fates);
        times.resize(self.slots.len(), [0.0; LANES]);
        let first_ns = self.first_ns();
        let edges = self.graph.edges.as_slice();
        let (start_ns, n_before) =
            self.start.as_ref().map_or((0, 0), |start| (start.at_ns, start.n_before));
        let mut bounds = bounds.iter().peekable();
        let kept = Weights::of_lanes(0);
        let removed = |bound: &Bound| {
            let lanes = causes.iter().enumerate();
            let mut fates = 0;
            for (lane, _) in lanes.filter(|(_, causes)| causes.meets(bound.unless)) {
                raise(&mut fates, lane, Fate::Removed);
            }
            Weights::of_lanes(fates)
        };
        for node in self.graph.nodes.ids().take(self.n_nodes) {
            if node.row() % (1 << 16) == 0 {
                report(progress, node.row() as u64)?;
            }
            let Some(slot) = self.slots.of_node(node) else { continue };
            while bounds.next_if(|bound| bound.target < node).is_some() {}
            if node.row() < n_before {
                times[slot] = [float(start_ns - first_ns); LANES];
                continue;
            }
            let range = self.graph.edges.range(node);
            let edges = edges[range.clone()].iter();
            let (fates, lags_ns) = (&fates[range.clone()], &self.lags_ns[range]);
            let mut latest = [f64::NEG_INFINITY; LANES];
            let mut is_led_to = false;
            for ((edge, fate), lag_ns) in edges.zip(fates).zip(lags_ns) {
                let source = &times[self.slots.slot(edge.source)];
                let weights = &weights[usize::from(*fate)];
                weights.reach(&mut latest, source, *lag_ns);
                is_led_to |= weights.is_kept;
            }
            while let Some(bound) = bounds.next_if(|bound| bound.target == node) {
                let source = &times[self.slots.slot(bound.source)];
                let left_ns = self.left_ns(bound);
                if bound.unless == Causes::default() {
                    kept.reach(&mut latest, source, left_ns);
                } else {
                    removed(bound).reach(&mut latest, source, left_ns);
                }
            }
            // Nodes to which nothing leads keep their time; all others come behind the first.
            if !is_led_to && latest.iter().any(|time_ns| *time_ns < 0.0) {
                let observed_ns = float(self.graph.nodes.time_ns(node) - first_ns);
                latest = latest.map(|time_ns| if time_ns < 0.0 { observed_ns } else { time_ns });
            }
            times[slot] = latest;
        }
        Ok(())
    }

    /// What is left of a bound at the start, if that is fixed.
    fn left_ns(&self, bound: &Bound) -> i64 {
        let before_ns = |start: &FixedStart| start.at_ns - self.graph.nodes.time_ns(bound.source);
        let passed_ns = self.start.as_ref().map_or(0, before_ns).max(0);
        if passed_ns == 0 { bound.least_ns } else { (bound.least_ns - passed_ns).max(0) }
    }

    fn first_ns(&self) -> i64 {
        self.graph.nodes.times_ns().first().copied().unwrap_or(0)
    }
}

#[allow(clippy::cast_precision_loss)] // exact below 2^53
fn float(time_ns: i64) -> f64 {
    time_ns as f64
}

#[allow(clippy::cast_possible_truncation)] // a sum of integers
fn integer(time_ns: f64) -> i64 {
    time_ns as i64
}

/// A time at which the window begins: all that happens before stays as it was.
struct FixedStart {
    at_ns: i64,
    /// So many nodes come no later.
    n_before: usize,
}

impl FixedStart {
    fn at(at_ns: i64, graph: &Graph) -> Self {
        let n_before = graph.nodes.times_ns().partition_point(|&time_ns| time_ns <= at_ns);
        Self { at_ns, n_before }
    }

    /// What is left of each lag.
    fn left_ns(&self, lags_ns: &[i64], graph: &Graph) -> Vec<i64> {
        let edges = graph.edges.as_slice().iter();
        let left_ns = |(edge, &lag_ns): (&Edge, &i64)| {
            lag_ns - edge.passed_ns(lag_ns, self.at_ns, &graph.nodes)
        };
        edges.zip(lags_ns).map(left_ns).collect()
    }
}

/// How often a lag and its half count in each lane, and what is added: infinitely little where
/// the edge is gone.
struct Weights {
    /// Whether all lags count whole in all lanes, as most do.
    is_kept: bool,
    whole: Times,
    half: Times,
    added: Times,
}

impl Weights {
    /// The different rows of fates; each edge is given the number of its row instead.
    fn of(fates: &mut [u16]) -> Vec<Self> {
        let mut row_of = vec![u16::MAX; 1 << 16];
        let mut rows = Vec::new();
        for fates in fates {
            let row = &mut row_of[usize::from(*fates)];
            if *row == u16::MAX {
                *row = u16::try_from(rows.len()).unwrap_or(u16::MAX);
                rows.push(Self::of_lanes(*fates));
            }
            *fates = *row;
        }
        rows
    }

    fn of_lanes(fates: u16) -> Self {
        let fate = |lane: usize| (fates >> (BITS * lane)) & 3;
        let lanes: [u16; LANES] = std::array::from_fn(fate);
        let counts = |of: Fate| lanes.map(|fate| f64::from(u8::from(fate == of as u16)));
        let is_gone = |fate| if fate == Fate::Removed as u16 { f64::NEG_INFINITY } else { 0.0 };
        let is_kept = fates == 0;
        Self {
            is_kept,
            whole: counts(Fate::Kept),
            half: counts(Fate::Halved),
            added: lanes.map(is_gone),
        }
    }

    /// Lets a node come no earlier than an edge says, in each lane.
    #[inline]
    fn reach(&self, latest: &mut Times, source: &Times, lag_ns: i64) {
        let mut lags = [float(lag_ns); LANES];
        if !self.is_kept {
            let half = float(half_ns(lag_ns));
            for (lane, lag) in lags.iter_mut().enumerate() {
                *lag = *lag * self.whole[lane] + half * self.half[lane] + self.added[lane];
            }
        }
        for lane in 0..LANES {
            let reached = source[lane] + lags[lane];
            latest[lane] = if reached > latest[lane] { reached } else { latest[lane] };
        }
    }
}

/// Half of a time, rounded to even, as [`Ratio::HALF`] has it.
fn half_ns(time_ns: i64) -> i64 {
    let floor = time_ns >> 1;
    floor + (time_ns & floor & 1)
}

/// The kind and the pattern of a change that chooses by these alone.
fn named(change: &Change) -> Option<(Kind, &str)> {
    let is_scaled = matches!(change.effect, Effect::Scale(_));
    let by_these_alone = is_scaled && change.events.is_none() && change.event_kind.is_none();
    Some((change.kind?, change.matching.as_deref()?)).filter(|_| by_these_alone)
}

fn fate(effect: Effect) -> Fate {
    match effect {
        Effect::RemoveWait => Fate::Removed,
        Effect::Scale(ratio) if ratio == Ratio::ZERO => Fate::Dropped,
        Effect::Scale(ratio) if ratio == Ratio::HALF => Fate::Halved,
        Effect::Scale(_) => Fate::Kept,
    }
}

/// What the changes of each lane remove.
fn causes_of_lanes(trials: &[&[Change]]) -> Vec<Causes> {
    let of = |changes: &&[Change]| {
        changes.iter().fold(Causes::default(), |all, change| all.with(Causes::of(change)))
    };
    trials.iter().map(of).collect()
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

/// The numbers of the edges of each kind, and of those that wait, found when asked for.
struct EdgesOf<'a> {
    graph: &'a Graph,
    has_kind: Vec<bool>,
    of_kind: Vec<OnceCell<Vec<u32>>>,
    work: OnceCell<Vec<u32>>,
    waits: OnceCell<Vec<u32>>,
}

impl<'a> EdgesOf<'a> {
    fn of(graph: &'a Graph) -> Self {
        let mut has_kind = vec![false; Kind::ALL.len()];
        for edge in graph.edges.as_slice() {
            has_kind[edge.kind as usize] = true;
        }
        let of_kind = Kind::ALL.iter().map(|_| OnceCell::new()).collect();
        Self { graph, has_kind, of_kind, work: OnceCell::new(), waits: OnceCell::new() }
    }

    /// Those that a change may be about.
    fn candidates(&self, change: &Change) -> &[u32] {
        match (change.effect, change.kind) {
            (Effect::RemoveWait, _) => self.waits(),
            (Effect::Scale(_), Some(kind)) => self.of_kind(kind),
            (Effect::Scale(_), None) => {
                self.work.get_or_init(|| self.numbers(|edge| edge.kind.is_work()))
            }
        }
    }

    fn of_kind(&self, kind: Kind) -> &[u32] {
        self.of_kind[kind as usize].get_or_init(|| self.numbers(|edge| edge.kind == kind))
    }

    fn waits(&self) -> &[u32] {
        self.waits.get_or_init(|| self.numbers(|edge| edge.role.waits().is_some()))
    }

    fn numbers(&self, counts: impl Fn(&Edge) -> bool) -> Vec<u32> {
        let edges = self.graph.edges.as_slice().iter().enumerate();
        edges.filter(|(_, edge)| counts(edge)).map(|(number, _)| row_in_column(number)).collect()
    }
}

/// What one pass finds: the times of the nodes that are asked for, counted from the first node.
struct Retimed<'a> {
    slots: &'a Slots,
    times: &'a [Times],
}

impl Retimed<'_> {
    fn of(&self, node: NodeId) -> &Times {
        &self.times[self.slots.slot(node)]
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

    /// The nodes whose times tell how long it takes, of so many that are known.
    fn asked(&self, n_nodes: usize) -> Vec<NodeId> {
        match &self.nodes {
            Some((opening, ends)) => [&opening[..], ends].concat(),
            None => (0..n_nodes).map(NodeId::from_row).collect(),
        }
    }

    fn observed_ns(&self) -> i64 {
        self.window.end_ns - self.window.start_ns
    }

    /// How long it takes in each lane.
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

/// When the last of some nodes comes, in each lane.
fn latest(nodes: &[NodeId], retimed: &Retimed<'_>) -> Times {
    let mut latest = [f64::NEG_INFINITY; LANES];
    for node in nodes {
        for (latest, time_ns) in latest.iter_mut().zip(retimed.of(*node)) {
            *latest = if *time_ns > *latest { *time_ns } else { *latest };
        }
    }
    latest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_a_time_is_what_a_change_by_half_gives() {
        for time_ns in -9..10 {
            assert_eq!(half_ns(time_ns), Ratio::HALF.of(time_ns), "{time_ns}");
        }
    }

    #[test]
    fn each_lane_has_its_own_fate() {
        let mut fates = 0;
        let all = [Fate::Kept, Fate::Halved, Fate::Dropped, Fate::Removed];
        for (lane, fate) in all.into_iter().enumerate() {
            raise(&mut fates, lane, fate);
        }
        let mut latest = [f64::NEG_INFINITY; LANES];
        Weights::of_lanes(fates).reach(&mut latest, &[100.0; LANES], 7);
        assert_eq!(latest[..4], [107.0, 104.0, 100.0, f64::NEG_INFINITY]);
    }
}
