//! Conditions that make a verdict unreliable or inconclusive.

use super::host_waits::time_in_windows_ns;
use super::missing_records::MissingRecords;
use super::question::Question;
use super::unexplained_gaps::UnexplainedGap;
use crate::graph::{Evidence, Kind};
use crate::link::Launches;
use crate::names::Names;
use crate::path::walk::{Path, Segment};
use crate::tables::EventKind;
use crate::vocabulary::ApiRole;

/// Above this share of unknown path time, the verdict is inconclusive. Of 368 simulated paths, it
/// catches four in five of the bad ones and none of the good ones.
const MOST_UNKNOWN: f64 = 0.1;

/// Above this share of GPU activities without a launch, the verdict is inconclusive: such
/// activities keep their time under any change, so that all gains of the host are 0.
const MOST_UNLINKED: f64 = 0.2;

/// Above this share of time that remains when everything recorded takes no time, the verdict is
/// inconclusive. Simulated programs had at most 0.3.
const MOST_REMAINING: f64 = 0.4;

/// Above this share of path time in polling, the verdict is inconclusive: polling is waiting that
/// looks like work.
const MOST_POLLING: f64 = 0.1;

/// Above this share of unnamed host time on the path, with launches missing, the verdict is
/// inconclusive.
const MOST_UNNAMED: f64 = 0.5;

/// A call that returns this much later than what it waited for waited for something else, such as
/// an activity from before recording began.
const LONG_RETURN_NS: i64 = 100_000;

/// The reason why a trace is inconclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Unexplained path time, mostly of this kind.
    Unknown(Kind),
    /// GPU activities without a known launch.
    Unlinked,
    /// Time that remains when everything recorded takes no time.
    Remaining,
    /// The host polls the device.
    Polling,
    /// Host time outside calls that may be a wait for another thread.
    HostWaits,
}

impl Cause {
    /// Returns the name of the cause in data.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown(kind) => kind.name(),
            Self::Unlinked => "unlinked",
            Self::Remaining => "remaining",
            Self::Polling => "polling",
            Self::HostWaits => "host_waits",
        }
    }
}

/// Reliability figures of a verdict, as shares.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Uncertainty {
    /// Fraction of the path that is unexplained.
    pub unknown: f64,
    /// Fraction of the path in gaps between graph nodes, which may hide activities of the replay.
    pub graph_gaps: f64,
    /// Fraction of the time that remains if all recorded work takes no time.
    pub floor: f64,
    /// Fraction of the GPU activities, by number or by time, whose launch is unknown.
    pub unlinked: f64,
    /// Fraction of the path that is inferred.
    pub inferred: f64,
    /// Fraction of the path in which the host polls the device.
    pub polling: f64,
    /// Fraction of the time in which a thread works or waits for another one, and the trace does
    /// not record which.
    pub host_waits: f64,
    /// Fraction of the path without the reported side that is unexplained.
    pub rest: f64,
    /// Fraction of the host time on the path without a name, such as that of a Python function.
    pub unnamed_host: f64,
    /// The reason why there is no verdict, if any.
    pub cause: Option<Cause>,
}

impl Uncertainty {
    pub(super) fn of(
        question: &Question<'_>,
        launches: &Launches,
        open: &MissingRecords,
        everything: f64,
    ) -> Self {
        let segments = || question.paths.iter().flat_map(|path| &path.segments);
        let whole_ns = segments().map(Segment::duration_ns).sum();
        let share = |counts: &dyn Fn(&Segment) -> bool| {
            let ns = segments().filter(|segment| counts(segment)).map(Segment::duration_ns).sum();
            ratio(ns, whole_ns)
        };
        let host_ns = |counts: &dyn Fn(Kind) -> bool| -> i64 {
            let of = segments().filter(|segment| counts(segment.kind));
            of.map(Segment::duration_ns).sum()
        };
        let on_host = |kind| {
            matches!(kind, Kind::Operator | Kind::Runtime | Kind::HostGap | Kind::DataLoading)
        };
        let mut uncertainty = Self {
            unknown: share(&is_unknown),
            graph_gaps: share(&|segment| segment.kind == Kind::GraphGap),
            floor: 1.0 - everything,
            unlinked: unlinked(question, launches),
            inferred: share(&|segment| segment.evidence == Evidence::Inferred),
            polling: polling(question),
            host_waits: ratio(
                time_in_windows_ns(&open.host_waits, question.paths, question.graph),
                whole_ns,
            ),
            rest: 0.0,
            unnamed_host: if has_stacks(question) {
                0.0
            } else {
                ratio(host_ns(&|kind| kind == Kind::HostGap), host_ns(&on_host))
            },
            cause: None,
        };
        uncertainty.cause = uncertainty.cause(question);
        uncertainty
    }

    /// Returns the same figures for the time outside unexplained gaps, where `everything` was
    /// removed.
    #[allow(clippy::cast_precision_loss)] // a share
    pub(super) fn apart_from(
        self,
        unexplained_gaps: &[UnexplainedGap],
        everything: f64,
        question: &Question<'_>,
    ) -> Self {
        let whole_ns: i64 = question.paths.iter().map(|path| path.end_ns - path.start_ns).sum();
        let gaps_ns: i64 = unexplained_gaps.iter().map(|gap| gap.duration_ns).sum();
        let rest = (whole_ns - gaps_ns).max(1) as f64 / whole_ns.max(1) as f64;
        let gap = gaps_ns as f64 / whole_ns.max(1) as f64;
        let mut uncertainty = Self {
            unknown: ((self.unknown - gap) / rest).max(0.0),
            floor: 1.0 - everything,
            graph_gaps: self.graph_gaps / rest,
            inferred: self.inferred / rest,
            polling: self.polling / rest,
            ..self
        };
        uncertainty.cause = uncertainty.cause(question);
        uncertainty
    }

    /// Whether launches are missing and most host time has no name. This happens in sampled traces,
    /// in which gaps between events look like host work.
    pub(super) fn is_of_nobody(&self) -> bool {
        self.unlinked > MOST_UNLINKED && self.unnamed_host > MOST_UNNAMED
    }

    /// Whether no launch is known and too much time is unexplained: the host, which is not
    /// recorded, may have caused it.
    pub(super) fn is_of_unseen_host(&self) -> bool {
        self.unlinked >= 1.0 && self.unknown > MOST_UNKNOWN
    }

    /// Whether too much of the path is unexplained, although launches are known.
    pub(super) fn is_unexplained(&self) -> bool {
        self.unknown > MOST_UNKNOWN && self.unlinked <= MOST_UNLINKED
    }

    fn cause(&self, question: &Question<'_>) -> Option<Cause> {
        if self.unlinked > MOST_UNLINKED {
            Some(Cause::Unlinked)
        } else if self.unknown > MOST_UNKNOWN {
            Some(Cause::Unknown(most_of_unknown(question)))
        } else if self.polling > MOST_POLLING {
            Some(Cause::Polling)
        } else if self.floor > MOST_REMAINING {
            Some(Cause::Remaining)
        } else {
            (self.host_waits > 0.0).then_some(Cause::HostWaits)
        }
    }
}

/// Whether Python functions are recorded.
fn has_stacks(question: &Question<'_>) -> bool {
    let events = &question.tables.events;
    events.ids().any(|event| events.kind(event) == EventKind::Python)
}

#[allow(clippy::cast_precision_loss)] // a share
fn ratio(part: i64, whole: i64) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// Whether the time of a segment is unexplained.
fn is_unknown(segment: &Segment) -> bool {
    (segment.kind.is_unknown() && segment.kind != Kind::GraphGap)
        || (segment.kind == Kind::SyncReturn && segment.duration_ns() > LONG_RETURN_NS)
}

/// Returns the kind of most of the unexplained time.
fn most_of_unknown(question: &Question<'_>) -> Kind {
    let segments = || question.paths.iter().flat_map(|path| &path.segments);
    let time_ns = |kind: &&Kind| -> i64 {
        let of = segments().filter(|segment| segment.kind == **kind && is_unknown(segment));
        of.map(Segment::duration_ns).sum()
    };
    Kind::ALL.iter().max_by_key(time_ns).copied().unwrap_or(Kind::Unexplained)
}

/// Returns the share of the GPU activities in the windows without a known launch, by number or by
/// time. Migrations of managed memory have no launch by nature.
fn unlinked(question: &Question<'_>, launches: &Launches) -> f64 {
    let (timeline, windows) = (&question.graph.timeline, &question.scope.windows);
    let first_ns = windows.first().map_or(i64::MIN, |window| window.start_ns);
    let last_ns = windows.last().map_or(i64::MAX, |window| window.end_ns);
    let mut count = [0_i64; 2];
    let mut time_ns = [0_i64; 2];
    for work in timeline.orders().filter(|&work| timeline.kind(work).is_device_work()) {
        if timeline.start_ns(work) < last_ns && first_ns < timeline.end_ns(work) {
            let is_linked = launches.launcher(timeline.event(work)).is_some();
            if !is_linked && question.tables.is_migration(timeline.event(work)) {
                continue;
            }
            let is_linked = usize::from(is_linked);
            count[is_linked] += 1;
            time_ns[is_linked] += timeline.duration_ns(work);
        }
    }
    let share = |[unlinked, linked]: [i64; 2]| ratio(unlinked, unlinked + linked);
    share(count).max(share(time_ns))
}

/// Returns the share of the paths spent in queries, and on the host between two queries.
fn polling(question: &Question<'_>) -> f64 {
    let roles = question.tables.roles();
    if !roles.contains(&ApiRole::Query) {
        return 0.0;
    }
    let name = |segment: &Segment| question.tables.events.name(segment.event?);
    let is_query = |segment: &Segment| {
        segment.kind == Kind::Runtime
            && name(segment).is_some_and(|name| roles[name.row()] == ApiRole::Query)
    };
    let of_path = |path: &Path| -> i64 {
        let polls: Vec<_> = path.segments.iter().map(is_query).collect();
        let near = |place: usize| polls.get(place).copied().unwrap_or(false);
        let counts =
            |place: &usize| near(*place) || (*place > 0 && near(*place - 1) && near(*place + 1));
        (0..polls.len()).filter(counts).map(|place| path.segments[place].duration_ns()).sum()
    };
    let total_ns = question.paths.iter().map(|path| path.end_ns - path.start_ns).sum();
    ratio(question.paths.iter().map(of_path).sum(), total_ns)
}
