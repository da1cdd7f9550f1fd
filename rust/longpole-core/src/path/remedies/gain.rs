//! Gains: how much shorter the windows of a verdict become, and within which bounds.
//!
//! Every gain is made here, from changes alone: those of sides, of remedies, and of what-ifs. Five
//! things bound it: records that are missing, the cost of recording, the pace of the host, the time
//! for which the busiest stream stays busy, and the gain of removing all that the changes touch.

use std::collections::{BTreeMap, BTreeSet};

use super::bounds::{Bounds, Fact};
use super::facts::{Activity, Facts};
use super::missing_records::MissingRecords;
use super::model::Side;
use super::question::Question;
use super::sample::Sample;
use super::trial::Trial;
use super::unexplained_gaps::UnexplainedGap;
use crate::error::Result;
use crate::graph::{Graph, Kind};
use crate::ids::EventId;
use crate::names::Names;
use crate::path::walk::Path;
use crate::path::what_if::{Change, Effect, latencies_ns};
use crate::path::windows::Scope;
use crate::progress::Progress;
use crate::tables::EventKind;

/// Minimum fraction of the recorded host time that the host needs without the profiler. The cost
/// of recording on the host is known to about a quarter.
const LEAST_PACE: f64 = 0.75;

/// A possible change of the program.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Possible {
    /// The changes that are certain to be possible.
    pub careful: Vec<Change>,
    /// All changes that may be possible, which replace these; `None` if there are no others.
    pub hopeful: Option<Vec<Change>>,
}

impl Possible {
    fn most(&self) -> &[Change] {
        self.hopeful.as_deref().unwrap_or(&self.careful)
    }
}

/// What some changes touch.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Touched {
    /// Whether they touch each side, in the order of [`Side::ALL`].
    sides: [bool; Side::ALL.len()],
    /// Whether they touch anything else, such as delays of the device.
    others: bool,
}

impl Touched {
    fn of(possible: &Possible, graph: &Graph) -> Self {
        let mut found = Self::default();
        let hopeful = possible.hopeful.iter().flatten();
        for change in possible.careful.iter().chain(hopeful) {
            found.add(change, graph);
        }
        found
    }

    fn only(side: Side) -> Self {
        let mut found = Self::default();
        found.sides[side as usize] = true;
        found
    }

    fn add(&mut self, change: &Change, graph: &Graph) {
        let timeline = &graph.timeline;
        if matches!(change.effect, Effect::Insert(_)) {
            return;
        }
        if change.effect == Effect::RemoveWait {
            self.sides[Side::Waits as usize] = true;
        } else if change.time_ranges.is_some() {
            self.sides[Side::Host as usize] = true;
        } else if let Some(kind) = change.kind {
            self.add_kind(kind);
        } else if let Some(kind) = change.event_kind {
            let side = if kind.is_device_work() { Side::Copies } else { Side::Host };
            self.sides[side as usize] = true;
        } else if let Some(events) = &change.events {
            for order in events.iter().filter_map(|&event| timeline.order(event)) {
                if timeline.kind(order).is_device_work() {
                    let own = graph.edges.range(graph.nodes.end(order));
                    let kinds = graph.edges.as_slice()[own].iter().map(|edge| edge.kind);
                    kinds.filter(|&kind| is_of_work(kind)).for_each(|kind| self.add_kind(kind));
                } else {
                    self.sides[Side::Host as usize] = true;
                }
            }
        } else {
            self.others = true;
        }
    }

    fn add_kind(&mut self, kind: Kind) {
        match Side::WORK.into_iter().find(|side| side.has(kind)) {
            Some(side) => self.sides[side as usize] = true,
            None => self.others = true,
        }
    }

    fn sides(self) -> impl Iterator<Item = Side> {
        Side::ALL.iter().copied().filter(move |&side| self.sides[side as usize])
    }

    /// Returns the changes that remove all that is touched, if that is sides alone.
    fn whole(self) -> Option<Vec<Change>> {
        let sides: Vec<_> = if self.others { Vec::new() } else { self.sides().collect() };
        (!sides.is_empty()).then(|| without(&sides))
    }
}

/// How much shorter the windows of a verdict become. Only this module makes one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gain {
    duration_ns: i64,
    value: f64,
    bounds: Bounds,
    touched: Touched,
}

impl Gain {
    /// Mean gain per window, rounded down; negative if the changes cost time.
    pub fn duration_ns(&self) -> i64 {
        self.duration_ns
    }

    /// The gain as a share of the windows.
    pub fn value(&self) -> f64 {
        self.value
    }

    /// The bounds of the share.
    pub fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// The sides that the changes shorten.
    pub fn sides(&self) -> impl Iterator<Item = Side> {
        self.touched.sides()
    }

    fn of(trial: &Trial, n_windows: i64) -> Self {
        Self {
            duration_ns: trial.gain_ns().div_euclid(n_windows),
            value: trial.gain(None),
            bounds: trial.bounds(),
            touched: Touched::default(),
        }
    }

    /// Raises the upper bound to that of further changes.
    fn raise(&mut self, other: &Self) {
        if other.bounds.high > self.bounds.high {
            self.bounds.high = other.bounds.high;
            self.bounds.high_by = other.bounds.high_by;
        }
    }

    /// Lowers the gain and its bounds to a share that nothing exceeds.
    #[allow(clippy::cast_possible_truncation)] // a time
    fn limit(&mut self, most: f64, mean_ns: f64) {
        if self.value > most {
            self.value = most;
            self.duration_ns = self.duration_ns.min((most * mean_ns).round() as i64);
        }
        self.bounds.low = self.bounds.low.min(most);
    }

    /// Lowers the upper bound to a share, but not below the gain.
    fn limit_high(&mut self, most: f64) {
        self.bounds.high = self.bounds.high.min(most).max(self.value).max(self.bounds.low);
    }
}

/// Intermediate results of a verdict, for gains of further changes.
#[derive(Debug, Default)]
pub struct Inquiry {
    pub(super) paths: Vec<Path>,
    pub(super) latencies_ns: Vec<i64>,
    pub(super) open: MissingRecords,
    pub(super) unexplained_gaps: Vec<UnexplainedGap>,
    pub(super) is_catching_up: bool,
    /// The gain of each side over all windows.
    pub(super) sides: Vec<Gain>,
    /// Length of the shown window, unless outliers make the mean window unlike it.
    pub(super) shown_ns: Option<i64>,
    pub(super) sample: Option<Sample>,
}

impl Inquiry {
    /// Limits the inquiry to windows that represent all of them, if there are many and no record is
    /// missing.
    #[must_use]
    pub fn sampled(self, graph: &Graph, scope: &Scope) -> Self {
        let is_closed = self.open.is_empty() && self.open.held_ns.is_none();
        if !is_closed || !self.unexplained_gaps.is_empty() {
            return self;
        }
        match Sample::of(graph, scope) {
            Some(sample) => Self {
                latencies_ns: latencies_ns(&sample.graph),
                sample: Some(sample),
                paths: Vec::new(),
                ..self
            },
            None => self,
        }
    }

    /// Returns the part of the graph and the windows to which the inquiry is limited; without a
    /// limit, those that are given.
    pub fn part<'a>(&'a self, (graph, scope): (&'a Graph, &'a Scope)) -> (&'a Graph, &'a Scope) {
        self.sample.as_ref().map_or((graph, scope), |sample| (&sample.graph, &sample.scope))
    }
}

impl Inquiry {
    /// Returns the gain of what could be changed, in the windows of the inquiry.
    ///
    /// `other_latencies_ns` are the latencies of the edges of the part with other recording costs:
    /// the bounds of each gain hold for all of them.
    ///
    /// # Errors
    ///
    /// Returns an error if a pattern is not a valid regular expression, or if `progress` asks to
    /// stop.
    pub fn gains(
        &self,
        facts: &Facts<'_>,
        other_latencies_ns: &[Vec<i64>],
        possible: &[Possible],
        progress: Progress<'_>,
    ) -> Result<Vec<Gain>> {
        let touched: Vec<_> = possible.iter().map(|it| Touched::of(it, facts.graph)).collect();
        let sets: Vec<_> = possible
            .iter()
            .zip(&touched)
            .flat_map(|(it, of)| [Some(it.careful.clone()), it.hopeful.clone(), of.whole()])
            .flatten()
            .collect();
        let mut tried = self.tried(facts, other_latencies_ns, &sets, progress)?.into_iter();
        let limits = Limits::of(facts, self);
        let mut gains = Vec::with_capacity(possible.len());
        for (it, of) in possible.iter().zip(&touched) {
            let Some(mut gain) = tried.next() else { break };
            gain.touched = *of;
            if it.hopeful.is_some() {
                gain.raise(&tried.next().unwrap_or(gain));
            }
            limits.apply(&mut gain, it);
            if let Some(removal) = of.whole()
                && let Some(mut whole) = tried.next()
            {
                limits.apply(&mut whole, &Possible { careful: removal, hopeful: None });
                let most = whole.bounds.high.max(0.0);
                gain.limit(most, limits.mean_ns);
                gain.limit_high(most);
            }
            gains.push(gain);
        }
        Ok(gains)
    }

    /// Returns the gain of each set of certain changes at the estimated cost of recording, as a
    /// share of the windows.
    ///
    /// This takes a fraction of the time of [`Self::gains`], and finds no bounds.
    ///
    /// # Errors
    ///
    /// As for [`Self::gains`].
    pub fn values(
        &self,
        facts: &Facts<'_>,
        sets: &[Vec<Change>],
        progress: Progress<'_>,
    ) -> Result<Vec<f64>> {
        let limits = Limits::of(facts, self);
        let gains = self.tried(facts, &[], sets, progress)?.into_iter().zip(sets);
        let limited = |(mut gain, careful): (Gain, &Vec<Change>)| {
            limits.apply(&mut gain, &Possible { careful: careful.clone(), hopeful: None });
            gain.value
        };
        Ok(gains.map(limited).collect())
    }

    /// Returns the gain of each side, in the order of [`Side::ALL`]: over all windows of the
    /// verdict, within bounds that hold there and in the windows of the inquiry.
    ///
    /// # Errors
    ///
    /// Returns an error only if `progress` asks to stop.
    pub fn gains_of_sides(
        &self,
        facts: &Facts<'_>,
        other_latencies_ns: &[Vec<i64>],
        progress: Progress<'_>,
    ) -> Result<Vec<Gain>> {
        let works = facts.activities(&[EventKind::Kernel, EventKind::Copy], 0);
        let events: Vec<_> = works.iter().map(|work| work.event).collect();
        // Work before the windows stays, as it does for remedies.
        let inside = |change: Change| Change { events: Some(events.clone()), ..change };
        let whole = |side: &Side| Possible {
            careful: side.removed(),
            hopeful: (*side != Side::Waits)
                .then(|| side.removed().into_iter().map(inside).collect()),
        };
        let possible: Vec<_> = Side::ALL.iter().map(whole).collect();
        let mut gains = self.gains(facts, other_latencies_ns, &possible, progress)?;
        for (gain, (of_all, &side)) in gains.iter_mut().zip(self.sides.iter().zip(Side::ALL)) {
            let found = gain.bounds;
            *gain = Gain { touched: Touched::only(side), ..*of_all };
            gain.bounds.extend(&found);
        }
        Ok(gains)
    }

    /// Returns how much shorter what changes leave becomes without each side of work.
    ///
    /// # Errors
    ///
    /// As for [`Self::gains`].
    pub fn gains_after(
        &self,
        facts: &Facts<'_>,
        other_latencies_ns: &[Vec<i64>],
        changes: &[Change],
        progress: Progress<'_>,
    ) -> Result<Vec<(Side, f64)>> {
        let also = |removed: Vec<Change>| Possible {
            careful: changes.iter().cloned().chain(removed).collect(),
            hopeful: None,
        };
        let mut possible = vec![also(Vec::new())];
        possible.extend(Side::WORK.iter().map(|side| also(side.removed())));
        let gains = self.gains(facts, other_latencies_ns, &possible, progress)?;
        let Some((first, of_sides)) = gains.split_first() else { return Ok(Vec::new()) };
        let left = (1.0 - first.value).max(f64::MIN_POSITIVE);
        let then = |gain: &Gain| (gain.value - first.value).max(0.0) / left;
        Ok(Side::WORK.into_iter().zip(of_sides.iter().map(then)).collect())
    }

    /// Returns the gains of sets of changes, with bounds for missing records and the cost of
    /// recording.
    fn tried(
        &self,
        facts: &Facts<'_>,
        other_latencies_ns: &[Vec<i64>],
        sets: &[Vec<Change>],
        progress: Progress<'_>,
    ) -> Result<Vec<Gain>> {
        let (graph, tables, nesting, scope) =
            (facts.graph, facts.tables, facts.nesting, facts.scope);
        let n_windows = i64::try_from(scope.windows.len()).unwrap_or(1).max(1);
        let with = |latencies_ns, is_as_timed| {
            let question = Question {
                graph,
                tables,
                nesting,
                scope,
                paths: &self.paths,
                latencies_ns,
                is_catching_up: self.is_catching_up,
                is_as_timed,
                times: Vec::new(),
            };
            question.tried(&self.open, &self.unexplained_gaps, sets, progress)
        };
        let found = with(&self.latencies_ns, true)?;
        let mut gains: Vec<_> = found.iter().map(|trial| Gain::of(trial, n_windows)).collect();
        for latencies_ns in other_latencies_ns {
            for (gain, trial) in gains.iter_mut().zip(with(latencies_ns, false)?) {
                gain.bounds.extend(&trial.bounds());
            }
        }
        Ok(gains)
    }
}

/// Returns the changes that remove some sides.
fn without(sides: &[Side]) -> Vec<Change> {
    sides.iter().flat_map(|side| side.removed()).collect()
}

/// Returns the gain of each side as a verdict measures it.
pub(super) fn of_trials(trials: &[Trial], n_windows: usize) -> Vec<Gain> {
    let n_windows = i64::try_from(n_windows).unwrap_or(1).max(1);
    trials.iter().map(|trial| Gain::of(trial, n_windows)).collect()
}

/// Limits of every gain, besides the bounds of its changes.
struct Limits<'a> {
    graph: &'a Graph,
    mean_ns: f64,
    n_windows: f64,
    /// The least time that the host took for a window, if its work lies before the windows.
    pace_ns: Option<f64>,
    /// The activities of the windows; `None` if outliers make the mean window unlike any.
    streams: Option<Streams>,
}

impl<'a> Limits<'a> {
    #[allow(clippy::cast_precision_loss)] // times
    fn of(facts: &Facts<'a>, inquiry: &Inquiry) -> Self {
        let windows = &facts.scope.windows;
        let total_ns: i64 = windows.iter().map(|window| window.end_ns - window.start_ns).sum();
        let n_windows = windows.len().max(1) as f64;
        let mean_ns = (total_ns as f64 / n_windows).max(1.0);
        Self {
            graph: facts.graph,
            mean_ns,
            n_windows,
            // Windows in which a device catches up are shorter than the host takes for them.
            pace_ns: facts.host_pace_ns().filter(|_| !inquiry.is_catching_up).map(|ns| ns as f64),
            // Gains are of the mean window, but are read as those of the shown one: what remains
            // of either covers the stream.
            streams: inquiry
                .shown_ns
                .map(|ns| Streams::of(facts, mean_ns, (ns as f64).clamp(1.0, mean_ns))),
        }
    }

    fn apply(&self, gain: &mut Gain, of: &Possible) {
        let at_pace = self.most_at_pace(&of.careful, 1.0);
        gain.limit(at_pace, self.mean_ns);
        if gain.bounds.high_by != Fact::RecordingCost {
            gain.limit_high(at_pace.max(self.most_at_pace(of.most(), LEAST_PACE)));
        }
        if let Some(streams) = &self.streams {
            let left_ns = |changes| streams.left_ns(changes) / self.n_windows;
            let most = 1.0 - left_ns(&of.careful) / streams.mean_ns;
            gain.limit(most.max(0.0), self.mean_ns);
            gain.limit_high(1.0 - left_ns(of.most()) / streams.least_ns);
        }
    }

    /// Returns the gain if a window takes `pace` times the host time that the changes leave.
    ///
    /// Work launched before the first window hides host time: with a faster device alone, the
    /// windows would seem shorter than the host allows.
    fn most_at_pace(&self, changes: &[Change], pace: f64) -> f64 {
        let Some(pace_ns) = self.pace_ns else { return f64::INFINITY };
        let gone = changes.iter().map(|change| self.host_time_ns(change));
        let Some(gone_ns) = gone.sum::<Option<f64>>() else { return f64::INFINITY };
        1.0 - (pace * pace_ns - gone_ns / self.n_windows).max(0.0) / self.mean_ns
    }

    /// Returns the host time that a change saves in all windows; `None` if unknown.
    #[allow(clippy::cast_precision_loss)] // times
    fn host_time_ns(&self, change: &Change) -> Option<f64> {
        let timeline = &self.graph.timeline;
        let saved = match change.effect {
            Effect::RemoveWait | Effect::Insert(_) => return Some(0.0),
            Effect::Scale(by) => (1.0 - by.as_f64()).max(0.0),
            Effect::Replace(_) => 1.0,
        };
        let total_ns: i64 = if let Some(time_ranges) = &change.time_ranges {
            time_ranges.iter().map(|it| it.end_ns - it.start_ns).sum()
        } else if let Some(events) = &change.events {
            let orders = events.iter().filter_map(|&event| timeline.order(event));
            let on_host = orders.filter(|&order| !timeline.kind(order).is_device_work());
            on_host.map(|order| timeline.duration_ns(order)).sum()
        } else if change.kind.is_some_and(is_of_work) {
            0
        } else {
            return None;
        };
        Some(saved * total_ns as f64)
    }
}

/// Whether time of a kind is that of GPU activities themselves, not of their delays.
fn is_of_work(kind: Kind) -> bool {
    matches!(kind, Kind::Kernel | Kind::Copy | Kind::Communication)
}

/// How long each stream is busy in the windows.
struct Streams {
    works: BTreeMap<EventId, (usize, Kind, f64)>,
    busy_ns: Vec<(usize, f64)>,
    /// Length of the mean window, and of the shorter of that and the shown one.
    mean_ns: f64,
    least_ns: f64,
}

impl Streams {
    #[allow(clippy::cast_precision_loss)] // times
    fn of(facts: &Facts<'_>, mean_ns: f64, least_ns: f64) -> Self {
        let within_ns = |work: &Activity| {
            let start_ns = facts.scope.windows[work.window].start_ns;
            (work.start_ns + work.duration_ns - work.start_ns.max(start_ns)) as f64
        };
        let mut works = BTreeMap::new();
        let mut busy_ns: Vec<(usize, f64)> = Vec::new();
        for work in facts.activities(&[EventKind::Kernel, EventKind::Copy], 0) {
            let time_ns = within_ns(&work);
            works.insert(work.event, (work.lane, work.kind, time_ns));
            match busy_ns.iter_mut().find(|(lane, _)| *lane == work.lane) {
                Some((_, total_ns)) => *total_ns += time_ns,
                None => busy_ns.push((work.lane, time_ns)),
            }
        }
        Self { works, busy_ns, mean_ns, least_ns }
    }

    /// Returns how long the busiest stream stays busy in all windows after changes.
    fn left_ns(&self, changes: &[Change]) -> f64 {
        let mut left_ns: BTreeMap<EventId, f64> = BTreeMap::new();
        for change in changes {
            for event in self.changed(change) {
                let before_ns = left_ns.get(&event).copied().unwrap_or(self.works[&event].2);
                left_ns.insert(event, left_of(change, before_ns).min(before_ns));
            }
        }
        let mut busy_ns = self.busy_ns.clone();
        for (event, time_ns) in left_ns {
            let (lane, _, before_ns) = self.works[&event];
            if let Some((_, total_ns)) = busy_ns.iter_mut().find(|(other, _)| *other == lane) {
                *total_ns -= before_ns - time_ns;
            }
        }
        busy_ns.iter().map(|&(_, ns)| ns).fold(0.0, f64::max)
    }

    /// Returns the activities whose time a change may shorten, regardless of its pattern.
    fn changed(&self, change: &Change) -> BTreeSet<EventId> {
        let has_effect = matches!(change.effect, Effect::Scale(_) | Effect::Replace(_));
        let is_of_these = change.kind.is_none_or(is_of_work) && change.time_ranges.is_none();
        if !has_effect || !is_of_these {
            return BTreeSet::new();
        }
        let fits = |kind: Kind| change.kind.is_none_or(|of| of == kind);
        if let Some(events) = &change.events {
            let is_known = |event: &&EventId| self.works.get(event).is_some_and(|it| fits(it.1));
            events.iter().filter(is_known).copied().collect()
        } else {
            let all = self.works.iter().filter(|(_, work)| fits(work.1));
            all.map(|(&event, _)| event).collect()
        }
    }
}

/// Returns the least time that a change leaves of an activity.
#[allow(clippy::cast_precision_loss)] // a time
fn left_of(change: &Change, time_ns: f64) -> f64 {
    match change.effect {
        _ if change.matching.is_some() => 0.0,
        Effect::Replace(ns) => ns as f64,
        Effect::Scale(by) => by.as_f64() * time_ns,
        Effect::Insert(_) | Effect::RemoveWait => time_ns,
    }
}
