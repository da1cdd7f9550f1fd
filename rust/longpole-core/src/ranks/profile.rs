//! What a rank spent its time on, by step and by name, so that ranks can be compared.
//!
//! Times are minimum latencies: of a call that waited, the part after the wait. What waits for
//! others is thus not taken for slow.
//!
//! Limits: threads other than the main one are taken together. A name that was seen more than
//! once a step counts by its sum.

use std::collections::{BTreeMap, HashMap};

use super::completions::{Completions, StepSpan, step_at};
use crate::error::Result;
use crate::graph::{Edge, Graph, Kind};
use crate::ids::Order;
use crate::link::{self, Launches};
use crate::names::named;
use crate::path::REMOVED;
use crate::tables::{Tables, argument_text};

named! {
    /// What the time of a rank is compared by.
    TimeClass {
        /// Data loading.
        DataLoading "data_loading",
        /// Work of the main thread.
        Host "host",
        /// Work of other threads.
        HelperThreads "helper_threads",
        /// Kernels that compute.
        Kernels "kernels",
        /// Memcpys and memsets.
        Copies "copies",
    }
}

/// The time of one class in one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepTotal {
    /// The step; none outside steps.
    pub step: Option<i64>,
    /// The class.
    pub class: TimeClass,
    /// How long.
    pub total_ns: i64,
}

/// The time of one name in all steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameTotal {
    /// The class.
    pub class: TimeClass,
    /// The name.
    pub name: String,
    /// The shape of a kernel's grid, which tells more work from slower work.
    pub shape: String,
    /// How many events.
    pub count: i64,
    /// How long.
    pub total_ns: i64,
}

/// What a rank spent its time on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Profile {
    /// By step and class.
    pub steps: Vec<StepTotal>,
    /// By class and name, so that it does not grow with the steps.
    pub names: Vec<NameTotal>,
}

/// So many names of a class are kept, those of the longest time.
const MOST_NAMES: usize = 200;

/// Sums the minimum latencies of a rank.
///
/// # Errors
///
/// When `step_name` is no regular expression.
pub fn profile(
    tables: &Tables,
    launches: &Launches,
    graph: &Graph,
    lags_ns: &[i64],
    step_name: Option<&str>,
) -> Result<Profile> {
    let completions = Completions::of(tables, launches, graph, step_name)?;
    let classes = Classes::of(tables, graph, &completions);
    let mut steps: BTreeMap<(Option<i64>, TimeClass), i64> = BTreeMap::new();
    let mut names = ByName::new();
    let mut shapes: HashMap<Order, String> = HashMap::new();
    let mut last_event = None;
    for (edge, &lag) in graph.edges.as_slice().iter().zip(lags_ns) {
        let Some((class, step)) = classes.of_edge(edge).filter(|_| lag != REMOVED) else {
            continue;
        };
        *steps.entry((step, class)).or_default() += lag;
        let Some(event) = edge.event() else { continue };
        let name = graph
            .timeline
            .name(event)
            .map_or(u32::MAX, |name| crate::ids::row_in_column(name.row()));
        let shape =
            shapes.entry(event).or_insert_with(|| shape(event, class, graph, tables)).clone();
        let total = names.entry((class, name, shape)).or_default();
        total.0 += i64::from(last_event != Some(event));
        total.1 += lag;
        last_event = Some(event);
    }
    let steps = steps.into_iter();
    let steps =
        steps.map(|((step, class), total_ns)| StepTotal { step, class, total_ns }).collect();
    Ok(Profile { steps, names: longest(names, tables) })
}

/// By class, name and shape: how many events, and how long.
type ByName = BTreeMap<(TimeClass, u32, String), (i64, i64)>;

fn longest(names: ByName, tables: &Tables) -> Vec<NameTotal> {
    let mut rows: Vec<_> = names
        .into_iter()
        .map(|((class, name, shape), (count, total_ns))| {
            let known = crate::ids::StringId::from_column(name);
            let name = known.map_or("", |name| tables.strings.get(name)).to_owned();
            NameTotal { class, name, shape, count, total_ns }
        })
        .collect();
    rows.sort_by(|one, two| {
        let place = |row: &NameTotal| (row.class, std::cmp::Reverse(row.total_ns));
        place(one)
            .cmp(&place(two))
            .then_with(|| (&one.name, &one.shape).cmp(&(&two.name, &two.shape)))
    });
    let mut kept: HashMap<TimeClass, usize> = HashMap::new();
    rows.retain(|row| {
        let n = kept.entry(row.class).or_default();
        *n += 1;
        *n <= MOST_NAMES
    });
    rows
}

fn shape(event: Order, class: TimeClass, graph: &Graph, tables: &Tables) -> String {
    if class != TimeClass::Kernels {
        return String::new();
    }
    argument_text(graph.timeline.event(event), "grid", tables).unwrap_or_default().to_owned()
}

/// Tells the class and step of edges.
pub(super) struct Classes<'a> {
    graph: &'a Graph,
    is_main: Vec<bool>,
    /// The steps, in order of time.
    steps: Vec<StepSpan>,
}

impl<'a> Classes<'a> {
    pub(super) fn of(tables: &Tables, graph: &'a Graph, completions: &Completions) -> Self {
        Self { graph, is_main: link::main_threads(tables), steps: completions.step_spans() }
    }

    /// The class and step of an edge that says how long something itself took.
    pub(super) fn of_edge(&self, edge: &Edge) -> Option<(TimeClass, Option<i64>)> {
        if !edge.role.is_self_time() {
            return None;
        }
        let timeline = &self.graph.timeline;
        let target = self.graph.nodes.event(edge.target);
        let on_main = self.is_main.get(timeline.lane(target)).copied().unwrap_or(false);
        let class = match edge.kind {
            Kind::DataLoading => TimeClass::DataLoading,
            Kind::Kernel => TimeClass::Kernels,
            Kind::Copy => TimeClass::Copies,
            Kind::Operator | Kind::Runtime | Kind::HostGap if on_main => TimeClass::Host,
            Kind::Operator | Kind::Runtime => TimeClass::HelperThreads,
            _ => return None,
        };
        let is_work = timeline.kind(target).is_device_work();
        let source_ns = self.graph.nodes.time_ns(edge.source);
        let asked_ns = if is_work { timeline.submitted_ns(target) } else { source_ns };
        Some((class, step_at(&self.steps, asked_ns)))
    }
}
