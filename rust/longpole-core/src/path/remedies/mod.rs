//! The verdict: what limits a program, and how much changes gain.
//!
//! A verdict compares gains: how much shorter the program would be if something took no time,
//! computed by re-timing the graph. Shares of the path and device utilization cannot answer this,
//! because host and device run in parallel. A *side* is a part of the program that can limit it.
//! [`Facts`] answers queries about possible changes, and `gain` computes their gains.
//!
//! Every gain is an upper bound: the order of execution stays the same, and a side can never be
//! removed completely. Gains of several changes are never added.

mod bounds;
mod busy_streams;
mod causes;
mod facts;
mod functions;
mod gain;
mod host_waits;
mod loaders;
mod missing_activities;
mod missing_calls;
mod missing_records;
mod model;
mod pace;
mod question;
mod rule;
mod sample;
mod slots;
mod trial;
mod trials;
mod uncertainty;
mod unexplained_gaps;

use super::clip::{observed_start_ns, own_start_ns};
use super::schedule::Schedule;
use super::walk::{Segment, walk};
use super::what_if::{Change, is_catching_up, latencies_ns, what_if};
use super::windows::Scope;
use crate::error::Result;
use crate::graph::{Edge, Graph, Kind};
use crate::link::Launches;
use crate::names::Names;
use crate::progress::Progress;
use crate::stack::Nesting;
use crate::tables::Tables;
pub use bounds::{Bounds, Fact};
use busy_streams::BusyStreams;
pub use facts::{Activity, DeviceWait, FactIndex, Facts, Named, OnThread, ThreadGap};
pub use functions::{Busiest, Function};
pub use gain::{Gain, Inquiry, Possible};
pub use loaders::Loader;
use missing_records::{MissingRecords, Placing};
pub use model::Side;
use question::Question;
use rule::{Gains, Ruling, certain, ruling};
use trial::Trial;
use trials::Trials;
pub use trials::lengths_ns;
pub use uncertainty::{Cause, Uncertainty};
pub use unexplained_gaps::UnexplainedGap;

/// What limits a program.
#[derive(Debug, Clone, PartialEq)]
pub enum Limit {
    /// One side, or two that gain about the same, largest gain first.
    Sides(Vec<Side>),
    /// Waits: removing them gains more than removing any work.
    Waits,
    /// Host and kernels together: either alone gains little.
    Both,
    /// No side gains much alone.
    NoneAlone,
    /// The trace does not show it, for this reason.
    NotShown(Cause),
    /// Unknown, because no GPU activity is recorded.
    NoDevice,
}

impl Limit {
    /// Returns its name in data.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Sides(_) => "sides",
            Self::Waits => "waits",
            Self::Both => "both",
            Self::NoneAlone => "none_alone",
            Self::NotShown(_) => "not_shown",
            Self::NoDevice => "no_device",
        }
    }

    /// Returns the sides to shorten, largest gain first; empty if unknown.
    pub fn sides(&self) -> Vec<Side> {
        match self {
            Self::Sides(sides) => sides.clone(),
            Self::Waits => vec![Side::Waits],
            Self::Both => vec![Side::Host, Side::Kernels],
            Self::NoneAlone | Self::NotShown(_) | Self::NoDevice => Vec::new(),
        }
    }

    fn of(ruling: Ruling, cause: Option<Cause>, has_work: bool) -> Self {
        match cause {
            _ if !has_work => Self::NoDevice,
            Some(cause) => Self::NotShown(cause),
            None if ruling.waits_lead => Self::Waits,
            None if ruling.nearly_balanced => Self::Both,
            None if ruling.sides.is_empty() => Self::NoneAlone,
            None => Self::Sides(ruling.sides),
        }
    }
}

/// The lengths of the windows to which gains refer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lengths {
    /// Length of the shown window.
    pub shown_ns: i64,
    /// Length of the shortest window.
    pub least_ns: i64,
    /// Length of the longest window.
    pub most_ns: i64,
    /// Total length.
    pub total_ns: i64,
    /// The indices of windows longer than 1.5 times the median.
    pub outliers: Vec<usize>,
}

/// The result for the shown window alone, if it differs from that of all windows.
#[derive(Debug, Clone, PartialEq)]
pub struct Usual {
    /// The sides that are reported.
    pub sides: Vec<Side>,
    /// The gain of the first side, or the largest gain if no side is reported.
    pub gain: f64,
    /// Whether it is something else.
    pub differs: bool,
}

/// What limits a program.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// What limits it.
    pub limit: Limit,
    /// The gain of removing kernels and host together.
    pub kernels_and_host: f64,
    /// The lengths of the windows.
    pub lengths: Lengths,
    /// Reliability of the verdict.
    pub uncertainty: Uncertainty,
    /// Unexplained gaps that the verdict leaves out, longest first.
    pub unexplained_gaps: Vec<UnexplainedGap>,
    /// The function with most of the host time.
    pub function: Option<Function>,
    /// The name with the most host time on the path.
    pub busiest: Option<Busiest>,
    /// Number of GPU activities launched in the windows.
    pub n_launched: usize,
    /// The part of the program that loads data.
    pub loader: Option<Loader>,
    /// The result for the shown window alone, if different.
    pub usual: Option<Usual>,
    /// Mean time that the host takes for a window, if the device catches up with a backlog of earlier
    /// work in the windows, so that they are shorter.
    pub caught_up_ns: Option<i64>,
}

/// If more of the path than this is unexplained, bounds do not settle a verdict.
const MOST_GUESSED: f64 = 0.5;

/// The mean and the median differ if one is this many times the other.
const UNEVEN: f64 = 1.3;

/// A window longer than this many halves of the median is an outlier.
const OUTLIER_HALVES: i64 = 3;

/// Finds what limits a program in the windows of a scope. Also returns intermediate results for
/// further gains.
///
/// # Errors
///
/// Returns an error only if `progress` asks to stop.
pub fn verdict(
    graph: &Graph,
    tables: &Tables,
    launches: &Launches,
    nesting: &Nesting,
    scope: &Scope,
    progress: Progress<'_>,
) -> Result<(Verdict, Inquiry)> {
    let observed = Schedule::observed();
    let all_paths: Vec<_> =
        scope.windows.iter().map(|window| walk(graph, window, &observed)).collect();
    let has_work = graph.timeline.orders().any(|work| graph.timeline.kind(work).is_device_work());
    let all_latencies_ns = latencies_ns(graph);
    let times = question::times_of(&all_paths);
    let (paths, latencies_ns) = (&all_paths[..], &all_latencies_ns[..]);
    let (is_catching_up, is_as_timed) = (false, true);
    let mut question = Question {
        graph,
        tables,
        nesting,
        scope,
        paths,
        latencies_ns,
        is_catching_up,
        is_as_timed,
        times,
    };
    let mut open = MissingRecords::of(&question);
    let mut answers = question.answers(&open, &[], progress)?;
    let caught_up = answers.caught_up().filter(|_| question.is_in_order());
    if caught_up.is_some() {
        question.is_catching_up = true;
        answers = question.answers(&open, &[], progress)?;
    }
    let mut uncertainty = Uncertainty::of(&question, launches, &open, answers.everything());
    let unexplained_gaps = if uncertainty.is_unexplained() {
        unexplained_gaps::unexplained_gaps(&question)
    } else {
        Vec::new()
    };
    if !unexplained_gaps.is_empty() {
        open.without(&unexplained_gaps, graph);
        answers = question.answers(&open, &unexplained_gaps, progress)?;
        uncertainty = uncertainty.apart_from(&unexplained_gaps, answers.everything(), &question);
    }
    let mut ruling = ruling(&answers.gains(None));
    // A device that is busy most of the time is not waiting for anything.
    ruling.waits_lead =
        ruling.waits_lead && answers.waits_may_lead(BusyStreams::of(&question).least_ns(&[]));
    if uncertainty.cause.is_some()
        && let Some(sides) = certain(&answers.bounds(), &ruling.sides)
        && !(sides.contains(&Side::Host) && uncertainty.is_of_nobody())
        && !uncertainty.is_of_unseen_host()
        && uncertainty.unknown <= MOST_GUESSED
        && !(sides.is_empty() && question.is_of_one_side())
    {
        ruling.sides = sides;
        uncertainty.cause = uncertainty.cause.filter(|cause| *cause == Cause::Polling);
    }
    if has_work && uncertainty.cause.is_none() {
        uncertainty.rest = question.rest_unknown(&ruling.sides, progress)?;
    }
    let mut verdict =
        question.verdict(&answers, ruling, uncertainty, unexplained_gaps.clone(), has_work);
    verdict.caught_up_ns = caught_up.filter(|&(side, _)| side != Side::Host).map(|(_, ns)| ns);
    let is_catching_up = question.is_catching_up;
    let (paths, latencies_ns) = (all_paths, all_latencies_ns);
    let sides = gain::of_trials(&answers.sides, scope.windows.len());
    let shown_ns = verdict.lengths.outliers.is_empty().then_some(verdict.lengths.shown_ns);
    let inquiry = Inquiry {
        paths,
        latencies_ns,
        open,
        unexplained_gaps,
        is_catching_up,
        sides,
        shown_ns,
        sample: None,
    };
    Ok((verdict, inquiry))
}

impl Question<'_> {
    /// Whether one side has most of the time on the paths. If launches are missing, this side may still
    /// be what limits the program.
    fn is_of_one_side(&self) -> bool {
        let segments = || self.paths.iter().flat_map(|path| &path.segments);
        let time_ns = |side: Option<Side>| -> i64 {
            let counts = |segment: &&Segment| side.is_none_or(|side| side.has(segment.kind));
            segments().filter(counts).map(Segment::duration_ns).sum()
        };
        let whole_ns = time_ns(None);
        Side::WORK.iter().any(|&side| 2 * time_ns(Some(side)) > whole_ns)
    }
}

/// The results of all trials.
struct Answers {
    sides: Vec<Trial>,
    kernels_and_host: Trial,
    /// All work.
    everything: Trial,
}

impl Answers {
    fn everything(&self) -> f64 {
        self.everything.gain(None)
    }

    /// Returns the side that built up the backlog with which the device catches up in the windows,
    /// if it does, and their mean length without that side.
    fn caught_up(&self) -> Option<(Side, i64)> {
        let trials = Side::WORK.iter().copied().zip(&self.sides);
        let (side, longest) = trials.max_by_key(|(_, trial)| trial.changed_ns)?;
        let n_windows = i64::try_from(longest.lengths_ns.len()).unwrap_or(1).max(1);
        let is_shorter = is_catching_up(longest.changed_ns, longest.lengths_ns.iter().sum());
        is_shorter.then_some((side, longest.changed_ns / n_windows))
    }

    /// Whether removing waits can gain more than every side, given how long a stream stays busy.
    fn waits_may_lead(&self, busy_ns: i64) -> bool {
        let best_ns = self.sides[..Side::WORK.len()].iter().map(Trial::gain_ns).max();
        self.everything.lengths_ns.iter().sum::<i64>() - busy_ns > best_ns.unwrap_or(0)
    }

    /// Returns the bounds of the gain of each side.
    fn bounds(&self) -> Vec<Bounds> {
        self.sides.iter().map(Trial::bounds).collect()
    }

    /// Returns the gains that the rule compares, for all windows or one; none below 0.
    fn gains(&self, window: Option<usize>) -> Gains {
        let gain = |trial: &Trial| trial.gain(window).max(0.0);
        let mut gains =
            Gains { kernels_and_host: gain(&self.kernels_and_host), ..Gains::default() };
        for (side, trial) in self.sides.iter().enumerate() {
            gains.sides[side] = gain(trial);
        }
        gains
    }
}

impl Question<'_> {
    /// Tries to remove each side, and several together.
    fn answers(
        &self,
        open: &MissingRecords,
        unexplained_gaps: &[UnexplainedGap],
        progress: Progress<'_>,
    ) -> Result<Answers> {
        let mut changes: Vec<_> = Side::ALL.iter().map(|side| side.removed()).collect();
        let without = |sides: &[Side]| sides.iter().flat_map(|side| side.removed()).collect();
        changes.push(without(&[Side::Kernels, Side::Host]));
        changes.push(without(&Side::WORK));
        let mut tried = self.tried(open, unexplained_gaps, &changes, progress)?;
        let mut last = || tried.pop().unwrap_or_default();
        let (everything, kernels_and_host) = (last(), last());
        Ok(Answers { sides: tried, kernels_and_host, everything })
    }

    /// Tries sets of changes.
    fn tried(
        &self,
        open: &MissingRecords,
        unexplained_gaps: &[UnexplainedGap],
        changes: &[Vec<Change>],
        progress: Progress<'_>,
    ) -> Result<Vec<Trial>> {
        let busy = self.busy(open);
        tried(&self.starts(open, unexplained_gaps, &busy), changes, progress)
    }

    /// Returns the busy times of streams, if anything is missing.
    fn busy(&self, open: &MissingRecords) -> BusyStreams {
        let is_closed = open.is_empty() && open.held_ns.is_none();
        if is_closed { BusyStreams::default() } else { BusyStreams::of(self) }
    }

    fn starts<'t>(
        &'t self,
        open: &'t MissingRecords,
        unexplained_gaps: &[UnexplainedGap],
        busy: &'t BusyStreams,
    ) -> Starts<'t> {
        let windows = &self.scope.windows;
        let missing = (open, unexplained_gaps, busy);
        let latencies = (self.latencies_ns, self.is_as_timed);
        let from =
            |held_ns| Trials::new(self.graph, self.tables, latencies, windows, missing, held_ns);
        let start_ns = self.start_ns();
        let held_ns = open.held_ns.filter(|_| start_ns.is_none());
        Starts { free: from(start_ns), held: held_ns.map(|ns| from(Some(ns))) }
    }

    /// Whether each window begins after the one before it, so that the first begins before all.
    fn is_in_order(&self) -> bool {
        self.scope.windows.is_sorted_by_key(|window| window.start_ns)
    }

    /// Returns the time before which everything stays as recorded, if there is one.
    fn start_ns(&self) -> Option<i64> {
        let first = self.scope.windows.first()?;
        let caught_up = || self.is_catching_up.then(|| observed_start_ns(self.graph, first));
        own_start_ns(self.graph, first).or_else(caught_up)
    }

    /// Returns the number of GPU activities whose launch calls lie between the start of the first
    /// window and the end of the last.
    fn n_launched(&self) -> usize {
        let (timeline, windows) = (&self.graph.timeline, &self.scope.windows);
        let (Some(first), Some(last)) = (windows.first(), windows.last()) else { return 0 };
        let called_ns = |work| timeline.launcher(work).map(|call| timeline.start_ns(call));
        let within = |at_ns: &i64| (first.start_ns..last.end_ns).contains(at_ns);
        timeline.orders().filter_map(called_ns).filter(within).count()
    }

    /// Returns the unexplained share of the paths that remain without some sides.
    #[allow(clippy::cast_precision_loss)] // a share
    fn rest_unknown(&self, sides: &[Side], progress: Progress<'_>) -> Result<f64> {
        let Some(side) = sides.first() else { return Ok(0.0) };
        let is_unexplained = |edge: &Edge| edge.kind == Kind::Unexplained;
        if !self.graph.edges.as_slice().iter().any(is_unexplained) {
            return Ok(0.0);
        }
        let (window, changes) = (self.scope.window(), side.removed());
        let (graph, tables) = (self.graph, self.tables);
        let before = (self.latencies_ns, window.end_ns - window.start_ns);
        let rest = what_if(graph, tables, window, before, &changes, progress)?;
        Ok(rest.path.kinds_ns(&[Kind::Unexplained]) as f64 / rest.makespan_ns.max(1) as f64)
    }

    fn verdict(
        &self,
        answers: &Answers,
        ruling: Ruling,
        uncertainty: Uncertainty,
        unexplained_gaps: Vec<UnexplainedGap>,
        has_work: bool,
    ) -> Verdict {
        let usual = self.usual(answers, &ruling);
        let limit = Limit::of(ruling, uncertainty.cause, has_work);
        Verdict {
            usual: usual.filter(|_| !limit.sides().is_empty()),
            limit,
            kernels_and_host: answers.kernels_and_host.gain(None),
            lengths: lengths(&answers.everything.lengths_ns, self.scope.shown),
            unexplained_gaps: if uncertainty.cause.is_none() {
                unexplained_gaps
            } else {
                Vec::new()
            },
            uncertainty,
            function: functions::function(self),
            busiest: functions::busiest(self),
            n_launched: self.n_launched(),
            loader: loaders::loader(self),
            caught_up_ns: None,
        }
    }

    /// Returns the result for the shown window alone, if it differs or the lengths are uneven.
    #[allow(clippy::cast_precision_loss)] // a share
    fn usual(&self, answers: &Answers, all: &Ruling) -> Option<Usual> {
        if self.scope.windows.len() < 2 {
            return None;
        }
        let gains = answers.gains(Some(self.scope.shown));
        let alone = ruling(&gains);
        let lengths = lengths(&answers.everything.lengths_ns, self.scope.shown);
        let mean_ns = lengths.total_ns as f64 / self.scope.windows.len() as f64;
        let is_uneven = mean_ns > UNEVEN * lengths.shown_ns as f64;
        let sides = alone.sides;
        let differs = sides.first() != all.sides.first();
        let gain = sides.first().map_or_else(
            || Side::WORK.iter().map(|&side| gains.sides[side as usize]).fold(0.0, f64::max),
            |side| gains.sides[*side as usize],
        );
        (is_uneven || differs).then_some(Usual { sides, gain, differs })
    }
}

/// Trials for both possible starts of the first window.
struct Starts<'a> {
    /// The start moves with what opens the window, unless everything before stays as recorded.
    free: Trials<'a>,
    /// The start is fixed, because a missing record before it may have delayed it.
    held: Option<Trials<'a>>,
}

fn tried(
    trials: &Starts<'_>,
    changes: &[Vec<Change>],
    progress: Progress<'_>,
) -> Result<Vec<Trial>> {
    let Starts { free, held } = trials;
    let changes: Vec<_> = changes.iter().map(Vec::as_slice).collect();
    let lengths = free.lengths_ns(&changes, Placing::AsTimed, progress)?;
    let before_ns = free.unchanged_ns(progress)?;
    let trial = |(changed, changes): (Vec<i64>, &&[Change])| {
        let lengths_ns = before_ns.clone();
        let pairs = lengths_ns.iter().zip(&changed);
        let mut gains_ns: Vec<_> = pairs.map(|(before, after)| before - after).collect();
        let mut total_ns: i64 = gains_ns.iter().sum();
        // Less work never makes a step longer.
        if total_ns < 0 && changes.iter().all(Change::only_shortens) {
            gains_ns.fill(0);
            total_ns = 0;
        }
        let (changed_ns, bounds_ns) = (changed.iter().sum(), (total_ns, total_ns));
        Trial { gains_ns, lengths_ns, changed_ns, bounds_ns, facts: None }
    };
    let mut found: Vec<_> = lengths.into_iter().zip(&changes).map(trial).collect();
    let open = Some(free).filter(|free| !free.is_closed());
    for trials in open.into_iter().chain(held) {
        let least = trials.lengths_ns(&changes, Placing::Least, progress)?;
        let most = if trials.is_closed() {
            least.clone()
        } else {
            trials.lengths_ns(&changes, Placing::Most, progress)?
        };
        let lengths = least.into_iter().zip(most);
        for ((trial, changes), (least, most)) in found.iter_mut().zip(&changes).zip(lengths) {
            trial.widen([least, most], trials.busy_ns(changes), trials.missing());
        }
    }
    Ok(found)
}

/// Summarizes the lengths of windows.
fn lengths(lengths_ns: &[i64], shown: usize) -> Lengths {
    let shown_ns = lengths_ns[shown];
    let is_outlier = |&place: &usize| lengths_ns[place] / OUTLIER_HALVES > shown_ns / 2;
    Lengths {
        shown_ns,
        least_ns: lengths_ns.iter().copied().min().unwrap_or(0),
        most_ns: lengths_ns.iter().copied().max().unwrap_or(0),
        total_ns: lengths_ns.iter().sum(),
        outliers: (0..lengths_ns.len()).filter(is_outlier).collect(),
    }
}
