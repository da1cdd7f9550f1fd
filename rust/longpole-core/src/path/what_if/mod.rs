//! What-if analysis: re-times the whole trace after changes and evaluates the window again.
//!
//! A change multiplies, replaces or adds to the time of selected edges, or removes waits. All other
//! edges keep their minimum latency, which [`latencies_ns`] derives from the trace. Nothing is known
//! about how a changed program would behave otherwise, so the order of execution stays the same.
//!
//! # Where a changed window begins
//!
//! A window is measured between the same moments after a change. If it begins at a time or with an
//! event of its own, such as an annotation, everything before it stays as recorded.
//!
//! The window of a step begins when the previous step is complete. The change applies to all steps,
//! so both ends move, and the length is the difference of two completions: the time that a step
//! takes in the long run. Two things can hide that:
//!
//! - A change can shorten what delayed the previous step, but not this one, so that their difference
//!   grows. Less work never makes a step longer, so the window then has its recorded length.
//! - If the device has work of earlier steps queued, faster kernels first drain that, and the window
//!   seems shorter than the host lets steps be in the long run. In the long run, the length of a
//!   step is the mean of the slowest cycle of the graph, which no faster activity makes longer. So
//!   no change of the time of a kind of GPU activity gains more than all activities of the kind
//!   without time, which drain at once: [`what_if`] returns that answer if it is longer.
//!
//! If the difference grows by [`CATCHING_UP`], the recorded step is not like those of the long run:
//! the device catches up with a backlog of earlier work in it, faster than the host launches more.
//! Such a window begins where it was recorded, and everything before it stays as recorded.
//!
//! One engine computes a single what-if or many: [`rows`] holds the effect on each edge in each of
//! them, [`pass`] times the nodes.

mod changes;
mod chosen;
mod pass;
mod rows;

pub(crate) use changes::REMOVED;
pub use changes::{Change, Effect, Ratio, TimeRange};
pub(super) use chosen::EdgesOf;
pub use chosen::n_chosen;
pub use pass::latencies_ns;
pub(super) use pass::{Extra, FixedStart, Pass, Room};
pub(super) use rows::{Rows, Times, integer};

use std::collections::BTreeSet;

use super::clip::{moved, observed_start_ns, own_start_ns};
use super::schedule::Schedule;
use super::walk::{Path, walk_between};
use super::windows::Window;
use crate::error::Result;
use crate::graph::Graph;
use crate::ids::NodeId;
use crate::progress::Progress;
use crate::tables::Tables;
use pass::All;

/// The length of a window after a change, and its new critical path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WhatIf {
    /// From the start of the window to the latest of its candidate ends.
    pub makespan_ns: i64,
    /// The path at the new times.
    pub path: Path,
    /// The new times.
    pub schedule: Schedule,
    /// The new minimum latencies, for further questions about the changed program.
    pub latencies_ns: Vec<i64>,
    /// Everything before this time stays as recorded.
    pub from_ns: Option<i64>,
}

/// Re-times the whole trace after some changes and evaluates the window again.
///
/// `latencies_ns` is the result of [`latencies_ns`], and `unchanged_ns` the length of the window with
/// them; without changes, every time equals the observed one. The documentation of this module says
/// where the changed window begins.
///
/// # Errors
///
/// Returns an error if a pattern is not a valid regular expression, or if `progress` asks to stop.
pub fn what_if(
    graph: &Graph,
    tables: &Tables,
    window: &Window,
    (latencies_ns, unchanged_ns): (&[i64], i64),
    changes: &[Change],
    progress: Progress<'_>,
) -> Result<WhatIf> {
    let about = (graph, tables, window);
    let own_ns = own_start_ns(graph, window);
    let measured = if own_ns.is_some() {
        Measured { changes: changes.to_vec(), from_ns: own_ns, most_ns: None }
    } else {
        let try_all = |sets: &[Vec<Change>], from_ns: Option<i64>| {
            let length_ns = |set: &Vec<Change>| {
                let found = Retimed::of(about, latencies_ns, set, from_ns, progress)?;
                Ok(found.length_ns())
            };
            sets.iter().map(length_ns).collect()
        };
        let sets = [changes.to_vec()];
        let found = measured((graph, window), unchanged_ns, &sets, &try_all)?;
        found.into_iter().map(|it| it.0).next().unwrap_or_default()
    };
    let Measured { changes, from_ns, most_ns } = measured;
    let mut found = Retimed::of(about, latencies_ns, &changes, from_ns, progress)?;
    if let Some(most_ns) = most_ns {
        found.shorten_to(most_ns);
    }
    Ok(found.answer(graph, window, latencies_ns))
}

/// Computes the lengths of a window after sets of changes. Everything before the time, if one is
/// given, stays as recorded.
pub(super) type LengthsOf<'f> = &'f dyn Fn(&[Vec<Change>], Option<i64>) -> Result<Vec<i64>>;

/// The changes with which a window is measured.
#[derive(Debug, Default)]
pub(super) struct Measured {
    changes: Vec<Change>,
    /// Everything before this time stays as recorded.
    from_ns: Option<i64>,
    /// The window is no longer than this.
    most_ns: Option<i64>,
}

/// Returns how the window of a step is measured after each set of changes, and its length.
pub(super) fn measured(
    (graph, window): (&Graph, &Window),
    unchanged_ns: i64,
    sets: &[Vec<Change>],
    try_all: LengthsOf<'_>,
) -> Result<Vec<(Measured, i64)>> {
    // What others lengthen is also tried without these.
    let mixed = sets.iter().filter(|set| any_shortens(set) && !only_shorten(set));
    let shorter: Vec<Vec<_>> = mixed.map(|set| only_shortening(set)).collect();
    let alternatives: Vec<Vec<_>> =
        sets.iter().map(|set| [vec![set.clone()], without_time(set)].concat()).collect();
    let all = [alternatives.concat(), shorter].concat();
    let mut lengths = try_all(&all, None)?.into_iter();
    let mut found = Vec::with_capacity(sets.len());
    for each in alternatives {
        let tried: Vec<_> = each.into_iter().zip(lengths.by_ref()).collect();
        // Of equally long windows, the first one counts.
        let longest = tried.into_iter().rev().max_by_key(|it| it.1);
        let (changes, length_ns) = longest.unwrap_or_default();
        found.push((Measured { changes, ..Measured::default() }, length_ns));
    }
    for (set, (measured, length_ns)) in sets.iter().zip(&mut found) {
        if !any_shortens(set) {
            continue;
        }
        let only_shortens = only_shorten(set);
        let of_shorter = if only_shortens { None } else { lengths.next() };
        let shortened_ns = of_shorter.unwrap_or(*length_ns);
        if *length_ns <= unchanged_ns {
            continue;
        }
        if is_catching_up(shortened_ns, unchanged_ns) {
            let from_ns = Some(observed_start_ns(graph, window));
            *length_ns = try_all(std::slice::from_ref(set), from_ns)?[0];
            *measured = Measured { changes: set.clone(), from_ns, most_ns: None };
        } else if only_shortens {
            measured.most_ns = Some(unchanged_ns);
            *length_ns = unchanged_ns;
        }
    }
    Ok(found)
}

fn any_shortens(changes: &[Change]) -> bool {
    changes.iter().any(Change::only_shortens)
}

fn only_shorten(changes: &[Change]) -> bool {
    changes.iter().all(Change::only_shortens)
}

/// Returns the changes that never make anything longer.
fn only_shortening(changes: &[Change]) -> Vec<Change> {
    changes.iter().filter(|it| it.only_shortens()).cloned().collect()
}

/// The device catches up in windows that would take this many times as long, as a fraction, with
/// less work: the host, whose pace is known to about a quarter, surely takes longer for a step.
const CATCHING_UP: (i64, i64) = (4, 3);

/// Whether windows with less work take so much longer than unchanged ones that the device catches
/// up with a backlog in these.
pub(super) fn is_catching_up(shortened_ns: i64, unchanged_ns: i64) -> bool {
    shortened_ns / CATCHING_UP.0 > unchanged_ns / CATCHING_UP.1
}

/// A window after a change.
struct Retimed {
    rows: Rows<1>,
    times_ns: Vec<i64>,
    /// Everything before this time stays as recorded.
    from_ns: Option<i64>,
    start_ns: i64,
    end_ns: i64,
}

impl Retimed {
    fn of(
        (graph, tables, window): (&Graph, &Tables, &Window),
        latencies_ns: &[i64],
        changes: &[Change],
        from_ns: Option<i64>,
        progress: Progress<'_>,
    ) -> Result<Self> {
        let rows = rows_of(graph, tables, changes)?;
        let times_ns = times_ns(graph, &rows, latencies_ns, from_ns, progress)?;
        let (start_ns, end_ns) = moved(graph, window, &|node: NodeId| times_ns[node.row()]);
        Ok(Self { rows, times_ns, from_ns, start_ns, end_ns })
    }

    fn length_ns(&self) -> i64 {
        self.end_ns - self.start_ns
    }

    /// Moves the start of the window so that it has at most this length.
    fn shorten_to(&mut self, most_ns: i64) {
        self.start_ns = self.start_ns.max(self.end_ns - most_ns);
    }

    fn answer(self, graph: &Graph, window: &Window, latencies_ns: &[i64]) -> WhatIf {
        let makespan_ns = self.length_ns();
        let latencies_ns = self.rows.latencies_ns(latencies_ns, graph, self.from_ns);
        let reached_by = pass::reached_by(graph, &latencies_ns, &self.times_ns);
        let schedule = Schedule { times_ns: Some(self.times_ns), reached_by: Some(reached_by) };
        let path = walk_between(graph, window, &schedule, (self.start_ns, self.end_ns));
        WhatIf { makespan_ns, path, schedule, latencies_ns, from_ns: self.from_ns }
    }
}

/// Returns the changes with all time removed of the GPU activities that they make faster, and of
/// all activities of the same kinds; nothing for changes that do that already.
fn without_time(changes: &[Change]) -> Vec<Vec<Change>> {
    let zero = Effect::Scale(changes::Ratio::ZERO);
    let faster_kind = |change: &Change| {
        let is_faster = matches!(change.effect, Effect::Scale(by) if by.as_f64() < 1.0);
        change.kind.filter(|kind| is_faster && kind.is_device_work())
    };
    let own = changes.iter().cloned().map(|mut change| {
        if faster_kind(&change).is_some() {
            change.effect = zero;
        }
        change
    });
    let own: Vec<_> = own.collect();
    let kinds: BTreeSet<_> = changes.iter().filter_map(faster_kind).collect();
    let mut all = own.clone();
    let removed = kinds.into_iter().map(|kind| Change::of_kind(zero, kind));
    all.extend(removed.filter(|change| !own.contains(change)));
    let mut found = vec![own, all];
    found.dedup();
    found.retain(|it| it != changes);
    found
}

/// Returns the latencies of all edges after some changes, `i64::MIN` for removed edges. If the
/// changes take effect at `from_ns`, the part of a latency that has passed by then is kept.
///
/// # Errors
///
/// Returns an error if a pattern is not a valid regular expression.
pub fn changed_latencies_ns(
    graph: &Graph,
    tables: &Tables,
    latencies_ns: &[i64],
    changes: &[Change],
    from_ns: Option<i64>,
) -> Result<Vec<i64>> {
    Ok(rows_of(graph, tables, changes)?.latencies_ns(latencies_ns, graph, from_ns))
}

fn rows_of(graph: &Graph, tables: &Tables, changes: &[Change]) -> Result<Rows<1>> {
    let mut rows = Rows::default();
    rows.find(&[changes], graph, &EdgesOf::of(graph), tables)?;
    Ok(rows)
}

/// Returns the time of every node in a single what-if.
fn times_ns(
    graph: &Graph,
    rows: &Rows<1>,
    latencies_ns: &[i64],
    from_ns: Option<i64>,
    progress: Progress<'_>,
) -> Result<Vec<i64>> {
    let start = from_ns.map(|at_ns| FixedStart::at(at_ns, graph));
    let left_ns = start.as_ref().map(|start| start.left_ns(latencies_ns, graph));
    let n_nodes = graph.nodes.len();
    let pass = Pass {
        graph,
        latencies_ns: left_ns.as_deref().unwrap_or(latencies_ns),
        start: start.as_ref(),
        room: &All(n_nodes),
        n_nodes,
    };
    let mut times = Vec::new();
    pass.run(rows, std::iter::empty(), &mut times, progress)?;
    let observed_ns = graph.nodes.times_ns();
    let first_ns = observed_ns.first().copied().unwrap_or(0);
    let n_before = start.map_or(0, |start| start.n_before);
    let changed = times[n_before..].iter().map(|[time]| integer(*time).saturating_add(first_ns));
    Ok(observed_ns[..n_before].iter().copied().chain(changed).collect())
}
