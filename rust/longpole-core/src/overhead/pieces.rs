//! Distributes the recording cost over the edges of the graph.

use super::classes::{Class, Classes};
use super::costs::{Cost, Costs};
use crate::graph::{Edge, Graph, Role};
use crate::ids::EventId;
use crate::names::Names;
use crate::stack::Nesting;
use crate::tables::{EventKind, Tables};

/// Which value of a cost to use: the estimate or a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum At {
    Usual,
    Least,
    Most,
}

impl At {
    fn of(self, cost: &Cost) -> i64 {
        match self {
            Self::Usual => cost.cost_ns,
            Self::Least => cost.least_ns,
            Self::Most => cost.most_ns,
        }
    }
}

/// The cost of an event before its start, between its start and the first event inside it, and
/// after its end.
#[derive(Debug, Clone, Copy, Default)]
#[allow(clippy::struct_field_names)] // units stand in names
struct Parts {
    before_ns: i64,
    inside_ns: i64,
    after_ns: i64,
}

impl Parts {
    #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)] // a part of microseconds
    fn of(class: Class, cost_ns: i64, before: f64) -> Self {
        let part = |share: f64| (cost_ns as f64 * share) as i64;
        let before_ns = match class {
            Class::OuterOperator | Class::NestedOperator => part(before),
            Class::Launch | Class::GraphLaunch | Class::Call => part(0.3),
            Class::PythonFunction | Class::Annotation => part(0.5),
        };
        let inside_ns = match class {
            Class::Launch | Class::GraphLaunch | Class::Call => part(0.4),
            _ => 0,
        };
        Self { before_ns, inside_ns, after_ns: cost_ns - before_ns - inside_ns }
    }
}

/// Returns the cost contained in each edge, one row per edge.
pub(super) fn costs_ns(
    graph: &Graph,
    tables: &Tables,
    nesting: &Nesting,
    costs: &Costs,
    at: At,
) -> Vec<i64> {
    let classes = Classes::of(tables, nesting);
    let parts: Vec<_> = Class::ALL
        .iter()
        .map(|&class| {
            // A graph launch costs as much as other launches, plus the cost of its nodes.
            let of_class = if class == Class::GraphLaunch { Class::Launch } else { class };
            let cost = costs.of(of_class).or_else(|| costs.of(Class::NestedOperator));
            let cost = cost.or_else(|| costs.of(Class::OuterOperator));
            Parts::of(class, cost.map_or(0, |cost| at.of(cost)), costs.before)
        })
        .collect();
    let part_of = |event: EventId| classes.class(event).map(|class| parts[class as usize]);
    let cost_of = |edge: &Edge| {
        if edge.role != Role::ThreadOrder {
            return 0;
        }
        let end = |node| graph.timeline.event(graph.nodes.event(node));
        let source = part_of(end(edge.source)).unwrap_or_default();
        let target = part_of(end(edge.target)).unwrap_or_default();
        let left_ns =
            if graph.nodes.is_end(edge.source) { source.after_ns } else { source.inside_ns };
        left_ns + if graph.nodes.is_end(edge.target) { 0 } else { target.before_ns }
    };
    let mut found: Vec<_> = graph.edges.as_slice().iter().map(cost_of).collect();
    add_nodes(&mut found, graph, &classes, costs.node_ns[at as usize]);
    add_own_work(&mut found, graph, tables);
    found
}

/// Adds the cost of graph nodes to the calls that launch them.
fn add_nodes(costs_ns: &mut [i64], graph: &Graph, classes: &Classes<'_>, node_ns: i64) {
    let timeline = &graph.timeline;
    for call in timeline.orders().filter_map(|work| timeline.launcher(work)) {
        if classes.class(timeline.event(call)) == Some(Class::GraphLaunch) {
            let end = graph.nodes.end(call);
            let of_thread = |&number: &usize| {
                let edge = &graph.edges.as_slice()[number];
                edge.role == Role::ThreadOrder && edge.source == graph.nodes.start(call)
            };
            if let Some(number) = graph.edges.range(end).find(of_thread) {
                costs_ns[number] += node_ns;
            }
        }
    }
}

/// Adds recorded profiler work, such as a buffer request, to the call in which it happened.
fn add_own_work(costs_ns: &mut [i64], graph: &Graph, tables: &Tables) {
    let events = &tables.events;
    let own = events.ids().filter(|&event| events.kind(event) == EventKind::Overhead);
    let mut own: Vec<_> = own.filter_map(|event| events.span(event)).collect();
    if own.is_empty() {
        return;
    }
    own.sort_unstable();
    let mut shortest: Vec<Option<(i64, usize)>> = vec![None; own.len()];
    for (number, edge) in graph.edges.as_slice().iter().enumerate() {
        let is_call = edge.event().is_some_and(|event| graph.timeline.kind(event).is_call());
        if edge.role != Role::ThreadOrder || !is_call {
            continue;
        }
        let [start_ns, end_ns] = [edge.source, edge.target].map(|node| graph.nodes.time_ns(node));
        let first = own.partition_point(|span| span.0 < start_ns);
        for (place, _) in
            own.iter().enumerate().skip(first).take_while(|(_, span)| span.1 <= end_ns)
        {
            let found = Some((end_ns - start_ns, number));
            if shortest[place].is_none() || found < shortest[place] {
                shortest[place] = found;
            }
        }
    }
    for (span, found) in own.iter().zip(shortest) {
        if let Some((_, number)) = found {
            costs_ns[number] += span.1 - span.0;
        }
    }
}
