//! The recording cost of one event of each class, estimated from the trace.

use super::classes::{Class, Classes};
use crate::ids::{EventId, StringId};
use crate::link::Launches;
use crate::measure;
use crate::names::{Names, named};
use crate::stack::Nesting;
use crate::tables::{EventKind, Tables};
use crate::vocabulary::{ApiRole, Profiler};

named! {
    /// How a cost was estimated.
    Source {
        /// From operators that do nothing but call another one.
        Wrappers "wrappers",
        /// From the time between neighbours.
        Gaps "gaps",
        /// From the cost of an operator and usual ratios.
        Operators "operators",
        /// From the time of graph launches beyond the usual.
        GraphLaunches "graph_launches",
    }
}

named! {
    /// Why a trace does not show its recording costs.
    NotEstimated {
        /// It was recorded by another profiler.
        Profiler "profiler",
        /// Its times are whole microseconds.
        Coarse "coarse",
        /// It has too few operators.
        FewOperators "few_operators",
        /// Its operators that only call another one take longer than recording ever does.
        NoWrappers "no_wrappers",
    }
}

/// The recording cost of one event of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    /// The class.
    pub class: Class,
    /// Number of events of the class.
    pub count: u64,
    /// The cost of one event.
    pub cost_ns: i64,
    /// Lower bound.
    pub least_ns: i64,
    /// Upper bound.
    pub most_ns: i64,
    /// How the cost was estimated.
    pub source: Source,
    /// Number of samples of the estimate.
    pub n_samples: u64,
}

/// The recording cost of one event of each class.
#[derive(Debug, Clone, PartialEq)]
pub struct Costs {
    /// A row for each class with events, in the order of [`Class::ALL`].
    pub rows: Vec<Cost>,
    /// The fraction of an operator's cost before its start.
    pub(super) before: f64,
    /// The cost of each node of a launched graph: estimate, lower bound, upper bound.
    pub(super) node_ns: [i64; 3],
}

/// Minimum number of samples for an estimate.
const FEWEST_SAMPLES: usize = 10;

/// Minimum number of different names among operators that only call another one, so that a single
/// exception does not decide.
const FEWEST_NAMES: usize = 3;

/// Maximum cost of recording one event.
const MOST_NS: i64 = 12_000;

/// Percentiles of the self time of operators that call exactly one other: estimate, lower bound,
/// upper bound.
const WRAPPERS: [usize; 3] = [55, 15, 75];

/// Upper and lower bound as a percentage of the largest and smallest percentile.
const MOST_PERCENT: i64 = 120;

const LEAST_PERCENT: i64 = 80;

/// Percentile of the gaps between neighbours, and the percentage of it that is cost.
const GAPS: (usize, i64) = (25, 70);

/// The same for Python functions: the interpreter takes little time between two calls.
const PYTHON_GAPS: (usize, i64) = (10, 80);

/// The fraction of an operator's cost before its start, if no operators show it.
const USUALLY_BEFORE: f64 = 0.75;

/// Returns the cost of a class as a percentage of that of an operator: estimate, lower bound, upper
/// bound.
fn percent_of_operator(class: Class) -> [i64; 3] {
    match class {
        Class::OuterOperator => [100, 100, 120],
        Class::NestedOperator => [100, 100, 100],
        Class::Launch | Class::GraphLaunch => [130, 70, 200],
        Class::Call => [100, 30, 150],
        Class::PythonFunction => [20, 10, 40],
        Class::Annotation => [200, 100, 500],
    }
}

/// Time of a graph launch without a profiler, and additional time per node.
const GRAPH_LAUNCH_NS: i64 = 10_000;

const GRAPH_NODE_NS: i64 = 100;

/// The percentage of the remaining time that is cost: estimate, lower bound, upper bound.
const OF_GRAPH_LAUNCH: [i64; 3] = [80, 30, 100];

/// Default cost of an operator: estimate, lower bound, upper bound.
const USUAL_OPERATOR_NS: [i64; 3] = [2_000, 500, 5_000];

const MICROSECOND_NS: i64 = 1_000;

/// Estimates the recording costs of a trace.
///
/// # Errors
///
/// Returns the reason why the trace does not show its costs.
pub fn costs(
    tables: &Tables,
    launches: &Launches,
    nesting: &Nesting,
) -> Result<Costs, NotEstimated> {
    use Profiler::{Torch, TorchRocm, TorchUnknown, TorchXpu};
    if !matches!(measure::profiler(tables), Torch | TorchRocm | TorchXpu | TorchUnknown) {
        return Err(NotEstimated::Profiler);
    }
    let mut seen = Seen::of(tables, nesting);
    let operator = seen.operator()?;
    if is_coarse(tables) {
        return Err(NotEstimated::Coarse);
    }
    Ok(seen.costs(operator, (tables, launches)))
}

/// Returns default costs, for a trace that does not show its own. If the time of a step is given,
/// they only set the ratio between classes.
pub fn usual_costs(tables: &Tables, launches: &Launches, nesting: &Nesting) -> Costs {
    let [usual_ns, least_ns, most_ns] = USUAL_OPERATOR_NS;
    let source = Source::Operators;
    let operator = Learned { usual_ns, least_ns, most_ns, source, n_samples: 0 };
    Seen::of(tables, nesting).costs((operator, USUALLY_BEFORE), (tables, launches))
}

/// Whether the times of a trace are whole microseconds, which is too coarse for the cost of one
/// event.
fn is_coarse(tables: &Tables) -> bool {
    let events = &tables.events;
    let mut operators = events.ids().filter(|&event| events.kind(event) == EventKind::Operator);
    operators.all(|event| {
        events
            .span(event)
            .is_none_or(|(start, end)| start % MICROSECOND_NS == 0 && end % MICROSECOND_NS == 0)
    })
}

impl Seen {
    /// Returns the costs of all classes, derived from that of an operator.
    fn costs(
        mut self,
        (operator, before): (Learned, f64),
        (tables, launches): (&Tables, &Launches),
    ) -> Costs {
        let python = self.python();
        let rows = Class::ALL.iter().filter(|&&class| self.counts[class as usize] > 0);
        let graphs = Graphs::of(tables, launches);
        let row = |&class: &Class| {
            let count = self.counts[class as usize];
            let learned = match class {
                Class::PythonFunction => python.unwrap_or_else(|| operator.of_class(class)),
                Class::GraphLaunch => operator.of_class(class).with_graphs(&graphs, count),
                _ => operator.of_class(class),
            };
            learned.cost(class, count)
        };
        Costs { rows: rows.map(row).collect(), before, node_ns: graphs.node_ns() }
    }
}

impl Costs {
    /// Returns the cost of one event of a class; `None` if the class has no events.
    pub(super) fn of(&self, class: Class) -> Option<&Cost> {
        self.rows.iter().find(|row| row.class == class)
    }
}

/// A cost with bounds and the source of the estimate.
#[derive(Debug, Clone, Copy)]
struct Learned {
    usual_ns: i64,
    least_ns: i64,
    most_ns: i64,
    source: Source,
    n_samples: usize,
}

impl Learned {
    fn of_class(self, class: Class) -> Self {
        let [usual, least, most] = percent_of_operator(class);
        let is_operator = matches!(class, Class::OuterOperator | Class::NestedOperator);
        Self {
            usual_ns: self.usual_ns * usual / 100,
            least_ns: self.least_ns * least / 100,
            most_ns: self.most_ns * most / 100,
            source: if is_operator { self.source } else { Source::Operators },
            n_samples: self.n_samples,
        }
    }

    /// Adds the mean cost of the nodes of graph launches.
    fn with_graphs(self, graphs: &Graphs, count: u64) -> Self {
        if graphs.n_nodes == 0 {
            return self;
        }
        let count = i64::try_from(count).unwrap_or(i64::MAX).max(1);
        let [usual_ns, least_ns, most_ns] =
            graphs.node_ns().map(|node_ns| node_ns.saturating_mul(graphs.n_nodes) / count);
        Self {
            usual_ns: self.usual_ns + usual_ns,
            least_ns: self.least_ns + least_ns,
            most_ns: self.most_ns + most_ns,
            source: Source::GraphLaunches,
            n_samples: graphs.n_launches,
        }
    }

    fn cost(self, class: Class, count: u64) -> Cost {
        let Self { usual_ns, least_ns, most_ns, source, n_samples } = self;
        let n_samples = n_samples as u64;
        Cost { class, count, cost_ns: usual_ns, least_ns, most_ns, source, n_samples }
    }
}

/// The time of graph launches beyond the usual.
#[derive(Default)]
struct Graphs {
    n_launches: usize,
    n_nodes: i64,
    beyond_ns: i64,
}

impl Graphs {
    fn of(tables: &Tables, launches: &Launches) -> Self {
        let events = &tables.events;
        let roles = tables.roles();
        let launches_graph = |call: &EventId| {
            events.name(*call).is_some_and(|name| roles[name.row()] == ApiRole::GraphLaunch)
        };
        let works = events.ids().filter(|&event| events.kind(event).is_device_work());
        let mut calls: Vec<_> =
            works.filter_map(|work| launches.launcher(work)).filter(launches_graph).collect();
        calls.sort_unstable();
        let mut found = Self::default();
        for nodes in calls.chunk_by(|one, other| one == other) {
            let n_nodes = i64::try_from(nodes.len()).unwrap_or(i64::MAX);
            let usual_ns = GRAPH_LAUNCH_NS + n_nodes * GRAPH_NODE_NS;
            let duration_ns = events.duration_ns(nodes[0]).unwrap_or(0);
            found.n_launches += 1;
            found.n_nodes += n_nodes;
            found.beyond_ns = found.beyond_ns.saturating_add((duration_ns - usual_ns).max(0));
        }
        found
    }

    fn node_ns(&self) -> [i64; 3] {
        OF_GRAPH_LAUNCH.map(|percent| self.beyond_ns / self.n_nodes.max(1) * percent / 100)
    }
}

/// Samples from one pass over the events of threads.
#[derive(Default)]
struct Seen {
    counts: Vec<u64>,
    /// For operators that call exactly one other: self time, and the part of it before the other
    /// began.
    wrappers_ns: Vec<(i64, i64)>,
    n_names: usize,
    /// Gaps between consecutive operators.
    gaps_ns: Vec<i64>,
    /// Gaps between consecutive Python functions.
    python_gaps_ns: Vec<i64>,
}

/// The children of an event.
#[derive(Clone, Copy)]
struct Children {
    n: u32,
    last: EventId,
}

impl Seen {
    fn of(tables: &Tables, nesting: &Nesting) -> Self {
        let events = &tables.events;
        let classes = Classes::of(tables, nesting);
        let mut seen = Self { counts: vec![0; Class::ALL.len()], ..Self::default() };
        let mut children: Vec<Option<Children>> = vec![None; events.len()];
        let mut last_outer: Option<EventId> = None;
        for event in nesting.outside_in() {
            let Some(class) = classes.class(event) else { continue };
            seen.counts[class as usize] += 1;
            let before = match nesting.parent(event) {
                Some(parent) => {
                    let before = children[parent.row()];
                    let n = before.map_or(0, |before| before.n).saturating_add(1);
                    children[parent.row()] = Some(Children { n, last: event });
                    before.map(|before| before.last)
                }
                None => last_outer
                    .replace(event)
                    .filter(|&last| events.lane(last) == events.lane(event)),
            };
            if let Some(before) = before {
                seen.gap(before, event, tables);
            }
        }
        let mut names: Vec<Option<StringId>> = Vec::new();
        for event in nesting.outside_in() {
            if events.kind(event) == EventKind::Operator
                && let Some(Children { n: 1, last }) = children[event.row()]
                && events.kind(last) == EventKind::Operator
                && let (Some((start, end)), Some((first, behind))) =
                    (events.span(event), events.span(last))
            {
                let head_ns = (first - start).max(0);
                seen.wrappers_ns.push((head_ns + (end - behind).max(0), head_ns));
                let name = events.name(event);
                if names.len() < FEWEST_NAMES && !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        seen.n_names = names.len();
        seen
    }

    fn gap(&mut self, before: EventId, event: EventId, tables: &Tables) {
        let events = &tables.events;
        let (Some((_, end)), Some((start, _))) = (events.span(before), events.span(event)) else {
            return;
        };
        let gaps = match (events.kind(before), events.kind(event)) {
            (EventKind::Operator, EventKind::Operator) => &mut self.gaps_ns,
            (EventKind::Python, EventKind::Python) => &mut self.python_gaps_ns,
            _ => return,
        };
        gaps.push((start - end).max(0));
    }

    /// Returns the cost of an operator, and the fraction of it before its start.
    fn operator(&mut self) -> Result<(Learned, f64), NotEstimated> {
        let n_samples = self.wrappers_ns.len();
        if n_samples >= FEWEST_SAMPLES && self.n_names >= FEWEST_NAMES {
            let mut of = |place: usize| percentile(&mut self.wrappers_ns, place).0;
            let [usual_ns, least_ns, most_ns] = WRAPPERS.map(&mut of);
            let learned = Learned {
                usual_ns,
                least_ns: least_ns * LEAST_PERCENT / 100,
                most_ns: most_ns * MOST_PERCENT / 100,
                source: Source::Wrappers,
                n_samples,
            };
            let before = self.before(usual_ns);
            return if usual_ns <= MOST_NS {
                Ok((learned, before))
            } else {
                Err(NotEstimated::NoWrappers)
            };
        }
        let n_samples = self.gaps_ns.len();
        if n_samples < FEWEST_SAMPLES * FEWEST_SAMPLES {
            return Err(NotEstimated::FewOperators);
        }
        let (place, percent) = GAPS;
        let most_ns = percentile(&mut self.gaps_ns, place);
        if most_ns > MOST_NS {
            return Err(NotEstimated::NoWrappers);
        }
        let (usual_ns, least_ns) = (most_ns * percent / 100, most_ns / 4);
        let learned = Learned { usual_ns, least_ns, most_ns, source: Source::Gaps, n_samples };
        Ok((learned, USUALLY_BEFORE))
    }

    /// Returns the fraction of an operator's cost before its start, from operators that take no
    /// longer than usual.
    #[allow(clippy::cast_precision_loss)] // a share
    fn before(&self, usual_ns: i64) -> f64 {
        let usual = self.wrappers_ns.iter().filter(|wrapper| wrapper.0 <= usual_ns);
        let (total_ns, head_ns) =
            usual.fold((0, 0), |sums, wrapper| (sums.0 + wrapper.0, sums.1 + wrapper.1));
        if total_ns == 0 { USUALLY_BEFORE } else { head_ns as f64 / total_ns as f64 }
    }

    fn python(&mut self) -> Option<Learned> {
        let n_samples = self.python_gaps_ns.len();
        if n_samples < FEWEST_SAMPLES * FEWEST_SAMPLES {
            return None;
        }
        let (place, percent) = PYTHON_GAPS;
        let most_ns = percentile(&mut self.python_gaps_ns, place);
        let usual_ns = most_ns * percent / 100;
        let least_ns = most_ns / 4;
        (most_ns <= MOST_NS).then_some(Learned {
            usual_ns,
            least_ns,
            most_ns: most_ns * MOST_PERCENT / 100,
            source: Source::Gaps,
            n_samples,
        })
    }
}

/// Returns the value below which the given percentage of values lie.
fn percentile<T: Ord + Copy>(values: &mut [T], percent: usize) -> T {
    let place = (values.len() - 1) * percent / 100;
    *values.select_nth_unstable(place).1
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // in helpers of tests as in tests
mod tests {
    use super::*;
    use crate::link;
    use crate::progress::silent;
    use crate::read::{Options, read_bytes};
    use crate::stack;
    use std::fmt::Write;

    /// Events of one thread, each a category, a name, and the ns of its start and end.
    fn tables(events: &[(&str, &str, i64, i64)]) -> Tables {
        let us = |ns: i64| format!("{}.{:03}", ns / 1000, ns % 1000);
        let mut text = String::from(r#"{"displayTimeUnit":"ms","traceEvents":["#);
        for (place, &(category, name, start, end)) in events.iter().enumerate() {
            let comma = if place > 0 { "," } else { "" };
            let (ts, dur) = (us(start), us(end - start));
            write!(
                text,
                r#"{comma}{{"ph":"X","cat":"{category}","name":"{name}","pid":1,"tid":1,"ts":{ts},"dur":{dur}}}"#
            )
            .unwrap();
        }
        text.push_str("]}");
        read_bytes(text.as_bytes(), &Options::default()).unwrap()
    }

    /// Operators of three names that each call one other: 1.5 us before it, 0.5 us after it, and
    /// 7.5 us to the next.
    fn wrappers(n: i64) -> Vec<(&'static str, &'static str, i64, i64)> {
        let names = ["aten::t", "aten::to", "aten::linear"];
        let pair = |(number, name): (i64, &'static str)| {
            let begin = 10_000 * number;
            [
                ("cpu_op", name, begin, begin + 2_500),
                ("cpu_op", "aten::empty", begin + 1_500, begin + 2_000),
            ]
        };
        (0..n).zip(names.into_iter().cycle()).flat_map(pair).collect()
    }

    fn of(events: &[(&str, &str, i64, i64)]) -> Result<Costs, NotEstimated> {
        let tables = tables(events);
        let launches = link::launches(&tables, &silent).unwrap();
        costs(&tables, &launches, &stack::nesting(&tables, &silent).unwrap())
    }

    fn bounds(costs: &Costs, class: Class) -> (i64, i64, i64) {
        let cost = costs.of(class).unwrap();
        (cost.least_ns, cost.cost_ns, cost.most_ns)
    }

    #[test]
    fn an_operator_that_only_calls_another_shows_the_cost_of_one_event() {
        let costs = of(&wrappers(12)).unwrap();
        // 1.5 us + 0.5 us; at least 80 % of it, at most 120 %.
        assert_eq!(bounds(&costs, Class::NestedOperator), (1_600, 2_000, 2_400));
        assert_eq!(bounds(&costs, Class::OuterOperator), (1_600, 2_000, 2_880));
        assert!((costs.before - 0.75).abs() < 1e-9);
        assert_eq!(costs.of(Class::OuterOperator).unwrap().count, 12);
    }

    #[test]
    fn calls_and_annotations_cost_in_proportion_to_an_operator() {
        let mut events = wrappers(12);
        events.push(("cuda_runtime", "cudaLaunchKernel", 130_000, 135_500));
        events.push(("cuda_runtime", "cudaEventQuery", 140_000, 141_500));
        events.push(("user_annotation", "forward", 150_000, 160_500));
        let costs = of(&events).unwrap();
        assert_eq!(bounds(&costs, Class::Launch), (1_120, 2_600, 4_800));
        assert_eq!(bounds(&costs, Class::Call), (480, 2_000, 3_600));
        assert_eq!(bounds(&costs, Class::Annotation), (1_600, 4_000, 12_000));
        assert!(costs.of(Class::PythonFunction).is_none());
    }

    #[test]
    fn the_shortest_gaps_between_python_functions_show_their_cost() {
        let mut events = wrappers(12);
        events.extend((0..120).map(|number| {
            let begin = 200_000 + 3_000 * number;
            ("python_function", "f", begin, begin + 2_001)
        }));
        let costs = of(&events).unwrap();
        // Gaps of 999 ns: 80 % of them are cost, at least a quarter, at most 120 %.
        assert_eq!(bounds(&costs, Class::PythonFunction), (249, 799, 1_198));
    }

    #[test]
    fn few_operators_and_whole_microseconds_tell_nothing() {
        assert_eq!(of(&wrappers(9)).unwrap_err(), NotEstimated::FewOperators);
        let whole: Vec<_> = wrappers(12)
            .into_iter()
            .map(|(category, name, start, end)| (category, name, 2 * start, 2 * end))
            .collect();
        assert_eq!(of(&whole).unwrap_err(), NotEstimated::Coarse);
    }
}
