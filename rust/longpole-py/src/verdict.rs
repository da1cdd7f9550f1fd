//! A verdict as plain values for Python, which formats it as text.

use std::collections::HashMap;

use longpole_core::graph::Graph;
use longpole_core::link::Launches;
use longpole_core::measure;
use longpole_core::names::Names;
use longpole_core::path::{self, Inquiry, Scope, Side, UnexplainedGap, Usual, Verdict};
use longpole_core::stack::Nesting;
use longpole_core::tables::Tables;
use pyo3::prelude::*;

use crate::enter::enter;

/// The host name with the most time: name, share, number of events, share of the longest, role,
/// first use.
type BusiestParts = (String, f64, usize, f64, Option<&'static str>, bool);

/// A verdict as a dictionary; its fields are in `python/longpole/_core.pyi`.
#[derive(IntoPyObject)]
pub(crate) struct VerdictParts {
    limit: &'static str,
    sides: Vec<&'static str>,
    gaps: Vec<GapParts>,
    kernels_and_host: f64,
    unit: &'static str,
    numbers: Vec<i64>,
    shown: usize,
    n_windows: usize,
    lengths_ns: (i64, i64, i64, i64),
    outliers: Vec<usize>,
    uncertainty: HashMap<&'static str, f64>,
    cause: Option<&'static str>,
    reason: String,
    function: Option<(String, f64)>,
    busiest: Option<BusiestParts>,
    n_launched: usize,
    loader: Option<&'static str>,
    usual: Option<(Vec<&'static str>, f64, bool)>,
    caught_up_ns: Option<i64>,
    awaited: Option<AwaitedParts>,
    recorded: RecordedParts,
    profiler: &'static str,
    is_of_server: bool,
}

/// An unexplained gap as a dictionary.
#[derive(IntoPyObject)]
struct GapParts {
    duration_ns: i64,
    event: usize,
    before: String,
    is_activity: bool,
    host: Option<(String, bool)>,
    busy_ns: i64,
    is_first: bool,
    follows_wait: bool,
}

impl GapParts {
    fn of(gap: &UnexplainedGap, tables: &Tables) -> Self {
        let events = &tables.events;
        let name =
            |event| events.name(event).map_or("", |name| tables.strings.get(name)).to_owned();
        Self {
            duration_ns: gap.duration_ns,
            event: gap.event.row(),
            before: name(gap.event),
            is_activity: events.kind(gap.event).is_device_work(),
            host: gap.host.map(|(event, waits)| (name(event), waits)),
            busy_ns: gap.busy_ns,
            is_first: gap.is_first,
            follows_wait: gap.follows_wait,
        }
    }
}

/// What the trace contains about the shown window, as a dictionary.
#[derive(IntoPyObject)]
struct RecordedParts {
    busy: Vec<(&'static str, f64)>,
    device: f64,
    host: f64,
    n_activities: u64,
    n_unlinked: u64,
    host_collectives: Option<(String, f64)>,
    has_operators: bool,
    n_silent_threads: usize,
    stopped_ns: i64,
    n_launching: usize,
    n_counter_ranges: usize,
    impossible: f64,
}

impl RecordedParts {
    #[allow(clippy::cast_precision_loss)] // shares
    fn of(tables: &Tables, launches: &Launches, scope: &Scope) -> Self {
        let window = scope.window();
        let found = measure::recorded(tables, launches, (window.start_ns, window.end_ns));
        let length_ns = (window.end_ns - window.start_ns).max(1) as f64;
        let share = |time_ns: i64| time_ns as f64 / length_ns;
        let text = |name| tables.strings.get(name).to_owned();
        Self {
            busy: vec![
                (Side::Kernels.name(), share(found.compute_ns)),
                (Side::Communication.name(), share(found.communication_ns)),
                (Side::Copies.name(), share(found.copy_ns)),
            ],
            device: share(found.device_ns),
            host: share(found.host_ns),
            n_activities: found.activities.0,
            n_unlinked: found.activities.1,
            host_collectives: found.host_collectives.map(|(name, ns)| (text(name), share(ns))),
            has_operators: found.has_operators,
            n_silent_threads: found.n_silent_threads,
            stopped_ns: found.stopped_ns,
            n_launching: found.n_launching,
            n_counter_ranges: found.n_counter_ranges,
            impossible: impossible(tables, launches, scope),
        }
    }
}

/// Returns the share of the windows that is time of GPU activities with impossible times.
#[allow(clippy::cast_precision_loss)] // a share
fn impossible(tables: &Tables, launches: &Launches, scope: &Scope) -> f64 {
    let (Some(first), Some(last)) = (scope.windows.first(), scope.windows.last()) else {
        return 0.0;
    };
    let time_ns = measure::impossible_ns(tables, launches, (first.start_ns, last.end_ns));
    time_ns as f64 / (last.end_ns - first.start_ns).max(1) as f64
}

/// The waiting of collectives, as a dictionary.
#[derive(IntoPyObject)]
struct AwaitedParts {
    name: String,
    event: usize,
    peer: i64,
    peer_ns: i64,
    waiting_ns: i64,
    total_ns: i64,
}

impl AwaitedParts {
    fn of(tables: &Tables, scope: &Scope) -> Option<Self> {
        let time_ranges: Vec<_> = scope.windows.iter().map(|it| (it.start_ns, it.end_ns)).collect();
        let found = measure::awaited(tables, &time_ranges)?;
        let name = tables.events.name(found.event).map_or("", |name| tables.strings.get(name));
        Some(Self {
            name: name.to_owned(),
            event: found.event.row(),
            peer: found.peer,
            peer_ns: found.peer_ns,
            waiting_ns: found.waiting_ns,
            total_ns: found.total_ns,
        })
    }
}

impl VerdictParts {
    pub(crate) fn find(
        py: Python<'_>,
        tables: &Tables,
        launches: &Launches,
        graph: &Graph,
        nesting: &Nesting,
        scope: &Scope,
    ) -> PyResult<(Self, Inquiry)> {
        let (verdict, inquiry) = enter(py, None, None, |progress| {
            path::verdict(graph, tables, launches, nesting, scope, progress)
        })?;
        Ok((Self::of(tables, launches, scope, verdict), inquiry))
    }

    fn of(tables: &Tables, launches: &Launches, scope: &Scope, verdict: Verdict) -> Self {
        let uncertainty = &verdict.uncertainty;
        let lengths = &verdict.lengths;
        let sides = |sides: &[Side]| sides.iter().map(|side| side.name()).collect();
        let usual = |usual: Usual| (sides(&usual.sides), usual.gain, usual.differs);
        Self {
            awaited: AwaitedParts::of(tables, scope),
            recorded: RecordedParts::of(tables, launches, scope),
            profiler: measure::profiler(tables).name(),
            is_of_server: path::is_of_server(tables),
            limit: verdict.limit.name(),
            sides: sides(&verdict.limit.sides()),
            gaps: verdict.unexplained_gaps.iter().map(|gap| GapParts::of(gap, tables)).collect(),
            kernels_and_host: verdict.kernels_and_host,
            unit: scope.unit.name(),
            n_windows: scope.windows.len(),
            numbers: scope.numbers.clone(),
            shown: scope.shown,
            lengths_ns: (lengths.shown_ns, lengths.least_ns, lengths.most_ns, lengths.total_ns),
            outliers: lengths.outliers.clone(),
            uncertainty: HashMap::from([
                ("unknown", uncertainty.unknown),
                ("floor", uncertainty.floor),
                ("unlinked", uncertainty.unlinked),
                ("inferred", uncertainty.inferred),
                ("polling", uncertainty.polling),
                ("host_waits", uncertainty.host_waits),
                ("rest", uncertainty.rest),
                ("unnamed_host", uncertainty.unnamed_host),
                ("graph_gaps", uncertainty.graph_gaps),
            ]),
            cause: uncertainty.cause.map(path::Cause::name),
            reason: scope.reason.text.clone(),
            function: verdict
                .function
                .map(|function| (tables.strings.get(function.name).to_owned(), function.share)),
            busiest: verdict.busiest.map(|it| {
                let (name, role) = (tables.strings.get(it.name), it.role.map(Names::name));
                (name.to_owned(), it.share, it.n_events, it.longest, role, it.is_first_use)
            }),
            n_launched: verdict.n_launched,
            loader: verdict.loader.map(path::Loader::name),
            usual: verdict.usual.map(usual),
            caught_up_ns: verdict.caught_up_ns,
        }
    }
}
