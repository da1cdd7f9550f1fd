//! The windows that represent all of them, with their part of the graph.
//!
//! A long trace repeats itself: a few of its windows show what could be changed, and by how much.
//! The part begins where the host launches the work of the first of these windows, and everything
//! before it keeps its times.

use std::ops::Range;

use crate::graph::Graph;
use crate::path::windows::{ENOUGH_WINDOWS, Moment, Opening, Scope};

/// The number of nodes from which fewer windows represent all of them, and the fewest: they show
/// what every window has, and what only one of them has.
const MANY_NODES: usize = 100_000;
const FEWEST_WINDOWS: usize = 3;

/// Some windows of a scope, with their part of the graph.
#[derive(Debug)]
pub(super) struct Sample {
    pub(super) graph: Graph,
    pub(super) scope: Scope,
}

impl Sample {
    /// Returns the windows that represent a scope; `None` if these are all of its windows.
    pub(super) fn of(graph: &Graph, whole: &Scope) -> Option<Self> {
        let windows = whole.representative(n_enough(graph, whole));
        if windows.len() == whole.windows.len() {
            return None;
        }
        let next = whole.windows.get(windows.end);
        let scope = whole.part(windows);
        let (first, last) = (scope.windows.first()?, scope.windows.last()?);
        let from_ns = launched_from_ns(graph, first.start_ns..last.end_ns);
        let from_ns = scope.host_ns.first().map_or(from_ns, |host_ns| from_ns.min(host_ns.0));
        // A gap of a thread that begins in the last window may end in the next one.
        let until_ns = next.map_or(i64::MAX, |window| window.end_ns);
        let moments = scope.windows.iter().flat_map(|window| {
            let opening = match &window.opening {
                Opening::Moments(moments) => &moments[..],
                Opening::Time => &[],
            };
            opening.iter().chain(&window.candidates)
        });
        let part = graph.part((from_ns, until_ns), moments.map(|moment: &Moment| moment.event()));
        Some(Self { graph: part, scope })
    }
}

/// Returns how many windows are enough: fewer if they are large.
fn n_enough(graph: &Graph, whole: &Scope) -> usize {
    let (window, times_ns) = (whole.window(), graph.nodes.times_ns());
    let until = |at_ns: i64| times_ns.partition_point(|&time_ns| time_ns < at_ns);
    let n_nodes = until(window.end_ns) - until(window.start_ns).min(until(window.end_ns));
    (MANY_NODES / n_nodes.max(1)).clamp(FEWEST_WINDOWS, ENOUGH_WINDOWS)
}

/// Returns when the host began to launch the work that ends in a time range; at most its start.
fn launched_from_ns(graph: &Graph, within: Range<i64>) -> i64 {
    let timeline = &graph.timeline;
    let works = timeline.orders().filter(|&it| timeline.kind(it).is_device_work());
    let ending = works.filter(|&work| within.contains(&(timeline.end_ns(work) - 1)));
    ending.map(|work| timeline.submitted_ns(work)).min().unwrap_or(within.start).min(within.start)
}
