//! The time of a rank by step and by name, for comparisons between ranks.
//!
//! Times are minimum latencies. For a call that waited, only the part after the wait counts, so a
//! rank that waits for others does not look slow.
//!
//! Limits: threads other than the main one are added up. A name that occurs several times in a step
//! counts by its sum.

use std::collections::{BTreeMap, HashMap};

use super::completions::{Completions, StepSpan, step_at};
use crate::columns::columns;
use crate::error::Result;
use crate::graph::{Edge, Graph, Kind};
use crate::ids::Order;
use crate::link::{self, Launches};
use crate::names::named;
use crate::path::{REMOVED, Ratio};
use crate::tables::{Tables, argument_text};

named! {
    /// Classes of time for comparisons.
    TimeClass {
        /// Data loading.
        DataLoading "data_loading",
        /// Main thread.
        Host "host",
        /// Other threads.
        HelperThreads "helper_threads",
        /// Compute kernels.
        Kernels "kernels",
        /// Memcpys and memsets.
        Copies "copies",
    }
}

columns! {
    /// The time of one class in one step.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct StepTotal {
        /// The step; `None` outside steps.
        pub step: Option<i64>,
        /// The class.
        pub class: TimeClass,
        /// Total time.
        pub total_ns: i64,
    }
}

/// The time of one name in all steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameTotal {
    /// The class.
    pub class: TimeClass,
    /// The name.
    pub name: String,
    /// The grid shape of a kernel, which distinguishes more work from slower work.
    pub shape: String,
    /// Number of events.
    pub count: i64,
    /// Total time.
    pub total_ns: i64,
}

/// The time of a rank by step and by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Profile {
    /// By step and class.
    pub steps: Vec<StepTotal>,
    /// By class and name, so that the size does not grow with the number of steps.
    pub names: Vec<NameTotal>,
}

/// Maximum number of names per class, longest total time first.
const MOST_NAMES: usize = 200;

/// Sums the minimum latencies of a rank by step and by name.
///
/// # Errors
///
/// Returns an error if `step_name` is not a valid regular expression.
pub fn profile(
    tables: &Tables,
    launches: &Launches,
    graph: &Graph,
    latencies_ns: &[i64],
    step_name: Option<&str>,
) -> Result<Profile> {
    let completions = Completions::of(tables, launches, graph, step_name)?;
    let classes = Classes::of(tables, graph, &completions);
    let mut steps: BTreeMap<(Option<i64>, TimeClass), i64> = BTreeMap::new();
    let mut names = ByName::new();
    let mut shapes: HashMap<Order, String> = HashMap::new();
    let mut last_event = None;
    for (edge, &latency) in graph.edges.as_slice().iter().zip(latencies_ns) {
        let Some((class, step)) = classes.of_edge(edge).filter(|_| latency != REMOVED) else {
            continue;
        };
        *steps.entry((step, class)).or_default() += latency;
        let Some(event) = edge.event() else { continue };
        let name = graph
            .timeline
            .name(event)
            .map_or(u32::MAX, |name| crate::ids::row_in_column(name.row()));
        let shape =
            shapes.entry(event).or_insert_with(|| shape(event, class, graph, tables)).clone();
        let total = names.entry((class, name, shape)).or_default();
        total.0 += i64::from(last_event != Some(event));
        total.1 += latency;
        last_event = Some(event);
    }
    let steps = steps.into_iter();
    let steps =
        steps.map(|((step, class), total_ns)| StepTotal { step, class, total_ns }).collect();
    Ok(Profile { steps, names: longest(names, tables) })
}

/// Count and total time, by class, name and shape.
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

/// Determines the class and step of edges.
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

    /// Returns the class and step of an edge that is the duration of something itself.
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

/// A hypothetical scaling of a class of time of a rank, by step.
#[derive(Debug, Clone, PartialEq)]
pub struct Scaling {
    /// The class of time.
    pub class: TimeClass,
    /// Only events with this name.
    pub name: Option<String>,
    /// The factor of each step; `None` is time outside steps.
    pub by_step: Vec<(Option<i64>, Ratio)>,
}

/// Returns the minimum latencies after classes of time were scaled.
///
/// # Errors
///
/// Returns an error if `step_name` is not a valid regular expression.
pub fn scaled_latencies_ns(
    tables: &Tables,
    launches: &Launches,
    graph: &Graph,
    latencies_ns: &[i64],
    scalings: &[Scaling],
    step_name: Option<&str>,
) -> Result<Vec<i64>> {
    let completions = Completions::of(tables, launches, graph, step_name)?;
    let classes = Classes::of(tables, graph, &completions);
    let mut changed_ns = latencies_ns.to_vec();
    for scaling in scalings {
        let name = scaling.name.as_ref().map(|name| tables.strings.lookup(name));
        let factors: HashMap<_, _> = scaling.by_step.iter().copied().collect();
        for (number, edge) in graph.edges.as_slice().iter().enumerate() {
            let Some((class, step)) = classes.of_edge(edge) else { continue };
            let is_named = name.is_none_or(|name| {
                name.is_some() && edge.event().and_then(|it| graph.timeline.name(it)) == name
            });
            if class == scaling.class && is_named && changed_ns[number] != REMOVED {
                let factor = factors.get(&step).copied().unwrap_or(Ratio::ONE);
                changed_ns[number] = factor.of(changed_ns[number]);
            }
        }
    }
    Ok(changed_ns)
}
