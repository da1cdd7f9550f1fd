//! Small traces and their expected paths: from bytes to segments, through all modules.
//!
//! Times are microseconds. An event is `(category, name, track, start, end, number)`; the track is
//! the thread or the stream.

#![allow(clippy::unwrap_used)] // in helpers of tests as in tests

use longpole_core::Result;
use longpole_core::graph::{self, Edge, Evidence, Graph, Kind, Role};
use longpole_core::ids::EventId;
use longpole_core::link;
use longpole_core::names::Names;
use longpole_core::path::{self, Change, Choice, Effect, Ratio};
use longpole_core::progress::silent;
use longpole_core::read::{Options, read_bytes};
use longpole_core::tables::Tables;

type Event = (&'static str, &'static str, i64, i64, i64, i64);
type Piece = (i64, i64, &'static str, &'static str);

const LAUNCH: Event = ("cuda_runtime", "cudaLaunchKernel", 1, 0, 2, 1);

fn tables(events: &[Event]) -> Tables {
    let json = |&(category, name, track, start, end, number): &Event| {
        let pid = i64::from(!matches!(category, "kernel" | "gpu_memcpy" | "cuda_sync"));
        format!(
            r#"{{"ph":"X","cat":"{category}","name":"{name}","pid":{pid},"tid":{track},"ts":{start},
            "dur":{},"args":{{"correlation":{number}}}}}"#,
            end - start
        )
    };
    let events: Vec<_> = events.iter().map(json).collect();
    read_bytes(format!("[{}]", events.join(",")).as_bytes(), &Options::default()).unwrap()
}

fn built(tables: &Tables) -> Result<Graph> {
    let launches = link::launches(tables, &silent)?;
    graph::build(tables, &launches, longpole_core::vocabulary::DATA_LOADING, &silent)
}

/// Returns the path of the whole trace after some changes.
fn changed_path(events: &[Event], changes: &[Change]) -> Vec<(i64, i64, &'static str, String)> {
    let tables = tables(events);
    let graph = built(&tables).unwrap();
    let launches = link::launches(&tables, &silent).unwrap();
    let window = path::window(&tables, &launches, &Choice::Whole, None).unwrap();
    let latencies = path::latencies_ns(&graph);
    let before = (&latencies[..], window.end_ns - window.start_ns);
    let answer = path::what_if(&graph, &tables, &window, before, changes, &silent).unwrap();
    let name = |event| tables.events.name(event).map_or("", |name| tables.strings.get(name));
    let pieces = answer.path.segments.iter();
    pieces
        .map(|piece| {
            let name = piece.event.map_or("", name).to_owned();
            (piece.start_ns / 1_000, piece.end_ns / 1_000, piece.kind.name(), name)
        })
        .collect()
}

fn assert_path(events: &[Event], expected: &[Piece]) {
    let expected: Vec<_> = expected
        .iter()
        .map(|&(start, end, kind, name)| (start, end, kind, name.to_owned()))
        .collect();
    assert_eq!(changed_path(events, &[]), expected);
}

#[test]
fn time_belongs_to_what_started_last_and_gaps_to_nobody() {
    assert_path(
        &[
            ("cpu_op", "A", 1, 0, 10, 0),
            ("cuda_runtime", "cudaMalloc", 1, 4, 6, 0),
            ("cpu_op", "B", 1, 15, 20, 0),
        ],
        &[
            (0, 4, "operator", "A"),
            (4, 6, "runtime", "cudaMalloc"),
            (6, 10, "operator", "A"),
            (10, 15, "host_gap", ""),
            (15, 20, "operator", "B"),
        ],
    );
}

#[test]
fn a_kernel_waits_for_its_launch_and_for_its_stream() {
    assert_path(
        &[
            LAUNCH,
            ("cuda_runtime", "cudaLaunchKernel", 1, 3, 5, 2),
            ("kernel", "K1", 7, 4, 20, 1),
            ("kernel", "K2", 7, 21, 30, 2),
        ],
        &[
            (0, 2, "runtime", "cudaLaunchKernel"),
            (2, 4, "launch", "K1"),
            (4, 20, "kernel", "K1"),
            (20, 21, "kernel_delay", "K2"),
            (21, 30, "kernel", "K2"),
        ],
    );
}

#[test]
fn a_wait_is_replaced_by_what_was_waited_for() {
    assert_path(
        &[
            LAUNCH,
            ("cuda_runtime", "cudaDeviceSynchronize", 1, 10, 40, 0),
            ("kernel", "K", 7, 4, 35, 1),
        ],
        &[
            (0, 2, "runtime", "cudaLaunchKernel"),
            (2, 4, "launch", "K"),
            (4, 35, "kernel", "K"),
            (35, 40, "sync_return", "cudaDeviceSynchronize"),
        ],
    );
}

#[test]
fn a_record_decides_what_a_call_waited_for() {
    let events = [
        LAUNCH,
        ("cuda_runtime", "cudaLaunchKernel", 1, 3, 5, 2),
        ("cuda_runtime", "cudaStreamSynchronize", 1, 10, 40, 3),
        ("kernel", "long", 7, 4, 35, 1),
        ("kernel", "longer", 8, 6, 38, 2),
    ];
    let last_kernel = |events: &[Event]| changed_path(events, &[]).into_iter().rev().nth(1);
    assert_eq!(last_kernel(&events).unwrap().3, "longer");
    let recorded = [&events[..], &[("cuda_sync", "Stream Sync", 7, 10, 11, 3)]].concat();
    assert_eq!(last_kernel(&recorded).unwrap().3, "long");
}

#[test]
fn work_before_its_own_call_is_a_violation_and_hangs_on_its_thread() {
    let events = [
        ("cpu_op", "A", 1, 0, 6, 0),
        ("cuda_runtime", "cudaLaunchKernel", 1, 10, 12, 1),
        ("kernel", "K", 7, 8, 30, 1),
    ];
    assert_path(
        &events,
        &[(0, 6, "operator", "A"), (6, 8, "clock_skew", "K"), (8, 30, "kernel", "K")],
    );
    let graph = built(&tables(&events)).unwrap();
    let roles: Vec<_> = graph.violations.iter().map(|edge| edge.role).collect();
    assert_eq!((roles, graph.counts.clock_skew), (vec![Role::Launch], 1));
}

#[test]
fn a_circle_of_no_length_loses_its_guessed_edge() {
    let graph = Graph::of_events(&[(0, 0), (0, 0)], |timeline, nodes| {
        let [one, two] = [0, 1].map(|row| timeline.order(EventId::from_row(row)).unwrap());
        let edge = |source, target, role, evidence| {
            Edge::new((source, target), (Kind::Runtime, role), None, evidence)
        };
        vec![
            edge(nodes.start(one), nodes.end(one), Role::ThreadOrder, Evidence::Order),
            edge(nodes.end(one), nodes.start(two), Role::Launch, Evidence::Correlation),
            edge(nodes.start(two), nodes.end(two), Role::DeviceWork, Evidence::Order),
            edge(nodes.end(two), nodes.start(one), Role::Sync, Evidence::Inferred),
        ]
    });
    let cut: Vec<_> = graph.cut.iter().map(|edge| edge.role).collect();
    assert_eq!((cut, graph.edges.len(), graph.counts.circle), (vec![Role::Sync], 3, 1));
}

#[test]
fn a_changed_program_has_a_new_long_pole() {
    let events = [
        LAUNCH,
        ("cuda_runtime", "cudaLaunchKernel", 1, 3, 5, 2),
        ("cuda_runtime", "cudaDeviceSynchronize", 1, 10, 40, 0),
        ("kernel", "long", 7, 4, 35, 1),
        ("kernel", "short", 8, 7, 18, 2),
    ];
    let effect = Effect::Scale(Ratio::ZERO);
    let matching = Some("long".to_owned());
    let change = Change { matching, ..Change::of_kind(effect, Kind::Kernel) };
    let last = changed_path(&events, &[change]).pop().unwrap();
    assert_eq!(last, (7, 18, "kernel", "short".to_owned()));
}

#[test]
fn a_pattern_that_is_none_is_an_error_in_words() {
    let tables = tables(&[LAUNCH]);
    let launches = link::launches(&tables, &silent).unwrap();
    let error = graph::build(&tables, &launches, "(", &silent).unwrap_err();
    assert!(error.to_string().starts_with("invalid regular expression: "), "{error}");
}

#[test]
fn a_long_build_can_be_stopped() {
    let tables = tables(&[LAUNCH]);
    let launches = link::launches(&tables, &silent).unwrap();
    let stop = |_| std::ops::ControlFlow::Break(());
    let error = graph::build(&tables, &launches, longpole_core::vocabulary::DATA_LOADING, &stop)
        .unwrap_err();
    assert_eq!(error.code(), "cancelled");
}

#[test]
fn work_belongs_to_the_step_in_which_it_was_launched_and_waiting_is_none() {
    let tables = tables(&[
        ("cpu_op", "op", 1, 0, 10, 0),
        ("cuda_runtime", "cudaLaunchKernel", 1, 2, 4, 1),
        ("kernel", "gemm", 7, 12, 40, 1),
        ("cuda_runtime", "cudaDeviceSynchronize", 1, 20, 42, 2),
    ]);
    let graph = built(&tables).unwrap();
    let steps = [(0, 15_000), (15_000, 50_000)];
    let rows = path::work(&graph, &path::latencies_ns(&graph), &steps);
    let name = |event| tables.events.name(event).map_or("", |name| tables.strings.get(name));
    let rows: Vec<_> = rows
        .iter()
        .map(|row| (row.event.map_or("", name), row.kind.name(), row.step, row.work_ns))
        .collect();
    assert_eq!(
        rows,
        [
            ("", "host_gap", 0, 10_000),
            ("op", "operator", 0, 8_000),
            ("cudaLaunchKernel", "runtime", 0, 2_000),
            ("gemm", "kernel", 0, 28_000),
            ("cudaDeviceSynchronize", "runtime", 1, 2_000),
        ]
    );
}
