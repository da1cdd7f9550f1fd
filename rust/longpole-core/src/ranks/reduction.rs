//! Reduces the graph of a rank to its boundary nodes.
//!
//! One pass over the nodes propagates the boundary nodes from which each can be reached, with the
//! largest minimum latency from each. A node with one incoming edge shares the map of its source. A
//! node with many sources becomes a boundary itself, so that maps stay small regardless of the
//! length of the trace; this never changes a result.
//!
//! Limits: all communication becomes a boundary, with or without a partner on another rank.

use std::collections::{BTreeSet, HashMap};

use super::completions::{Completions, StepSpan, step_at};
use super::model::{Boundary, BoundaryKind, Call, Channel, Member, ROOT, Rank, Reduced, WHOLE};
use crate::error::{Error, ErrorKind, Result};
use crate::graph::Graph;
use crate::ids::{EventId, NodeId, row_in_column};
use crate::link::{self, Launches};
use crate::measure::{CollectiveRow, Collectives, NamedBy};
use crate::path::REMOVED;
use crate::progress::{Progress, report};
use crate::tables::{NO_INTEGER, Tables};
use crate::vocabulary::{Collective, DataType};

/// A node with more sources becomes a boundary.
const MOST_SOURCES: usize = 6;

/// The longest time from zero on the clock of a rank, and of its base time: 73 years. Sums and
/// differences of three such times fit 64 bits, so later stages add them unchecked.
const FARTHEST_NS: u64 = (1 << 61) - (1 << 54);

/// Reduces one rank, with the minimum latencies of [`latencies_ns`](crate::path::latencies_ns), or
/// with those after a change.
///
/// # Errors
///
/// Returns an error if `step_name` is not a valid regular expression, if `progress` asks to stop, or
/// if the times of the rank are too far from zero to be compared with those of another one.
pub fn reduce(
    tables: &Tables,
    launches: &Launches,
    graph: &Graph,
    collectives: &Collectives,
    latencies_ns: &[i64],
    step_name: Option<&str>,
    progress: Progress<'_>,
) -> Result<Rank> {
    let completions = Completions::of(tables, launches, graph, step_name)?;
    let members = members(tables, collectives, &completions);
    let whole = completions.whole.as_ref();
    let window_ns = whole.map_or((0, 0), |window| (window.start_ns, window.end_ns));
    let header = &tables.header;
    let base_ns = header.base_time_ns.unwrap_or(0);
    if [base_ns, window_ns.0, window_ns.1].iter().any(|time| time.unsigned_abs() > FARTHEST_NS) {
        return Err(Error::new(ErrorKind::FarClock, 0));
    }
    let joined = joined(tables, &members);
    let reduced = Pass::new(graph, latencies_ns, &joined, &completions).run(progress)?;
    Ok(Rank {
        rank: header.rank,
        world_size: header.world_size,
        host: text_of(tables, "host_name"),
        base_ns,
        window_ns,
        entry_ns: entry_ns(tables, &completions).unwrap_or(window_ns.0),
        steps: completions.rows.iter().filter_map(|row| row.step).collect(),
        groups: collectives.groups.clone(),
        members,
        reduced,
    })
}

fn text_of(tables: &Tables, field: &str) -> Option<String> {
    let (_, text) = tables.header.fields.iter().find(|(name, _)| name == field)?;
    serde_json::from_str(text).ok()
}

/// Returns the start of the program in the recording: its first step, otherwise its first event.
fn entry_ns(tables: &Tables, completions: &Completions) -> Option<i64> {
    let steps = completions.steps.as_ref().and_then(|steps| steps.rows.first());
    if let Some(step) = steps {
        return Some(step.host_ns.0);
    }
    let is_main = link::main_threads(tables);
    let events = &tables.events;
    let of_main = events.ids().filter(|&it| is_main[events.lane(it).row()]);
    of_main.filter(|&it| events.end_ns(it).is_some()).map(|it| events.start_ns(it)).min()
}

fn members(tables: &Tables, found: &Collectives, completions: &Completions) -> Vec<Member> {
    let spans = completions.step_spans();
    // Sorted by number, because the order of first use depends on what is missing from the
    // recording.
    let place = |row: &CollectiveRow| tables.lanes.place(tables.events.lane(row.event));
    let is_work = |row: &&CollectiveRow| tables.events.kind(row.event).is_device_work();
    let unnamed = found.rows.iter().filter(|row| row.group.is_none()).filter(is_work);
    let streams: BTreeSet<_> = unnamed.map(|row| (place(row).device, place(row).stream)).collect();
    let channel = |row: &CollectiveRow| {
        let key = (place(row).device, place(row).stream);
        let stream = || streams.iter().position(|known| *known == key).filter(|_| is_work(&row));
        match row.group {
            Some(group) => Channel::Group(row_in_column(group)),
            None => stream().map_or(Channel::Cpu, |it| Channel::Stream(row_in_column(it))),
        }
    };
    found
        .rows
        .iter()
        .map(|row| Member {
            event: row_in_column(row.event.row()),
            start_ns: tables.events.start_ns(row.event),
            end_ns: tables.events.end_ns(row.event).unwrap_or_default(),
            step: step_of(row, tables, &spans).into(),
            sequence: row.sequence.into(),
            id: row.id.as_deref().map_or(0, hashed),
            peer: row.peer.into(),
            in_elements: row.in_elements.into(),
            bytes: row.bytes.into(),
            channel: channel(row),
            operation: row.operation,
            is_recorded: row.named_by.is_some_and(|by| by < NamedBy::Kernel),
            data_type: row.data_type.and_then(DataType::named),
        })
        .collect()
}

/// Returns the members that the trace connects to the thread that waits for them, with their
/// indices: those of devices and main threads. CPU libraries use threads of their own.
fn joined(tables: &Tables, members: &[Member]) -> Vec<(u32, EventId)> {
    let (events, is_main) = (&tables.events, link::main_threads(tables));
    let is_joined =
        |event: EventId| events.kind(event).is_device_work() || is_main[events.lane(event).row()];
    let placed = members
        .iter()
        .enumerate()
        .map(|(place, member)| (row_in_column(place), EventId::from_row(member.event as usize)));
    placed.filter(|&(_, event)| is_joined(event)).collect()
}

/// Returns the step in which a member was called; `None` if its launch is not in the trace.
fn step_of(row: &CollectiveRow, tables: &Tables, spans: &[StepSpan]) -> Option<i64> {
    let is_work = tables.events.kind(row.event).is_device_work();
    let called = if is_work { row.call? } else { row.event };
    step_at(spans, tables.events.start_ns(called))
}

/// Returns the FNV-1a hash of a text, or 1 if that is 0.
fn hashed(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step).max(1)
}

/// The sources of a node: a shared map, and a latency added to all of its entries.
#[derive(Clone, Copy)]
struct Reached {
    map: u32,
    added_ns: i64,
}

type Map = Vec<(u32, i64)>;

/// Returns the nodes at which members arrive and end.
fn boundaries(graph: &Graph, members: &[(u32, EventId)]) -> HashMap<NodeId, BoundaryKind> {
    let mut kinds = HashMap::new();
    for &(place, event) in members {
        if let (Some(start), Some(end)) = (graph.start_of(event), graph.end_of(event)) {
            kinds.insert(start, BoundaryKind::Arrival(place));
            kinds.insert(end, BoundaryKind::End(place));
        }
    }
    kinds
}

struct Pass<'a> {
    graph: &'a Graph,
    latencies_ns: &'a [i64],
    kinds: HashMap<NodeId, BoundaryKind>,
    completions: &'a Completions,
    /// For each candidate node, the completions that it may determine.
    decides: HashMap<NodeId, Vec<usize>>,
    /// All source maps, one after another: `map n` is `ends[n - 1]..ends[n]`.
    arena: Map,
    ends: Vec<usize>,
    reached: Vec<Reached>,
    bound_by: Vec<u32>,
    complete: Vec<Map>,
    /// The boundary node of each arrival.
    arrivals: HashMap<u32, u32>,
    found: Reduced,
}

impl<'a> Pass<'a> {
    fn new(
        graph: &'a Graph,
        latencies_ns: &'a [i64],
        members: &[(u32, EventId)],
        completions: &'a Completions,
    ) -> Self {
        let n = graph.nodes.len();
        Self {
            graph,
            latencies_ns,
            kinds: boundaries(graph, members),
            completions,
            decides: completions.by_candidate(),
            arena: Vec::new(),
            ends: Vec::new(),
            reached: Vec::with_capacity(n),
            bound_by: Vec::with_capacity(n),
            complete: vec![Vec::new(); completions.rows.len()],
            arrivals: HashMap::new(),
            found: Reduced::default(),
        }
    }

    fn run(mut self, progress: Progress<'_>) -> Result<Reduced> {
        for node in self.graph.nodes.ids() {
            if node.row() % (1 << 16) == 0 {
                report(progress, node.row() as u64)?;
            }
            self.visit(node);
        }
        for place in 0..self.complete.len() {
            self.complete(place);
        }
        self.found.nodes.shrink_to_fit();
        self.found.sources.shrink_to_fit();
        self.found.latencies_ns.shrink_to_fit();
        Ok(self.found)
    }

    fn visit(&mut self, node: NodeId) {
        let bound_by = self.bound_by_edges(node);
        let kind = self.kinds.get(&node).copied();
        let is_end = matches!(kind, Some(BoundaryKind::End(_)));
        let (reached, is_large) = self.reach(node, bound_by, is_end);
        if let Some(kind) = kind.or(is_large.then_some(BoundaryKind::Cut)) {
            let place = self.make_boundary(node, kind, reached, bound_by);
            if let BoundaryKind::Arrival(member) = kind {
                self.arrivals.insert(member, place);
            }
            let map = self.store(vec![(place, 0)]);
            self.reached.push(Reached { map, added_ns: 0 });
            self.bound_by.push(place);
        } else {
            self.reached.push(reached);
            self.bound_by.push(bound_by);
        }
        if let Some(places) = self.decides.get(&node).cloned() {
            let map = self.resolved(self.reached[node.row()]);
            for place in places {
                merge(&mut self.complete[place], &map);
            }
        }
    }

    /// Returns the boundary node to which the binding edges of a node lead back.
    fn bound_by_edges(&self, node: NodeId) -> u32 {
        let binding = self.graph.edges.binding(node);
        let source = binding.map(|number| self.graph.edges.as_slice()[number].source);
        source.map_or(ROOT, |source| self.bound_by[source.row()])
    }

    /// Returns the sources of a node, and whether there are many.
    ///
    /// The connection from its own arrival to the end of a member may be removed later, so it
    /// cannot replace others.
    fn reach(&mut self, node: NodeId, bound_by: u32, is_end: bool) -> (Reached, bool) {
        let mut ways: Vec<Reached> = Vec::new();
        for number in self.graph.edges.range(node).filter(|&it| self.latencies_ns[it] != REMOVED) {
            let source = self.reached[self.graph.edges.as_slice()[number].source.row()];
            let added_ns = source.added_ns.saturating_add(self.latencies_ns[number]);
            match ways.iter_mut().find(|way| way.map == source.map) {
                Some(way) => way.added_ns = way.added_ns.max(added_ns),
                None => ways.push(Reached { map: source.map, added_ns }),
            }
        }
        match ways[..] {
            [] => {
                let map = self.store(vec![(ROOT, self.graph.nodes.time_ns(node))]);
                (Reached { map, added_ns: 0 }, false)
            }
            [only] => (only, false),
            _ => {
                let mut map = Map::new();
                for way in ways {
                    merge(&mut map, &self.resolved(way));
                }
                if !is_end {
                    self.leave_out_detours(&mut map, bound_by);
                }
                let is_large = map.len() > MOST_SOURCES;
                (Reached { map: self.store(map), added_ns: 0 }, is_large)
            }
        }
    }

    /// Removes sources that are reached no later through another boundary node of the map. The
    /// binding source stays, because the path leads there.
    fn leave_out_detours(&self, map: &mut Map, bound_by: u32) {
        let all = map.clone();
        map.retain(|&(source, latency_ns)| {
            let is_shorter = |&(through, rest_ns): &(u32, i64)| {
                let first_ns =
                    if through == ROOT { None } else { self.found.latency_ns(source, through) };
                first_ns.is_some_and(|first_ns| first_ns.saturating_add(rest_ns) >= latency_ns)
            };
            source == bound_by || !all.iter().any(is_shorter)
        });
    }

    fn store(&mut self, map: Map) -> u32 {
        self.arena.extend(map);
        self.ends.push(self.arena.len());
        row_in_column(self.ends.len() - 1)
    }

    fn resolved(&self, reached: Reached) -> Map {
        let map = reached.map as usize;
        let start = if map == 0 { 0 } else { self.ends[map - 1] };
        let rows = &self.arena[start..self.ends[map]];
        rows.iter().map(|&(it, latency)| (it, latency.saturating_add(reached.added_ns))).collect()
    }

    fn make_boundary(
        &mut self,
        node: NodeId,
        kind: BoundaryKind,
        reached: Reached,
        bound_by: u32,
    ) -> u32 {
        let time_ns = self.graph.nodes.time_ns(node);
        let mut boundary = Boundary::new(kind, row_in_column(node.row()), time_ns);
        boundary.bound_by = bound_by;
        let mut map = self.resolved(reached);
        if let BoundaryKind::End(member) = kind {
            let arrival = self.arrivals.get(&member).copied();
            if let Some(own) = map.iter().position(|&(source, _)| Some(source) == arrival) {
                boundary.own_ns = map.remove(own).1;
            }
            boundary.others_ns = self.others_ns(node);
        }
        self.push(boundary, &map)
    }

    fn push(&mut self, boundary: Boundary, map: &Map) -> u32 {
        let place = row_in_column(self.found.nodes.len());
        let first = row_in_column(self.found.sources.len());
        self.found.nodes.push(Boundary { first, ..boundary });
        self.found.sources.extend(map.iter().map(|&(source, _)| source));
        self.found.latencies_ns.extend(map.iter().map(|&(_, latency)| latency));
        place
    }

    /// Returns the time at which everything a member waited for besides its own arrival had
    /// finished.
    fn others_ns(&self, node: NodeId) -> i64 {
        let event = self.graph.nodes.event(node);
        let edges = &self.graph.edges.as_slice()[self.graph.edges.range(node)];
        let others = edges.iter().filter(|edge| {
            !edge.role.is_self_time() || {
                self.graph.nodes.event(edge.source) != event
                    && self.graph.timeline.kind(event).is_device_work()
            }
        });
        let finished = others.map(|edge| edge.finished_ns(self.graph.nodes.times_ns()));
        finished.max().unwrap_or(NO_INTEGER)
    }

    fn complete(&mut self, place: usize) {
        let completion = &self.completions.rows[place];
        let nodes = &self.graph.nodes;
        let last = completion
            .candidates
            .iter()
            .copied()
            .max_by_key(|&node| (nodes.time_ns(node), std::cmp::Reverse(nodes.event(node))));
        let Some(last) = last else { return };
        // The whole trace comes after its steps, so that the indices of the steps stay the same.
        let step = completion.step.map_or(WHOLE, |_| row_in_column(place));
        let kind = BoundaryKind::Completion(step);
        let mut boundary = Boundary::new(kind, row_in_column(last.row()), nodes.time_ns(last));
        boundary.bound_by = self.bound_by[last.row()];
        let mut map = std::mem::take(&mut self.complete[place]);
        self.leave_out_detours(&mut map, boundary.bound_by);
        self.push(boundary, &map);
    }
}

/// Merges one map into another; of two latencies from one source, the larger is kept.
fn merge(into: &mut Map, other: &Map) {
    for &(source, latency) in other {
        match into.binary_search_by_key(&source, |&(it, _)| it) {
            Ok(place) => into[place].1 = into[place].1.max(latency),
            Err(place) => into.insert(place, (source, latency)),
        }
    }
}

/// Larger sends wait for their receiver: an assumption about how much libraries buffer.
const LARGEST_BUFFERED_BYTES: i64 = 4 << 20;

/// Returns the members of a call for whose arrival the end of one member waits; `None` for all
/// members.
pub(super) fn waits_for(
    call: &Call,
    at: usize,
    observed: &[&Rank],
    arrived_ns: &[i64],
    end_ns: i64,
) -> Option<Vec<u32>> {
    let own = row_in_column(at);
    let (rank, member) = call.members[at];
    let member = &observed[rank as usize].members[member as usize];
    let is_buffered = member.bytes.get().is_none_or(|bytes| bytes <= LARGEST_BUFFERED_BYTES);
    if call.is_pair && member.operation == Some(Collective::Send) && is_buffered {
        return Some(vec![own]);
    }
    if arrived_ns.iter().all(|&time_ns| time_ns <= end_ns) {
        return None;
    }
    let before = (0..arrived_ns.len()).filter(|&it| arrived_ns[it] <= end_ns);
    let last = before.max_by_key(|&it| (arrived_ns[it], std::cmp::Reverse(it)));
    let mut only: Vec<_> = last.map(row_in_column).into_iter().chain([own]).collect();
    only.dedup();
    Some(only)
}
