//! What a trace contains about a window: how much device and thread activity was recorded, and what
//! the profiler left out.
//!
//! A verdict uses it to qualify its answer if little is recorded, and to recommend a recording that
//! shows more.

use std::collections::{BTreeMap, BTreeSet};

use super::Chosen;
use super::busy::busy;
use super::by_name::unlinked;
use crate::ids::{EventId, StringId};
use crate::intervals::Spans;
use crate::link::Launches;
use crate::names::Names;
use crate::tables::{EventKind, Tables};
use crate::vocabulary::{ApiRole, Layer, Profiler, runs_on_cpu};

/// What a trace contains about a window.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Compute time of the device that computed longest.
    pub compute_ns: i64,
    /// Largest time in which one device communicated and did not compute.
    pub communication_ns: i64,
    /// Largest time in which one device copied and ran no kernel.
    pub copy_ns: i64,
    /// Time in which any device was busy.
    pub device_ns: i64,
    /// Time in which an operator, a call or a Python function was open.
    pub host_ns: i64,
    /// Number of GPU activities, and of those without a known launch call.
    pub activities: (u64, u64),
    /// The collective of a CPU library that was open longest, and the time in which any was open.
    pub host_collectives: Option<(StringId, i64)>,
    /// Whether any operators or Python functions are recorded.
    pub has_operators: bool,
    /// Number of threads that launch activities outside any operator, function or annotation,
    /// although other threads have some: the profiler recorded these only on some threads.
    pub n_silent_threads: usize,
    /// Time from the end of the recording to the end of the window.
    pub stopped_ns: i64,
    /// Number of calls in the whole trace that launch or copy.
    pub n_launching: usize,
    /// Number of ranges in the whole trace for which performance counters were read.
    pub n_counter_ranges: usize,
}

/// Returns what the trace contains about a window.
pub fn recorded(tables: &Tables, launches: &Launches, window: (i64, i64)) -> Recorded {
    let devices = busy(tables, window, &Chosen::All);
    let most = |time_ns: fn(&super::Busy) -> i64| {
        devices.iter().filter(|row| row.stream.is_none()).map(time_ns).max().unwrap_or(0)
    };
    let events = &tables.events;
    let overlaps = |&(start_ns, end_ns): &(i64, i64)| start_ns < window.1 && end_ns > window.0;
    let open_ns = |counts: &dyn Fn(EventKind) -> bool| {
        let counted = events.ids().filter(|&event| counts(events.kind(event)));
        Spans::union_of(counted.filter_map(|event| events.span(event)).filter(overlaps))
            .length_within_ns(window.0, window.1)
    };
    let is_work = |kind| matches!(kind, EventKind::Operator | EventKind::Python);
    let ranges = events.ids().filter(|&event| events.kind(event) == EventKind::CounterRange);
    Recorded {
        compute_ns: most(|row| row.compute_ns),
        communication_ns: most(|row| row.communication_ns),
        copy_ns: most(|row| row.copy_ns),
        device_ns: open_ns(&EventKind::is_device_work),
        host_ns: open_ns(&|kind| is_work(kind) || kind.is_call()),
        activities: unlinked(tables, launches, window),
        host_collectives: host_collectives(tables, window),
        has_operators: events.ids().any(|event| is_work(events.kind(event))),
        n_silent_threads: n_silent_threads(tables),
        stopped_ns: stopped_ns(tables, window.1),
        n_launching: n_launching(tables),
        n_counter_ranges: ranges.count(),
    }
}

fn n_launching(tables: &Tables) -> usize {
    launching(tables).count()
}

/// Returns the calls in the whole trace that launch kernels or graphs.
fn launching(tables: &Tables) -> impl Iterator<Item = EventId> + '_ {
    let (events, roles) = (&tables.events, tables.roles());
    let launches = move |event: &EventId| {
        let role = events.name(*event).map(|name| roles[name.row()]);
        matches!(role, Some(ApiRole::Launch | ApiRole::GraphLaunch))
    };
    events.ids().filter(|&event| events.kind(event).is_call()).filter(launches)
}

fn n_silent_threads(tables: &Tables) -> usize {
    let events = &tables.events;
    let names_work = |&event: &EventId| {
        let kind = events.kind(event);
        matches!(kind, EventKind::Operator | EventKind::Python | EventKind::Annotation)
    };
    let with_activity: BTreeSet<_> =
        events.ids().filter(names_work).map(|event| events.lane(event)).collect();
    let launching: BTreeSet<_> = launching(tables).map(|event| events.lane(event)).collect();
    if with_activity.is_empty() { 0 } else { launching.difference(&with_activity).count() }
}

/// Returns the time from the end of the recording to `time_ns`; 0 if the trace does not record its
/// end.
fn stopped_ns(tables: &Tables, time_ns: i64) -> i64 {
    let events = &tables.events;
    let frames = events.ids().filter(|&event| events.kind(event) == EventKind::Span);
    let end_ns = frames.filter_map(|event| events.end_ns(event)).max();
    end_ns.map_or(0, |end_ns| time_ns.saturating_sub(end_ns).max(0))
}

/// Returns the CPU collective that is open longest in a window, and the time in which any is open.
fn host_collectives(tables: &Tables, window: (i64, i64)) -> Option<(StringId, i64)> {
    let events = &tables.events;
    let mut spans: BTreeMap<StringId, Vec<(i64, i64)>> = BTreeMap::new();
    for event in events.ids().filter(|&event| events.kind(event) == EventKind::Annotation) {
        let name = events.name(event).filter(|&name| runs_on_cpu(tables.strings.get(name)));
        if let (Some(name), Some(span)) = (name, events.span(event)) {
            spans.entry(name).or_default().push(span);
        }
    }
    let within = |spans: Vec<_>| Spans::union_of(spans).length_within_ns(window.0, window.1);
    let all_ns = within(spans.values().flatten().copied().collect());
    let longest = spans.into_iter().map(|(name, spans)| (within(spans), name)).max()?;
    (longest.0 > 0).then_some((longest.1, all_ns))
}

// Detects the profiler that wrote a trace, so that advice can mention its options.
//
// The `profiler` field decides if there is one; longpole writes it when it converts other files.
// Otherwise, the file format or the names of processes decide. A trace without these is assumed to
// be from PyTorch; its device type follows from the names of its runtime API calls or the versions
// in its header.

/// Returns the profiler that wrote a trace.
pub fn profiler(tables: &Tables) -> Profiler {
    let mut is_telling = false;
    let mut found = Profiler::Msprof;
    for name in process_names(tables) {
        let Some(layer) = Layer::of_process(name) else { continue };
        is_telling |= layer.is_telling(name);
        found = Profiler::of_process(name).unwrap_or(found);
    }
    said(tables)
        .or_else(|| Profiler::of_format(tables.header.format))
        .unwrap_or_else(|| if is_telling { found } else { of_torch(tables) })
}

/// Detects the device type by the names of runtime API calls, otherwise by header fields; CUDA
/// takes precedence.
fn of_torch(tables: &Tables) -> Profiler {
    let first = |named: Vec<Profiler>| {
        Profiler::ALL.iter().copied().find(|profiler| named.contains(profiler))
    };
    let fields = tables.header.fields.iter();
    first(tables.strings.iter().filter_map(Profiler::of_call).collect())
        .or_else(|| first(fields.filter_map(|(name, _)| Profiler::of_field(name)).collect()))
        .unwrap_or(Profiler::TorchUnknown)
}

/// Returns the profiler according to the header.
fn said(tables: &Tables) -> Option<Profiler> {
    let (_, text) = tables.header.fields.iter().rev().find(|(name, _)| name == "profiler")?;
    Profiler::named(text.trim().trim_matches('"'))
}

fn process_names(tables: &Tables) -> impl Iterator<Item = &str> {
    let (metadata, strings) = (&tables.metadata, &tables.strings);
    let wanted = strings.lookup("process_name");
    (0..metadata.len())
        .filter(move |&row| wanted.is_some() && StringId::from_column(metadata.name[row]) == wanted)
        .filter_map(|row| Some(strings.get(StringId::from_column(metadata.value[row])?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::launches;
    use crate::progress::silent;
    use crate::read::{Options, read_bytes};

    fn found(events: &str) -> Recorded {
        let tables = read_bytes(format!("[{events}]").as_bytes(), &Options::default()).unwrap();
        let launches = launches(&tables, &silent).unwrap();
        recorded(&tables, &launches, (0, 100_000))
    }

    #[test]
    fn time_after_the_profiler_stopped_is_told() {
        let step = r#"{"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":1,"tid":1,"ts":0,"dur":100}"#;
        let frame = r#"{"ph":"X","cat":"Trace","name":"PyTorch Profiler (0)","pid":"Spans","tid":"PyTorch Profiler","ts":0,"dur":40}"#;
        assert_eq!(found(&format!("{step},{frame}")).stopped_ns, 60_000);
        assert_eq!(found(step).stopped_ns, 0);
    }

    #[test]
    fn collectives_of_the_host_count_once_where_threads_run_them_beside_each_other() {
        let range = |thread: i64, start: i64| {
            format!(
                r#"{{"ph":"X","cat":"user_annotation","name":"gloo:all_reduce","pid":1,"tid":{thread},"ts":{start},"dur":30}}"#
            )
        };
        let found = found(&format!("{},{}", range(1, 0), range(2, 10)));
        assert_eq!(found.host_collectives.map(|(_, ns)| ns), Some(40_000));
        assert_eq!((found.host_ns, found.device_ns), (0, 0));
    }

    #[test]
    fn calls_that_launch_are_counted_though_nothing_of_theirs_is_there() {
        let call = r#"{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":0,"dur":5,"args":{"correlation":1}}"#;
        let range = r#"{"ph":"X","cat":"cuda_profiler_range","name":"gemm","pid":0,"tid":0,"ts":0,"dur":5}"#;
        let found = found(&format!("{call},{range}"));
        assert_eq!((found.n_launching, found.n_counter_ranges, found.host_ns), (1, 1, 5_000));
        assert!(!found.has_operators);
        assert_eq!(found.n_silent_threads, 0);
    }

    #[test]
    fn threads_that_launch_without_operators_are_silent_where_another_has_some() {
        let event = |category: &str, name: &str, thread: i64| {
            format!(
                r#"{{"ph":"X","cat":"{category}","name":"{name}","pid":1,"tid":{thread},"ts":0,"dur":5}}"#
            )
        };
        let launch = |thread| event("cuda_runtime", "cudaLaunchKernel", thread);
        let step = event("user_annotation", "ProfilerStep#1", 1);
        let operator = event("cpu_op", "aten::mm", 2);
        let n_silent = |events: &[String]| found(&events.join(",")).n_silent_threads;
        assert_eq!(n_silent(&[launch(2), launch(3), step.clone()]), 2);
        assert_eq!(n_silent(&[launch(2), launch(3), step.clone(), operator]), 1);
        assert_eq!(n_silent(&[launch(1), step.clone()]), 0);
        assert_eq!(n_silent(&[event("cuda_runtime", "cudaMemcpyAsync", 2), step]), 0);
    }
}
