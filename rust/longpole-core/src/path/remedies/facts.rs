//! Queries that remedies make about the windows of a trace.
//!
//! Each query returns rows about the windows only; the remedies decide what they mean.

use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;

use super::pace::host_pace_ns;
use crate::graph::{Edge, Graph, Kind, Role};
use crate::ids::{EventId, NO_ROW, NodeId, Order, StringId, row_in_column};
use crate::intervals::Spans;
use crate::link::{Launch, LaunchTimes, Launches};
use crate::path::what_if::TimeRange;
use crate::path::windows::Scope;
use crate::stack::Nesting;
use crate::tables::{EventKind, Tables, argument, argument_text, argument_text_id};
use crate::vocabulary::ApiRole;

/// The data that queries read.
#[derive(Clone, Copy)]
pub struct Facts<'a> {
    /// The dependency graph.
    pub graph: &'a Graph,
    /// The events.
    pub tables: &'a Tables,
    /// The nesting of events.
    pub nesting: &'a Nesting,
    /// The launch calls of GPU activities.
    pub launches: &'a Launches,
    /// The windows.
    pub scope: &'a Scope,
    /// The graph and the windows of the verdict, of which these may be a part.
    pub whole: (&'a Graph, &'a Scope),
    /// Indexes shared by several queries.
    pub index: &'a FactIndex,
}

/// Indexes shared by several queries, built on first use.
#[derive(Debug, Default)]
pub struct FactIndex {
    launched: OnceLock<Vec<(Order, Order)>>,
    busy: OnceLock<Spans>,
    launch_times: OnceLock<LaunchTimes>,
}

/// An event on a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OnThread {
    /// The event.
    pub event: EventId,
    /// Its time range and lane.
    pub time_range: TimeRange,
    /// Index of the window to which it belongs.
    pub window: usize,
}

/// A time range of a thread in which no operator and no call was open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadGap {
    /// Its time range and lane.
    pub time_range: TimeRange,
    /// Index of the window to which it belongs.
    pub window: usize,
    /// How long all devices were idle meanwhile.
    pub idle_ns: i64,
    /// The operator or call that ended before it.
    pub before: Option<EventId>,
    /// The operator or call that begins after it.
    pub after: Option<EventId>,
    /// Whether it is part of data loading.
    pub is_loading: bool,
}

/// A GPU activity in the windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Activity {
    /// The activity.
    pub event: EventId,
    /// The launch call.
    pub call: Option<EventId>,
    /// The innermost operator around the launch call.
    pub operator: Option<EventId>,
    /// The outermost operator around the launch call.
    pub outermost: Option<EventId>,
    /// The kind of its time.
    pub kind: Kind,
    /// Start time.
    pub start_ns: i64,
    /// Duration.
    pub duration_ns: i64,
    /// The row of its stream in the lane table.
    pub lane: usize,
    /// Index of the window to which it belongs.
    pub window: usize,
}

/// A call that waited for a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceWait {
    /// The call.
    pub call: OnThread,
    /// The outermost operator around the call.
    pub operator: Option<EventId>,
    /// The activity that the call waited for.
    pub work: Option<EventId>,
}

/// Events of one name within some time ranges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named {
    /// The name.
    pub name: StringId,
    /// The kind of the events.
    pub kind: EventKind,
    /// Number of events.
    pub count: usize,
    /// The total time of the events; nested events of the same name count once.
    pub total_ns: i64,
    /// The first event with the smallest depth.
    pub first: EventId,
    /// The depth of the first event.
    pub depth: u16,
}

impl<'a> Facts<'a> {
    /// Returns the index of the window that contains a time.
    fn window_at(&self, at_ns: i64) -> Option<usize> {
        let windows = &self.scope.windows;
        let behind = windows.partition_point(|window| window.start_ns <= at_ns);
        behind.checked_sub(1).filter(|&place| at_ns < windows[place].end_ns)
    }

    /// Returns the index of the window to which host work that begins at a time belongs.
    fn window_of_host(&self, at_ns: i64) -> Option<usize> {
        let host_ns = &self.scope.host_ns;
        let behind = host_ns.partition_point(|of| of.0 <= at_ns);
        behind.checked_sub(1).filter(|&place| at_ns < host_ns[place].1)
    }

    /// Returns events on threads that belong to a window, have one of `kinds` and a duration of at
    /// least `least_ns`, and whose name is accepted.
    pub fn on_threads(
        &self,
        kinds: &[EventKind],
        least_ns: i64,
        accepts: impl Fn(&str) -> bool,
    ) -> Vec<OnThread> {
        let timeline = &self.graph.timeline;
        let strings = &self.tables.strings;
        let mut accepted = vec![None; strings.len()];
        let mut is_accepted = |name: StringId| {
            *accepted[name.row()].get_or_insert_with(|| accepts(strings.get(name)))
        };
        let mut found = Vec::new();
        for order in timeline.orders() {
            if !kinds.contains(&timeline.kind(order)) || timeline.duration_ns(order) < least_ns {
                continue;
            }
            let Some(window) = self.window_of_host(timeline.start_ns(order)) else { continue };
            if timeline.name(order).is_some_and(&mut is_accepted) {
                found.push(self.on_thread(order, window));
            }
        }
        found
    }

    fn on_thread(&self, order: Order, window: usize) -> OnThread {
        let timeline = &self.graph.timeline;
        OnThread {
            event: timeline.event(order),
            time_range: TimeRange {
                lane: timeline.lane(order),
                start_ns: timeline.start_ns(order),
                end_ns: timeline.end_ns(order),
            },
            window,
        }
    }

    /// Calls with the given roles in the windows.
    pub fn calls(&self, of: &[ApiRole]) -> Vec<OnThread> {
        let (timeline, roles) = (&self.graph.timeline, self.tables.roles());
        let is_one = |order: &Order| {
            timeline.kind(*order).is_call()
                && timeline.name(*order).is_some_and(|name| of.contains(&roles[name.row()]))
        };
        let within = |order: Order| {
            Some(self.on_thread(order, self.window_of_host(timeline.start_ns(order))?))
        };
        timeline.orders().filter(is_one).filter_map(within).collect()
    }

    /// Returns the index of the window to which a GPU activity belongs: that of its launch, or in
    /// which it ends if windows contain their host work.
    fn window_of_work(&self, order: Order) -> Option<usize> {
        let timeline = &self.graph.timeline;
        let launch = if self.scope.has_host() {
            let make = || LaunchTimes::of(self.tables, self.launches);
            let times = self.index.launch_times.get_or_init(make);
            times.launch(timeline.event(order), self.tables, self.launches)
        } else {
            Launch::Unknown
        };
        match launch {
            Launch::At(ns) => self.window_of_host(ns),
            Launch::BeforeAll => None,
            Launch::Unknown => self.window_at(timeline.end_ns(order) - 1),
        }
    }

    /// Returns GPU activities of the given event kinds that belong to a window and take at least
    /// `least_ns`.
    pub fn activities(&self, kinds: &[EventKind], least_ns: i64) -> Vec<Activity> {
        let timeline = &self.graph.timeline;
        let is_one = |order: &Order| {
            kinds.contains(&timeline.kind(*order)) && timeline.duration_ns(*order) >= least_ns
        };
        timeline.orders().filter(is_one).filter_map(|order| self.activity(order)).collect()
    }

    fn activity(&self, order: Order) -> Option<Activity> {
        let (graph, timeline) = (self.graph, &self.graph.timeline);
        let window = self.window_of_work(order)?;
        let own = graph.edges.range(graph.nodes.end(order));
        let own = graph.edges.as_slice()[own].iter().find(|edge| edge.role == Role::DeviceWork);
        let call = timeline.launcher(order).map(|call| timeline.event(call));
        let (operator, outermost) = call.map_or((None, None), |call| self.operators_around(call));
        Some(Activity {
            event: timeline.event(order),
            call,
            operator,
            outermost,
            kind: own.map_or(Kind::Kernel, |edge| edge.kind),
            start_ns: timeline.start_ns(order),
            duration_ns: timeline.duration_ns(order),
            lane: timeline.lane(order),
            window,
        })
    }

    /// Returns the innermost and outermost operator around an event.
    fn operators_around(&self, event: EventId) -> (Option<EventId>, Option<EventId>) {
        let is_operator = |it: &EventId| self.tables.events.kind(*it) == EventKind::Operator;
        let mut around = self.ancestors(event).filter(is_operator);
        let innermost = around.next();
        (innermost, around.last().or(innermost))
    }

    /// Returns an event and all events that enclose it, innermost first.
    pub fn ancestors(&self, event: EventId) -> impl Iterator<Item = EventId> + use<'a> {
        let nesting = self.nesting;
        std::iter::successors(Some(event), move |&event| nesting.parent(event))
    }

    /// Returns the GPU activities launched in some time ranges.
    pub fn launched_in(&self, time_ranges: &[TimeRange]) -> Vec<Activity> {
        let timeline = &self.graph.timeline;
        let mut found = Vec::new();
        for order in self.starting_in(time_ranges).filter(|&it| timeline.kind(it).is_call()) {
            found.extend(self.launched_by(order).filter_map(|work| self.activity(work)));
        }
        found
    }

    fn launched_by(&self, call: Order) -> impl Iterator<Item = Order> + use<'a> {
        let pairs = self.index.launched.get_or_init(|| {
            let timeline = &self.graph.timeline;
            let pair = |work| Some((timeline.launcher(work)?, work));
            let mut pairs: Vec<_> = timeline.orders().filter_map(pair).collect();
            pairs.sort_unstable();
            pairs
        });
        let first = pairs.partition_point(|&(other, _)| other < call);
        pairs[first..].iter().take_while(move |pair| pair.0 == call).map(|pair| pair.1)
    }

    /// Returns the events that begin in some time ranges, in order.
    fn starting_in(&self, time_ranges: &[TimeRange]) -> impl Iterator<Item = Order> {
        let nodes = &self.graph.nodes;
        time_ranges
            .iter()
            .flat_map(|time_range| self.nodes_in(time_range))
            .filter(|&&node| !nodes.is_end(node))
            .map(|&node| nodes.event(node))
    }

    fn nodes_in(&self, time_range: &TimeRange) -> &'a [NodeId] {
        let (nodes, of_lane) =
            (&self.graph.nodes, self.graph.thread_nodes.of_lane(time_range.lane));
        let first = of_lane.partition_point(|&it| nodes.time_ns(it) < time_range.start_ns);
        let behind = of_lane.partition_point(|&it| nodes.time_ns(it) < time_range.end_ns);
        of_lane.get(first..behind).unwrap_or_default()
    }

    /// Returns the events that begin in some time ranges, grouped by name, with their time in
    /// these ranges.
    pub fn names_in(&self, time_ranges: &[TimeRange]) -> Vec<Named> {
        let timeline = &self.graph.timeline;
        let mut of_name: BTreeMap<(StringId, EventKind), Named> = BTreeMap::new();
        let mut open_until: BTreeMap<(StringId, EventKind), i64> = BTreeMap::new();
        let starting = time_ranges.iter().flat_map(|time_range| {
            let orders = self.starting_in(std::slice::from_ref(time_range));
            orders.map(|order| (order, time_range.end_ns))
        });
        for (order, last_ns) in starting {
            let (Some(name), kind) = (timeline.name(order), timeline.kind(order)) else { continue };
            let event = timeline.event(order);
            let depth = self.nesting.depths()[event.row()];
            let named = of_name.entry((name, kind)).or_insert(Named {
                name,
                kind,
                count: 0,
                total_ns: 0,
                first: event,
                depth,
            });
            named.count += 1;
            if depth < named.depth {
                (named.first, named.depth) = (event, depth);
            }
            let until_ns = open_until.entry((name, kind)).or_insert(i64::MIN);
            let from_ns = timeline.start_ns(order).max(*until_ns);
            let end_ns = timeline.end_ns(order).min(last_ns);
            named.total_ns += (end_ns - from_ns).max(0);
            *until_ns = (*until_ns).max(end_ns);
        }
        of_name.into_values().collect()
    }

    /// Returns the time ranges of at least `least_ns` in which a thread has no open operator or
    /// call.
    pub fn thread_gaps(&self, least_ns: i64) -> Vec<ThreadGap> {
        let (graph, nodes) = (self.graph, &self.graph.nodes);
        let mut open: BTreeMap<usize, (TimeRange, Option<EventId>, bool)> = BTreeMap::new();
        let mut gaps = Vec::new();
        let mut last: Vec<Option<EventId>> = Vec::new();
        for node in nodes.ids() {
            let order = nodes.event(node);
            let kind = graph.timeline.kind(order);
            if kind.is_device_work() {
                continue;
            }
            let lane = graph.timeline.lane(order);
            last.resize(last.len().max(lane + 1), None);
            let of_thread = graph.edges.range(node).map(|number| &graph.edges.as_slice()[number]);
            let before = of_thread.into_iter().find(|edge| edge.role == Role::ThreadOrder);
            let quiet = |edge: &&Edge| matches!(edge.kind, Kind::HostGap | Kind::DataLoading);
            if let Some(edge) = before.filter(quiet) {
                let start_ns = nodes.time_ns(edge.source);
                let fresh = (TimeRange { lane, start_ns, end_ns: start_ns }, last[lane], false);
                let (time_range, _, is_loading) = open.entry(lane).or_insert(fresh);
                time_range.end_ns = nodes.time_ns(node);
                *is_loading |= edge.kind == Kind::DataLoading;
            }
            if kind.is_call() || kind == EventKind::Operator {
                let event = graph.timeline.event(order);
                if let Some((time_range, before, is_loading)) = open.remove(&lane) {
                    let found = (time_range, before, Some(event), is_loading);
                    gaps.extend(self.gap(found).filter(|it| length_ns(&it.time_range) >= least_ns));
                }
                last[lane] = Some(event);
            }
        }
        gaps
    }

    fn gap(
        &self,
        (time_range, before, after, is_loading): (
            TimeRange,
            Option<EventId>,
            Option<EventId>,
            bool,
        ),
    ) -> Option<ThreadGap> {
        let window = self.window_of_host(time_range.end_ns - 1)?;
        let busy = self.index.busy.get_or_init(|| {
            let timeline = &self.graph.timeline;
            let works = timeline.orders().filter(|&it| timeline.kind(it).is_device_work());
            Spans::union_of(works.map(|it| (timeline.start_ns(it), timeline.end_ns(it))))
        });
        let busy_ns = busy.length_within_ns(time_range.start_ns, time_range.end_ns);
        let idle_ns = length_ns(&time_range) - busy_ns;
        Some(ThreadGap { time_range, window, idle_ns, before, after, is_loading })
    }

    /// Returns the calls that waited for a device, in the windows.
    pub fn waits(&self) -> Vec<DeviceWait> {
        let (nodes, timeline) = (&self.graph.nodes, &self.graph.timeline);
        let mut seen = NO_ROW;
        let mut found = Vec::new();
        for edge in self.graph.edges.as_slice() {
            if edge.role.waits() != Some(Kind::SyncReturn)
                || row_in_column(edge.target.row()) == seen
            {
                continue;
            }
            let order = nodes.event(edge.target);
            let begun_ns = timeline.start_ns(nodes.event(edge.target));
            let Some(window) = self.window_of_host(begun_ns) else { continue };
            seen = row_in_column(edge.target.row());
            let call = self.on_thread(order, window);
            let source = nodes.event(edge.source);
            found.push(DeviceWait {
                call,
                operator: self.operators_around(call.event).1,
                work: timeline.kind(source).is_device_work().then(|| timeline.event(source)),
            });
        }
        found
    }

    /// Returns the least time that the host took for a step, without its waits for a device. None
    /// if re-timing the windows considers the host itself.
    pub fn host_pace_ns(&self) -> Option<i64> {
        let (graph, scope) = self.whole;
        host_pace_ns(graph, self.tables, scope)
    }

    /// Returns an integer argument of an event.
    pub fn number(&self, event: EventId, key: &str) -> Option<i64> {
        argument(event, key, self.tables)
    }

    /// Returns a string argument of an event.
    pub fn text(&self, event: EventId, key: &str) -> Option<&'a str> {
        argument_text(event, key, self.tables)
    }

    /// Returns for each event the place, among those given, of the first one with the same name and
    /// the same string arguments.
    pub fn alike(&self, events: &[EventId], keys: &[String]) -> Vec<usize> {
        let mut first = HashMap::new();
        let texts_of =
            |event| keys.iter().map(move |key| argument_text_id(event, key, self.tables));
        let place_of = |(place, &event): (usize, &EventId)| {
            let texts: Vec<_> = texts_of(event).collect();
            *first.entry((self.tables.events.name(event), texts)).or_insert(place)
        };
        events.iter().enumerate().map(place_of).collect()
    }

    /// Whether the source and the destination of a memcpy are pageable memory.
    pub fn pageable_ends(&self, event: EventId) -> [bool; 2] {
        self.tables.pageable_ends(event)
    }
}

fn length_ns(time_range: &TimeRange) -> i64 {
    time_range.end_ns - time_range.start_ns
}
