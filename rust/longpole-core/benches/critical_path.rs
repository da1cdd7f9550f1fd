//! Times the critical path on graphs of any size: `cargo bench --bench critical_path`, optionally
//! with millions of nodes after `--`, as in `-- 10`.
//!
//! The graph is that of a program that launches GPU activities on four streams: every event has its
//! self time, follows one on its lane, and has about two more incoming edges.

#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::cast_precision_loss)] // a bench

use std::hint::black_box;
use std::time::Instant;

use longpole_core::graph::{Edge, Evidence, Graph, Kind, Nodes, Role, Timeline};
use longpole_core::ids::{EventId, NodeId, Order};
use longpole_core::path::{
    Moment, Opening, Schedule, Window, latencies_ns, longest, slack_ns, walk,
};

const LANES: usize = 5;

fn main() {
    let millions = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(10_usize);
    let n_events = millions * 500_000;
    let spans: Vec<_> = (0..n_events).map(span).collect();
    let graph = timed("build", || Graph::of_events(&spans, edges));
    println!("{:>9} nodes, {} edges", graph.nodes.len(), graph.edges.len());
    let window = window(&spans);
    let observed = Schedule::observed();
    timed("walk the binding chain", || {
        let schedule = Schedule::observed();
        black_box(walk(&graph, &window, &schedule).segments.len())
    });
    timed("longest path by work", || {
        let schedule = longest(&graph, &window);
        black_box(walk(&graph, &window, &schedule).segments.len())
    });
    let latencies = timed("latencies", || latencies_ns(&graph));
    timed("slack of every event", || {
        black_box(slack_ns(&graph, &window, &observed, &latencies, n_events).len())
    });
}

fn timed<T>(what: &str, call: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let value = call();
    println!("{:>9.3} s  {what}", start.elapsed().as_secs_f64());
    value
}

/// Lanes alternate; the times between events are irregular, and the same on every machine.
fn span(number: usize) -> (i64, i64) {
    let start = i64::try_from(number * 1_000 + number * number % 700).unwrap();
    let length = i64::try_from(2_000 + number * 7_919 % 2_900).unwrap();
    (start, start + length)
}

fn window(spans: &[(i64, i64)]) -> Window {
    let candidates: Vec<_> =
        (0..spans.len()).map(|row| Moment::End(EventId::from_row(row))).collect();
    let end_ns = spans.iter().map(|span| span.1).max().unwrap_or(0);
    Window { start_ns: 0, end_ns, candidates, opening: Opening::Time }
}

fn edges(timeline: &Timeline, nodes: &Nodes) -> Vec<Edge> {
    let mut edges = Vec::with_capacity(timeline.len() * 4);
    let mut add = |source: NodeId, target: NodeId, words, event: Order| {
        edges.push(Edge::new((source, target), words, Some(event), Evidence::Order));
    };
    for event in timeline.orders() {
        let (start, end) = (nodes.start(event), nodes.end(event));
        add(start, end, (Kind::Kernel, Role::DeviceWork), event);
        let before = |steps: usize| event.row().checked_sub(steps).map(Order::from_row);
        if let Some(other) = before(LANES) {
            add(nodes.end(other), start, (Kind::KernelDelay, Role::StreamOrder), event);
        }
        if let Some(other) = before(LANES + 1 + event.row() % 3) {
            add(nodes.end(other), start, (Kind::EventWait, Role::EventWait), event);
        }
        if let Some(other) = before(1) {
            add(nodes.start(other), start, (Kind::Launch, Role::Launch), event);
        }
    }
    edges
}
