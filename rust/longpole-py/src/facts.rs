//! Queries of remedies about the windows of a verdict, and the gains of changes there.

use std::sync::{Arc, OnceLock};

use longpole_core::graph::Graph;
use longpole_core::ids::EventId;
use longpole_core::link::Launches;
use longpole_core::names::Names;
use longpole_core::overhead;
use longpole_core::path::{
    self, Activity, Bounds, Change, DeviceWait, Fact, FactIndex, Gain, Inquiry, Named, OnThread,
    Possible, Scope, Side, ThreadGap, TimeRange,
};
use longpole_core::stack::Nesting;
use longpole_core::tables::{EventKind, Tables};
use longpole_core::vocabulary::ApiRole;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::critical_path::{ChangeParts, TimeRangeParts, change};
use crate::enter::enter;
use crate::trace::Estimate;

/// An event on a thread, as `(event, lane, start_ns, end_ns, window)`.
type OnThreadParts = (usize, usize, i64, i64, usize);

/// A gap of a thread, as `(lane, start_ns, end_ns, window, idle_ns, before, after, is_loading)`.
type GapParts = (usize, i64, i64, usize, i64, Option<usize>, Option<usize>, bool);

/// A GPU activity, as `(event, call, operator, outermost, kind, start_ns, duration_ns, lane,
/// window)`.
type ActivityParts =
    (usize, Option<usize>, Option<usize>, Option<usize>, &'static str, i64, i64, usize, usize);

/// Certain and possible changes; without the latter, they are the same.
type PossibleParts = (Vec<ChangeParts>, Option<Vec<ChangeParts>>);

/// A gain, as `(gain_ns, gain, bounds, sides)`.
type GainParts = (i64, f64, BoundsParts, Vec<&'static str>);

/// The bounds of a gain, as `(low, high, low_by, high_by)`.
type BoundsParts = (f64, f64, &'static str, &'static str);

/// Queries of remedies about the windows of a verdict.
#[pyclass(frozen, module = "longpole._core")]
pub(crate) struct Facts {
    pub(crate) tables: Tables,
    pub(crate) graph: Arc<Graph>,
    pub(crate) nesting: Arc<Nesting>,
    pub(crate) launches: Arc<Launches>,
    pub(crate) scope: Arc<Scope>,
    pub(crate) inquiry: Inquiry,
    /// The minimum latencies of the edges for other recording costs, if such were taken off.
    pub(crate) other_latencies_ns: OnceLock<Vec<Vec<i64>>>,
    pub(crate) estimate: Option<Arc<Estimate>>,
    pub(crate) index: FactIndex,
}

impl Facts {
    /// Returns the graph and the windows that queries and gains are about.
    fn part(&self) -> (&Graph, &Scope) {
        self.inquiry.part((&self.graph, &self.scope))
    }

    fn facts(&self) -> path::Facts<'_> {
        let (graph, scope) = self.part();
        path::Facts {
            graph,
            tables: &self.tables,
            nesting: &self.nesting,
            launches: &self.launches,
            scope,
            whole: (&self.graph, &self.scope),
            index: &self.index,
        }
    }

    fn other_latencies_ns(&self) -> &[Vec<i64>] {
        self.other_latencies_ns.get_or_init(|| {
            self.estimate.as_ref().map_or_else(Vec::new, |of| {
                let Estimate { recorded, costs, factor } = &**of;
                let ((graph, _), tables, nesting) = (self.part(), &self.tables, &self.nesting);
                overhead::latency_bounds_ns(graph, tables, recorded, nesting, (costs, *factor))
                    .into()
            })
        })
    }

    fn changes(&self, parts: Vec<ChangeParts>) -> PyResult<Vec<Change>> {
        let n_events = self.tables.events.len();
        parts.into_iter().map(|parts| change(parts, n_events)).collect()
    }

    fn event(&self, row: usize) -> PyResult<EventId> {
        let n_events = self.tables.events.len();
        let message =
            || PyValueError::new_err(format!("no event {row}; the trace has {n_events} events"));
        (row < n_events).then(|| EventId::from_row(row)).ok_or_else(message)
    }
}

#[pymethods]
impl Facts {
    /// Returns the start and end of each window.
    #[getter]
    fn windows(&self) -> Vec<(i64, i64)> {
        let (_, scope) = self.part();
        scope.windows.iter().map(|window| (window.start_ns, window.end_ns)).collect()
    }

    /// Returns the numbers of the windows, if they have numbers.
    #[getter]
    fn numbers(&self) -> Vec<i64> {
        self.part().1.numbers.clone()
    }

    /// Returns the events on threads of the given kinds that begin in a window, take at least
    /// `least_ns`, and whose names start with one of `prefixes`.
    fn on_threads(
        &self,
        py: Python<'_>,
        kinds: Vec<String>,
        least_ns: i64,
        prefixes: Vec<String>,
    ) -> PyResult<Vec<OnThreadParts>> {
        let kinds = kinds_of(&kinds)?;
        let accepts = |name: &str| {
            prefixes.is_empty() || prefixes.iter().any(|prefix| name.starts_with(prefix))
        };
        enter(py, None, None, |_| {
            let found = self.facts().on_threads(&kinds, least_ns, accepts);
            Ok(found.into_iter().map(on_thread).collect())
        })
    }

    /// Returns the calls with the given roles that begin in a window.
    fn calls(&self, py: Python<'_>, roles: Vec<String>) -> PyResult<Vec<OnThreadParts>> {
        let role = |name: &String| {
            ApiRole::named(name)
                .ok_or_else(|| PyValueError::new_err(format!("unknown role {name:?}")))
        };
        let roles = roles.iter().map(role).collect::<PyResult<Vec<_>>>()?;
        enter(py, None, None, |_| {
            Ok(self.facts().calls(&roles).into_iter().map(on_thread).collect())
        })
    }

    /// Returns the GPU activities of the given kinds that end in a window and take at least
    /// `least_ns`.
    fn activities(
        &self,
        py: Python<'_>,
        kinds: Vec<String>,
        least_ns: i64,
    ) -> PyResult<Vec<ActivityParts>> {
        let kinds = kinds_of(&kinds)?;
        enter(py, None, None, |_| {
            Ok(self.facts().activities(&kinds, least_ns).into_iter().map(activity).collect())
        })
    }

    /// Returns the GPU activities launched in some time ranges of threads.
    fn launched_in(
        &self,
        py: Python<'_>,
        time_ranges: Vec<TimeRangeParts>,
    ) -> PyResult<Vec<ActivityParts>> {
        let time_ranges: Vec<_> = time_ranges.into_iter().map(time_range).collect();
        enter(py, None, None, |_| {
            Ok(self.facts().launched_in(&time_ranges).into_iter().map(activity).collect())
        })
    }

    /// Returns the events that begin in some time ranges of threads, by name: `(name, kind, count,
    /// total_ns, first, depth)`.
    #[allow(clippy::needless_pass_by_value, clippy::type_complexity)] // from Python
    fn names_in(
        &self,
        py: Python<'_>,
        time_ranges: Vec<TimeRangeParts>,
    ) -> PyResult<Vec<(String, &'static str, usize, i64, usize, u16)>> {
        let time_ranges: Vec<_> = time_ranges.into_iter().map(time_range).collect();
        let row = |it: Named| {
            let name = self.tables.strings.get(it.name).to_owned();
            (name, it.kind.name(), it.count, it.total_ns, it.first.row(), it.depth)
        };
        enter(py, None, None, |_| {
            Ok(self.facts().names_in(&time_ranges).into_iter().map(row).collect())
        })
    }

    /// Returns the time ranges of at least `least_ns` in which a thread has no open operator or
    /// call.
    fn thread_gaps(&self, py: Python<'_>, least_ns: i64) -> PyResult<Vec<GapParts>> {
        enter(py, None, None, |_| {
            Ok(self.facts().thread_gaps(least_ns).into_iter().map(gap).collect())
        })
    }

    /// Returns the calls in the windows that waited for a device: `(call, operator, work)`.
    #[allow(clippy::type_complexity)] // for Python
    fn waits(
        &self,
        py: Python<'_>,
    ) -> PyResult<Vec<(OnThreadParts, Option<usize>, Option<usize>)>> {
        let row = |it: DeviceWait| {
            (on_thread(it.call), it.operator.map(EventId::row), it.work.map(EventId::row))
        };
        enter(py, None, None, |_| Ok(self.facts().waits().into_iter().map(row).collect()))
    }

    /// Returns the least time that the host took for a step, where re-timing does not consider it.
    fn host_pace_ns(&self, py: Python<'_>) -> PyResult<Option<i64>> {
        enter(py, None, None, |_| Ok(self.facts().host_pace_ns()))
    }

    /// Returns the name of an event.
    fn name(&self, event: usize) -> PyResult<&str> {
        let name = self.tables.events.name(self.event(event)?);
        Ok(name.map_or("", |name| self.tables.strings.get(name)))
    }

    /// Returns the kind, lane, start and duration of an event.
    fn place(&self, event: usize) -> PyResult<(&'static str, usize, i64, Option<i64>)> {
        let (event, events) = (self.event(event)?, &self.tables.events);
        let kind = events.kind(event).name();
        Ok((kind, events.lane(event).row(), events.start_ns(event), events.duration_ns(event)))
    }

    /// Returns an event and the events that enclose it, innermost first: `(event, kind, name)`.
    fn around(&self, event: usize) -> PyResult<Vec<(usize, &'static str, String)>> {
        let (events, strings) = (&self.tables.events, &self.tables.strings);
        let row = |it: EventId| {
            let name = events.name(it).map_or("", |name| strings.get(name));
            (it.row(), events.kind(it).name(), name.to_owned())
        };
        Ok(self.facts().ancestors(self.event(event)?).map(row).collect())
    }

    /// Returns an integer argument of an event.
    fn number(&self, event: usize, key: &str) -> PyResult<Option<i64>> {
        Ok(self.facts().number(self.event(event)?, key))
    }

    /// Returns a string argument of an event.
    fn text(&self, event: usize, key: &str) -> PyResult<Option<&str>> {
        Ok(self.facts().text(self.event(event)?, key))
    }

    /// Returns for each event the place of the first one with the same name and string arguments.
    #[allow(clippy::needless_pass_by_value)] // from Python
    fn alike(&self, py: Python<'_>, events: Vec<usize>, keys: Vec<String>) -> PyResult<Vec<usize>> {
        let events = events.into_iter().map(|row| self.event(row)).collect::<PyResult<Vec<_>>>()?;
        enter(py, None, None, |_| Ok(self.facts().alike(&events, &keys)))
    }

    /// Whether the source and the destination of a memcpy are pageable memory.
    fn pageable_ends(&self, event: usize) -> PyResult<[bool; 2]> {
        Ok(self.facts().pageable_ends(self.event(event)?))
    }

    /// Returns the gain of each pair of certain and possible changes.
    fn gains(&self, py: Python<'_>, possible: Vec<PossibleParts>) -> PyResult<Vec<GainParts>> {
        let set = |parts| self.changes(parts);
        let both = |(careful, hopeful): PossibleParts| {
            Ok(Possible { careful: set(careful)?, hopeful: hopeful.map(set).transpose()? })
        };
        let possible = possible.into_iter().map(both).collect::<PyResult<Vec<_>>>()?;
        let gains = enter(py, None, None, |progress| {
            self.inquiry.gains(&self.facts(), self.other_latencies_ns(), &possible, progress)
        })?;
        Ok(gains.into_iter().map(gain).collect())
    }

    /// Returns the gain of each set of certain changes at the estimated cost of recording.
    fn values(&self, py: Python<'_>, sets: Vec<Vec<ChangeParts>>) -> PyResult<Vec<f64>> {
        let sets = sets.into_iter().map(|set| self.changes(set)).collect::<PyResult<Vec<_>>>()?;
        enter(py, None, None, |progress| self.inquiry.values(&self.facts(), &sets, progress))
    }

    /// Returns the gain of each side.
    fn gains_of_sides(&self, py: Python<'_>) -> PyResult<Vec<(&'static str, GainParts)>> {
        let gains = enter(py, None, None, |progress| {
            self.inquiry.gains_of_sides(&self.facts(), self.other_latencies_ns(), progress)
        })?;
        let names = Side::ALL.iter().map(|side| side.name());
        Ok(names.zip(gains.into_iter().map(gain)).collect())
    }

    /// Returns how much shorter what changes leave becomes without each side of work.
    fn gains_after(
        &self,
        py: Python<'_>,
        changes: Vec<ChangeParts>,
    ) -> PyResult<Vec<(&'static str, f64)>> {
        let changes = self.changes(changes)?;
        let gains = enter(py, None, None, |progress| {
            self.inquiry.gains_after(&self.facts(), self.other_latencies_ns(), &changes, progress)
        })?;
        Ok(gains.into_iter().map(|(side, gain)| (side.name(), gain)).collect())
    }
}

fn kinds_of(names: &[String]) -> PyResult<Vec<EventKind>> {
    let kind = |name: &String| {
        EventKind::named(name)
            .ok_or_else(|| PyValueError::new_err(format!("unknown kind of events {name:?}")))
    };
    names.iter().map(kind).collect()
}

fn time_range((lane, start_ns, end_ns): TimeRangeParts) -> TimeRange {
    TimeRange { lane, start_ns, end_ns }
}

fn on_thread(it: OnThread) -> OnThreadParts {
    (it.event.row(), it.time_range.lane, it.time_range.start_ns, it.time_range.end_ns, it.window)
}

fn gap(it: ThreadGap) -> GapParts {
    let TimeRange { lane, start_ns, end_ns } = it.time_range;
    let (before, after) = (it.before.map(EventId::row), it.after.map(EventId::row));
    (lane, start_ns, end_ns, it.window, it.idle_ns, before, after, it.is_loading)
}

fn activity(it: Activity) -> ActivityParts {
    let row = |event: Option<EventId>| event.map(EventId::row);
    (
        it.event.row(),
        row(it.call),
        row(it.operator),
        row(it.outermost),
        it.kind.name(),
        it.start_ns,
        it.duration_ns,
        it.lane,
        it.window,
    )
}

fn gain(it: Gain) -> GainParts {
    let sides = it.sides().map(Names::name).collect();
    (it.duration_ns(), it.value(), bounds(it.bounds()), sides)
}

fn bounds(it: Bounds) -> BoundsParts {
    (it.low, it.high, it.low_by.name(), it.high_by.name())
}

/// Extends the bounds of a gain to those that it has with another cost of recording.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // from Python
pub(crate) fn extended_bounds(
    own: (f64, f64, String, String),
    other: (f64, f64, String, String),
) -> PyResult<BoundsParts> {
    let mut found = parsed(&own)?;
    found.extend(&parsed(&other)?);
    Ok(bounds(found))
}

fn parsed((low, high, low_by, high_by): &(f64, f64, String, String)) -> PyResult<Bounds> {
    let fact = |name: &str| {
        Fact::named(name).ok_or_else(|| PyValueError::new_err(format!("unknown fact {name:?}")))
    };
    Ok(Bounds { low: *low, high: *high, low_by: fact(low_by)?, high_by: fact(high_by)? })
}
