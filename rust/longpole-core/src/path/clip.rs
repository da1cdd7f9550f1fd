//! The start and end of a window at node times other than the observed ones.

use std::cmp::Reverse;

use super::windows::{Moment, Opening, Window};
use crate::graph::Graph;
use crate::ids::{EventId, NodeId, Order};

/// Maps a node to its time.
pub(crate) type TimeOf<'a> = &'a dyn Fn(NodeId) -> i64;

/// Returns the start and end of a window if each node happens at `time_ns`.
///
/// If a window boundary cuts a time span, each part is scaled like the whole.
pub(crate) fn moved(graph: &Graph, window: &Window, time_ns: TimeOf<'_>) -> (i64, i64) {
    let start_ns = moved_start(graph, window, time_ns);
    let border = Border::of(graph, window);
    let latest_ns = border.candidates().map(|moment| border.time_ns(moment, time_ns)).max();
    let end_ns = match (border.latest_in_trace_ns(), latest_ns) {
        (Some(observed), Some(moved)) => moved.saturating_add(window.end_ns - observed),
        _ => window.end_ns,
    };
    (start_ns, end_ns.max(start_ns))
}

fn moved_start(graph: &Graph, window: &Window, time_ns: TimeOf<'_>) -> i64 {
    let opener = match &window.opening {
        Opening::Moments(moments) => match moments[..] {
            [Moment::Start(event)] => first_start(event, graph, window),
            _ => last_of(graph, moments, time_ns),
        },
        Opening::Time => None,
    };
    opener.map_or(window.start_ns, time_ns)
}

/// Returns the time, in the clock of the graph, at which a window begins that does not begin with
/// the completion of a previous iteration: a what-if leaves everything before it as recorded, so
/// that the window is measured between the same moments. `None` if nothing is before it.
pub(super) fn own_start_ns(graph: &Graph, window: &Window) -> Option<i64> {
    let Opening::Moments(moments) = &window.opening else { return Some(window.start_ns) };
    let [Moment::Start(event)] = moments[..] else { return None };
    match first_start(event, graph, window) {
        Some(opener) if opener.row() == 0 => None,
        Some(opener) => Some(graph.nodes.time_ns(opener)),
        None => Some(window.start_ns),
    }
}

/// Returns the observed start of a window, in the clock of the graph.
pub(super) fn observed_start_ns(graph: &Graph, window: &Window) -> i64 {
    moved_start(graph, window, &|node| graph.nodes.time_ns(node))
}

/// Returns the node at which a window starts. If a GPU activity with shifted timestamps opens it,
/// another activity may now come first.
fn first_start(opener: EventId, graph: &Graph, window: &Window) -> Option<NodeId> {
    let opener = graph.timeline.order(opener)?;
    if graph.timeline.clock_shift_ns(opener) == 0 {
        return Some(graph.nodes.start(opener));
    }
    let works = window.candidates.iter().filter_map(|moment| graph.timeline.order(moment.event()));
    works.map(|order| graph.nodes.start(order)).min()
}

/// Returns the node of the latest moment; of several, the first in content order.
pub(super) fn last_of(graph: &Graph, moments: &[Moment], time_ns: TimeOf<'_>) -> Option<NodeId> {
    let nodes = moments.iter().filter_map(|&moment| node_of(graph, moment));
    nodes.max_by_key(|&node| (time_ns(node), Reverse(graph.nodes.event(node))))
}

/// Returns the node of a moment, if its event is in the graph.
pub(super) fn node_of(graph: &Graph, moment: Moment) -> Option<NodeId> {
    match moment {
        Moment::Start(event) => graph.start_of(event),
        Moment::End(event) => graph.end_of(event),
    }
}

/// The end of a window, and the spans that it cuts.
struct Border<'a> {
    graph: &'a Graph,
    window: &'a Window,
    at_ns: i64,
}

impl<'a> Border<'a> {
    fn of(graph: &'a Graph, window: &'a Window) -> Self {
        Self { graph, window, at_ns: window.end_ns }
    }

    /// Returns the events that may end the window, each with whether its end (or its start) does.
    fn candidates(&self) -> impl Iterator<Item = (Order, bool)> + 'a {
        let timeline = &self.graph.timeline;
        self.window.candidates.iter().filter_map(|&moment| {
            Some((timeline.order(moment.event())?, matches!(moment, Moment::End(_))))
        })
    }

    /// Returns the time of a candidate, clipped to the boundary.
    fn time_ns(&self, (order, is_end): (Order, bool), time_ns: TimeOf<'_>) -> i64 {
        if is_end { self.end_ns(order, time_ns) } else { time_ns(self.graph.nodes.start(order)) }
    }

    /// Returns the latest end of the candidates by the timestamps of the trace, by which windows
    /// are chosen. The graph may have shifted those of a device.
    fn latest_in_trace_ns(&self) -> Option<i64> {
        let observed = |node| self.graph.nodes.time_ns(node);
        let stamp_ns = |candidate: (Order, bool)| {
            let time_ns = self.time_ns(candidate, &observed);
            time_ns - self.graph.timeline.clock_shift_ns(candidate.0)
        };
        self.candidates().map(stamp_ns).max()
    }

    fn cuts(&self, order: Order) -> bool {
        self.graph.timeline.end_ns(order) > self.at_ns(order)
    }

    /// Returns the boundary in the clock of an event.
    fn at_ns(&self, order: Order) -> i64 {
        self.at_ns.saturating_add(self.graph.timeline.clock_shift_ns(order))
    }

    /// Returns the end of an event, clipped to the boundary.
    fn end_ns(&self, order: Order, time_ns: TimeOf<'_>) -> i64 {
        let nodes = &self.graph.nodes;
        let whole = (nodes.start(order), nodes.end(order));
        if !self.cuts(order) {
            return time_ns(whole.1);
        }
        let thread = self.graph.timeline.lane(order);
        let is_work = self.graph.timeline.kind(order).is_device_work();
        let around = || self.graph.thread_nodes.around(thread, self.at_ns, nodes);
        let cut = if is_work { whole } else { around().unwrap_or(whole) };
        // If the window starts at a time, everything before it stays the same.
        let fixed_ns = self.window.fixed_start_ns().unwrap_or(i64::MIN);
        let observed = (nodes.time_ns(cut.0).max(fixed_ns), nodes.time_ns(cut.1));
        let moved = (time_ns(cut.0).max(fixed_ns), time_ns(cut.1));
        let before_ns = self.at_ns(order) - observed.0;
        moved.0.saturating_add(part_ns(before_ns, observed, moved))
    }
}

/// Returns the new length of a part of a span whose start and end have moved.
fn part_ns(part_ns: i64, observed: (i64, i64), moved: (i64, i64)) -> i64 {
    let whole_ns = i128::from(observed.1 - observed.0);
    let moved_ns = (i128::from(moved.1) - i128::from(moved.0)).max(0);
    i64::try_from(i128::from(part_ns) * moved_ns / whole_ns.max(1)).unwrap_or(i64::MAX)
}
