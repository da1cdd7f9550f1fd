//! The edges that a change selects.

use std::cell::OnceCell;

use super::changes::{Change, Effect, TimeRange};
use crate::error::Result;
use crate::graph::{Edge, Graph, Kind, Role, matching, matching_kernels};
use crate::ids::{EventId, NodeId, Order, row_in_column};
use crate::names::Names;
use crate::tables::{EventKind, Tables};

/// Indices of the edges of each kind, of the edges that wait, and of the edges whose target is not
/// the event that has their time; built on first use.
pub(in crate::path) struct EdgesOf<'a> {
    graph: &'a Graph,
    has_kind: Vec<bool>,
    of_kind: Vec<OnceCell<Vec<u32>>>,
    work: OnceCell<Vec<u32>>,
    waits: OnceCell<Vec<u32>>,
    foreign: OnceCell<Vec<(Order, u32)>>,
}

impl<'a> EdgesOf<'a> {
    pub(in crate::path) fn of(graph: &'a Graph) -> Self {
        let mut has_kind = vec![false; Kind::ALL.len()];
        for edge in graph.edges.as_slice() {
            has_kind[edge.kind as usize] = true;
        }
        Self {
            graph,
            has_kind,
            of_kind: Kind::ALL.iter().map(|_| OnceCell::new()).collect(),
            work: OnceCell::new(),
            waits: OnceCell::new(),
            foreign: OnceCell::new(),
        }
    }

    /// Whether a change may select any edge, judged by its kind.
    pub(in crate::path) fn may_change(&self, change: &Change) -> bool {
        match (change.effect, change.kind) {
            (Effect::RemoveWait, _) => !self.waits().is_empty(),
            (_, Some(kind)) => self.has_kind[kind as usize],
            (_, None) => true,
        }
    }

    /// Returns the edges that a change selects, in order. Inserted time is added to the first edge
    /// of each event.
    ///
    /// # Errors
    ///
    /// Returns an error if the pattern is not a valid regular expression.
    pub(in crate::path) fn chosen(&self, change: &Change, tables: &Tables) -> Result<Vec<u32>> {
        let pattern = change.matching.as_ref();
        let is_named = pattern.map(|pattern| matching(pattern, tables)).transpose()?;
        let is_kernel_named =
            pattern.map(|pattern| matching_kernels(pattern, tables)).transpose()?;
        let is_named = is_named.as_deref();
        let is_named_as = (is_named, is_kernel_named.as_deref());
        let of_annotations = change.event_kind == Some(EventKind::Annotation);
        let graph = self.graph;
        let edges = graph.edges.as_slice();
        let is_meant = |edge: &Edge| {
            if change.effect == Effect::RemoveWait {
                let waiter = Some(graph.nodes.event(edge.target));
                edge.role.waits() == Some(change.kind.unwrap_or(Kind::SyncReturn))
                    && has_name(waiter, is_named_as, graph)
            } else if of_annotations {
                edge.kind.is_work()
            } else {
                change.kind.map_or_else(|| edge.kind.is_work(), |kind| edge.kind == kind)
                    && is_of_event_kind(edge.event(), change.event_kind, graph)
                    && has_name(edge.event(), is_named_as, graph)
            }
        };
        let numbers = if of_annotations {
            self.inside(&annotations(change, is_named, tables), &[], change)
        } else if change.events.is_some() || change.time_ranges.is_some() {
            let events = change.events.as_deref().unwrap_or_default();
            self.inside(events, change.time_ranges.as_deref().unwrap_or_default(), change)
        } else {
            self.candidates(change).to_vec()
        };
        let is_meant = |&number: &u32| is_meant(&edges[number as usize]);
        let mut numbers: Vec<_> = numbers.into_iter().filter(is_meant).collect();
        match change.effect {
            Effect::Replace(_) => numbers.retain(|&it| self.is_device_work(&edges[it as usize])),
            Effect::Insert(_) => self.keep_first_of_each(&mut numbers),
            Effect::Scale(_) | Effect::RemoveWait => {}
        }
        Ok(numbers)
    }

    /// Returns the edges that a change may select, judged by its kind.
    fn candidates(&self, change: &Change) -> &[u32] {
        match (change.effect, change.kind) {
            (Effect::RemoveWait, _) => self.waits(),
            (_, Some(kind)) => {
                let is_one = |edge: &Edge| edge.kind == kind;
                self.of_kind[kind as usize].get_or_init(|| self.numbers(is_one))
            }
            (_, None) => self.work.get_or_init(|| self.numbers(|edge| edge.kind.is_work())),
        }
    }

    fn waits(&self) -> &[u32] {
        self.waits.get_or_init(|| self.numbers(|edge| edge.role.waits().is_some()))
    }

    fn numbers(&self, counts: impl Fn(&Edge) -> bool) -> Vec<u32> {
        let edges = self.graph.edges.as_slice().iter().enumerate();
        edges.filter(|(_, edge)| counts(edge)).map(|(number, _)| row_in_column(number)).collect()
    }

    fn is_device_work(&self, edge: &Edge) -> bool {
        self.graph.timeline.kind(self.graph.nodes.event(edge.target)).is_device_work()
    }

    /// Keeps the first edge of each event.
    fn keep_first_of_each(&self, numbers: &mut Vec<u32>) {
        let edges = self.graph.edges.as_slice();
        let mut seen = std::collections::HashSet::new();
        numbers.retain(|&number| seen.insert(edges[number as usize].event()));
    }

    /// Returns the edges inside some events or time ranges: the edges of the events themselves, and
    /// on threads everything nested in them.
    fn inside(&self, events: &[EventId], time_ranges: &[TimeRange], change: &Change) -> Vec<u32> {
        let mut found = Found { edges_of: self, numbers: Vec::new() };
        let timeline = &self.graph.timeline;
        for order in events.iter().filter_map(|&event| timeline.order(event)) {
            if timeline.kind(order).is_device_work() || change.effect == Effect::RemoveWait {
                found.add_own(order);
            } else {
                found.add_nested(order);
            }
        }
        for time_range in time_ranges {
            found.add_time_range(time_range, change.effect == Effect::RemoveWait);
        }
        found.numbers.sort_unstable();
        found.numbers.dedup();
        found.numbers
    }

    /// Returns the edges that are time of an event and lead to another one, such as the activity
    /// that a call launched.
    fn foreign(&self, event: Order) -> impl Iterator<Item = u32> {
        let pairs = self.foreign.get_or_init(|| {
            let edges = self.graph.edges.as_slice().iter().enumerate();
            let pair = |(number, edge): (usize, &Edge)| {
                let is_foreign = edge.role != Role::ThreadOrder
                    && edge.event() != Some(self.graph.nodes.event(edge.target));
                edge.event().filter(|_| is_foreign).map(|event| (event, row_in_column(number)))
            };
            let mut pairs: Vec<_> = edges.filter_map(pair).collect();
            pairs.sort_unstable();
            pairs
        });
        let first = pairs.partition_point(|&(other, _)| other < event);
        pairs[first..].iter().take_while(move |pair| pair.0 == event).map(|pair| pair.1)
    }
}

/// The selected edges so far.
struct Found<'f, 'a> {
    edges_of: &'f EdgesOf<'a>,
    numbers: Vec<u32>,
}

impl Found<'_, '_> {
    fn add(&mut self, node: NodeId, counts: impl Fn(&Edge) -> bool) {
        let edges = &self.edges_of.graph.edges;
        let counts = |number: &usize| counts(&edges.as_slice()[*number]);
        self.numbers.extend(edges.range(node).filter(counts).map(row_in_column));
    }

    /// Adds the edges of the event itself into its start and end, or its waits.
    fn add_own(&mut self, event: Order) {
        let nodes = &self.edges_of.graph.nodes;
        for node in [nodes.start(event), nodes.end(event)] {
            self.add(node, |edge| edge.event() == Some(event) || edge.role.waits().is_some());
        }
        self.numbers.extend(self.edges_of.foreign(event));
    }

    /// Adds the edges of a thread while an event is open.
    fn add_nested(&mut self, event: Order) {
        let graph = self.edges_of.graph;
        let (start, end) = (graph.nodes.start(event), graph.nodes.end(event));
        self.numbers.extend(self.edges_of.foreign(event));
        self.add(start, |edge| edge.role != Role::ThreadOrder && edge.event() == Some(event));
        for &node in graph.thread_nodes.between(graph.timeline.lane(event), start, end) {
            self.add_node(node);
        }
    }

    /// Adds the work of a thread in a time range, or its waits.
    fn add_time_range(&mut self, time_range: &TimeRange, are_waits: bool) {
        let graph = self.edges_of.graph;
        let of_lane = graph.thread_nodes.of_lane(time_range.lane);
        let first = of_lane.partition_point(|&it| graph.nodes.time_ns(it) < time_range.start_ns);
        let behind = of_lane.partition_point(|&it| graph.nodes.time_ns(it) <= time_range.end_ns);
        for &node in of_lane.get(first..behind).unwrap_or_default() {
            if are_waits {
                self.add(node, |edge| edge.role.waits().is_some());
                continue;
            }
            self.add(node, |edge| {
                edge.role == Role::ThreadOrder
                    && graph.nodes.time_ns(edge.source) >= time_range.start_ns
            });
            if !graph.nodes.is_end(node) {
                self.numbers.extend(self.edges_of.foreign(graph.nodes.event(node)));
            }
        }
    }

    /// Adds the edges of a thread into a node, and the time of its event that leads elsewhere.
    fn add_node(&mut self, node: NodeId) {
        let graph = self.edges_of.graph;
        let event = Some(graph.nodes.event(node));
        self.add(node, |edge| edge.role == Role::ThreadOrder || edge.event() == event);
        if !graph.nodes.is_end(node) {
            self.numbers.extend(self.edges_of.foreign(graph.nodes.event(node)));
        }
    }
}

/// Whether the name of an event is selected, with separate selections for events and kernels.
fn has_name(
    event: Option<Order>,
    (is_named, is_kernel_named): (Option<&[bool]>, Option<&[bool]>),
    graph: &Graph,
) -> bool {
    let (Some(is_named), Some(is_kernel_named)) = (is_named, is_kernel_named) else { return true };
    event.is_some_and(|event| {
        let is_kernel = graph.timeline.kind(event) == EventKind::Kernel;
        let is_meant = if is_kernel { is_kernel_named } else { is_named };
        graph.timeline.name(event).is_some_and(|name| is_meant[name.row()])
    })
}

fn is_of_event_kind(event: Option<Order>, kind: Option<EventKind>, graph: &Graph) -> bool {
    kind.is_none_or(|kind| event.is_some_and(|event| graph.timeline.kind(event) == kind))
}

/// Returns the annotations that a change selects.
fn annotations(change: &Change, is_named: Option<&[bool]>, tables: &Tables) -> Vec<EventId> {
    let events = &tables.events;
    let is_one = |&event: &EventId| {
        let name = events.name(event);
        events.kind(event) == EventKind::Annotation
            && is_named.is_none_or(|is_named| name.is_some_and(|name| is_named[name.row()]))
    };
    match &change.events {
        Some(rows) => rows.iter().copied().filter(is_one).collect(),
        None => events.ids().filter(is_one).collect(),
    }
}

/// Returns the number of edges that each change selects.
///
/// # Errors
///
/// Returns an error if a pattern is not a valid regular expression.
pub fn n_chosen(graph: &Graph, tables: &Tables, changes: &[Change]) -> Result<Vec<usize>> {
    let edges_of = EdgesOf::of(graph);
    let count = |change| edges_of.chosen(change, tables).map(|edges| edges.len());
    changes.iter().map(count).collect()
}
