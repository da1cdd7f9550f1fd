//! Iterations of inference servers, marked by annotations, otherwise by Python functions, otherwise
//! by graph launches.
//!
//! Of nested marks, the outermost counts and has the server of the inner ones, because other
//! servers write the same annotations as vLLM. Only the thread with the most marks counts. Marks of
//! empty batches are left out.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use super::cycles;
use crate::ids::{EventId, LaneId, StringId};
use crate::link::Launches;
use crate::names::named;
use crate::tables::{EventKind, Tables};
use crate::vocabulary::{
    ApiRole, Iteration, IterationKind, annotated_iteration, framed_iteration, kind_of_frame,
};

named! {
    /// The events that mark the iterations of a server.
    ServerMark {
        /// Annotations.
        Annotation "annotation",
        /// Python functions.
        Python "python_function",
        /// Graph launches of any server.
        GraphLaunch "graph_launch",
    }
}

/// The iterations of a server on one thread, in order of time, and their marks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerIterations {
    /// The events that mark them.
    pub mark: ServerMark,
    /// The marking event of each, and the content of its name.
    pub rows: Vec<(EventId, Iteration)>,
}

/// Returns the iterations that a server marks by name.
pub(super) fn marked(tables: &Tables) -> Option<ServerIterations> {
    let annotations = outermost(tables, EventKind::Annotation, annotated_iteration);
    if !annotations.is_empty() {
        return Some(ServerIterations { mark: ServerMark::Annotation, rows: annotations });
    }
    let mut rows = outermost(tables, EventKind::Python, framed_iteration);
    tell_kinds(&mut rows, tables);
    (!rows.is_empty()).then_some(ServerIterations { mark: ServerMark::Python, rows })
}

/// Returns the iterations of a server, marked by name or otherwise by graph launches.
pub fn server_iterations(tables: &Tables, launches: &Launches) -> Option<ServerIterations> {
    marked(tables).or_else(|| {
        let calls = graph_launches(tables, launches);
        let rows: Vec<_> = calls.into_iter().map(|call| (call, Iteration::default())).collect();
        (!rows.is_empty()).then_some(ServerIterations { mark: ServerMark::GraphLaunch, rows })
    })
}

/// Whether an inference server marks its iterations.
pub fn is_of_server(tables: &Tables) -> bool {
    marked(tables).is_some()
}

fn outermost(
    tables: &Tables,
    kind: EventKind,
    said: fn(&str) -> Option<Iteration>,
) -> Vec<(EventId, Iteration)> {
    let events = &tables.events;
    let is_batch = |found: &Iteration| found.requests != Some(0);
    let of_name: Vec<_> = tables.strings.iter().map(|name| said(name).filter(is_batch)).collect();
    if of_name.iter().all(Option::is_none) {
        return Vec::new();
    }
    let said_of = |name: StringId| of_name[name.row()];
    let mut lanes: BTreeMap<LaneId, Vec<(EventId, Iteration)>> = BTreeMap::new();
    let ended =
        events.ids().filter(|&event| events.kind(event) == kind && events.end_ns(event).is_some());
    for event in ended {
        if let Some(found) = events.name(event).and_then(said_of) {
            lanes.entry(events.lane(event)).or_default().push((event, found));
        }
    }
    let rows = lanes.into_values().map(|rows| without_nested(rows, tables));
    rows.max_by_key(|rows| (rows.len(), Reverse(rows.first().map(|row| row.0)))).unwrap_or_default()
}

fn without_nested(
    mut rows: Vec<(EventId, Iteration)>,
    tables: &Tables,
) -> Vec<(EventId, Iteration)> {
    let events = &tables.events;
    let span = |event: EventId| events.span(event).unwrap_or_default();
    rows.sort_by_key(|&(event, _)| (span(event).0, Reverse(span(event).1), event));
    let mut behind_ns = i64::MIN;
    let mut outer: Vec<(EventId, Iteration)> = Vec::new();
    for (event, iteration) in rows {
        let (start_ns, end_ns) = span(event);
        match outer.last_mut().filter(|_| start_ns < behind_ns) {
            Some((_, around)) => around.server = iteration.server.or(around.server),
            None => outer.push((event, iteration)),
        }
        behind_ns = behind_ns.max(end_ns);
    }
    outer
}

/// Sets the kind of iterations from the functions that run inside them, if these agree.
fn tell_kinds(rows: &mut [(EventId, Iteration)], tables: &Tables) {
    let events = &tables.events;
    let Some(lane) = rows.first().map(|&(event, _)| events.lane(event)) else { return };
    let of_name: Vec<_> = tables.strings.iter().map(kind_of_frame).collect();
    let kind = |event: EventId| events.name(event).and_then(|name| of_name[name.row()]);
    let mut marks: Vec<(i64, IterationKind)> = events
        .ids()
        .filter(|&event| events.kind(event) == EventKind::Python && events.lane(event) == lane)
        .filter_map(|event| Some((events.start_ns(event), kind(event)?)))
        .collect();
    marks.sort_unstable();
    for (event, iteration) in rows {
        let (start_ns, end_ns) = events.span(*event).unwrap_or_default();
        let first = marks.partition_point(|row| row.0 < start_ns);
        let mut inside = marks[first..].iter().take_while(|row| row.0 < end_ns).map(|row| row.1);
        let kind = inside.next();
        let agree = inside.all(|other| Some(other) == kind);
        iteration.kind = iteration.kind.or(kind.filter(|_| agree));
    }
}

/// Returns the graph launches that begin an iteration, on the thread that launches most. A model
/// captured in pieces launches several graphs per iteration.
fn graph_launches(tables: &Tables, launches: &Launches) -> Vec<EventId> {
    let events = &tables.events;
    let roles = tables.roles();
    let is_launch = |event: EventId| {
        events.kind(event).is_call()
            && events.end_ns(event).is_some()
            && events.name(event).is_some_and(|name| roles[name.row()] == ApiRole::GraphLaunch)
    };
    let mut lanes: BTreeMap<LaneId, Vec<EventId>> = BTreeMap::new();
    for call in events.ids().filter(|&event| is_launch(event)) {
        lanes.entry(events.lane(call)).or_default().push(call);
    }
    let most =
        lanes.into_values().max_by_key(|calls| (calls.len(), Reverse(calls.first().copied())));
    let mut calls = most.unwrap_or_default();
    calls.sort_by_key(|&call| (events.start_ns(call), call));
    let graphs = graphs_of(&calls, tables, launches);
    cycles::beginnings(&graphs).into_iter().map(|place| calls[place]).collect()
}

/// Assigns each launch to a graph, by the number of its nodes and the first node.
fn graphs_of(calls: &[EventId], tables: &Tables, launches: &Launches) -> Vec<usize> {
    let events = &tables.events;
    let mut nodes: HashMap<EventId, (usize, (i64, EventId))> = HashMap::new();
    for work in events.ids().filter(|&event| events.kind(event).is_device_work()) {
        if let Some(call) = launches.launcher(work) {
            let began = (events.start_ns(work), work);
            let row = nodes.entry(call).or_insert((0, began));
            *row = (row.0 + 1, row.1.min(began));
        }
    }
    let mut numbers = HashMap::new();
    let graph = |call: &EventId| {
        nodes.get(call).map(|(n_nodes, (_, first))| (*n_nodes, events.name(*first)))
    };
    let number = |call: &EventId| {
        let next = numbers.len();
        *numbers.entry(graph(call)).or_insert(next)
    };
    calls.iter().map(number).collect()
}
