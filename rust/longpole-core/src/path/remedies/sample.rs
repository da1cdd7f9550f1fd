//! The windows that represent all of them, with their part of the graph.
//!
//! A long trace repeats itself: a few of its windows show what could be changed, and by how much.
//! The part begins where the host launches the work of the first of these windows, and everything
//! before it keeps its times.

use std::ops::Range;

use crate::graph::Graph;
use crate::path::windows::{Moment, Opening, Scope};

/// Some windows of a scope, with their part of the graph.
#[derive(Debug)]
pub(super) struct Sample {
    pub(super) graph: Graph,
    pub(super) scope: Scope,
}

impl Sample {
    /// Returns the windows that represent a scope; `None` if these are all of its windows.
    pub(super) fn of(graph: &Graph, whole: &Scope) -> Option<Self> {
        let windows = whole.representative();
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

/// Returns when the host began to launch the work that ends in a time range; at most its start.
fn launched_from_ns(graph: &Graph, within: Range<i64>) -> i64 {
    let timeline = &graph.timeline;
    let works = timeline.orders().filter(|&it| timeline.kind(it).is_device_work());
    let ending = works.filter(|&work| within.contains(&(timeline.end_ns(work) - 1)));
    ending.map(|work| timeline.submitted_ns(work)).min().unwrap_or(within.start).min(within.start)
}
