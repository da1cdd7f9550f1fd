//! Distributes the recording cost over the edges of the graph.

use super::classes::{Class, Classes};
use super::costs::{Cost, Costs};
use crate::graph::{Edge, Graph, Role};
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

/// Where the recording cost lies in a graph.
pub(super) struct Pieces<'a> {
    graph: &'a Graph,
    tables: &'a Tables,
    classes: Classes,
    of_edge: Vec<Piece>,
}

/// The classes of events whose recording cost lies in an edge.
#[derive(Clone, Copy, Default)]
struct Piece {
    /// The event at its source.
    source: Option<Class>,
    /// Whether its source is the start of that event.
    is_inside: bool,
    /// The event that starts at its target.
    target: Option<Class>,
}

impl<'a> Pieces<'a> {
    pub(super) fn of(graph: &'a Graph, tables: &'a Tables, nesting: &Nesting) -> Self {
        let classes = Classes::of(tables, nesting);
        let class_at = |node| classes.class(graph.timeline.event(graph.nodes.event(node)));
        let piece = |edge: &Edge| {
            if edge.role != Role::ThreadOrder {
                return Piece::default();
            }
            let is_start = !graph.nodes.is_end(edge.target);
            Piece {
                source: class_at(edge.source),
                is_inside: !graph.nodes.is_end(edge.source),
                target: if is_start { class_at(edge.target) } else { None },
            }
        };
        let of_edge = graph.edges.as_slice().iter().map(piece).collect();
        Self { graph, tables, classes, of_edge }
    }

    /// Returns the cost contained in each edge, one row per edge.
    pub(super) fn costs_ns(&self, costs: &Costs, at: At) -> Vec<i64> {
        let parts: Vec<_> = Class::ALL.iter().map(|&class| parts(costs, class, at)).collect();
        let parts_of =
            |class: Option<Class>| class.map_or_else(Parts::default, |class| parts[class as usize]);
        let cost_ns = |piece: &Piece| {
            let (source, target) = (parts_of(piece.source), parts_of(piece.target));
            let left_ns = if piece.is_inside { source.inside_ns } else { source.after_ns };
            left_ns + target.before_ns
        };
        let mut found: Vec<_> = self.of_edge.iter().map(cost_ns).collect();
        add_nodes(&mut found, self.graph, &self.classes, costs.node_ns[at as usize]);
        add_own_work(&mut found, self.graph, self.tables);
        found
    }
}

/// Returns the parts of the cost of one event.
fn parts(costs: &Costs, class: Class, at: At) -> Parts {
    // A graph launch costs as much as other launches, plus the cost of its nodes.
    let of_class = if class == Class::GraphLaunch { Class::Launch } else { class };
    let cost = costs.of(of_class).or_else(|| costs.of(Class::NestedOperator));
    let cost = cost.or_else(|| costs.of(Class::OuterOperator));
    Parts::of(class, cost.map_or(0, |cost| at.of(cost)), costs.before)
}

/// Adds the cost of graph nodes to the calls that launch them.
fn add_nodes(costs_ns: &mut [i64], graph: &Graph, classes: &Classes, node_ns: i64) {
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
