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
        /// From the time between two launches that follow one another.
        Launches "launches",
        /// From the cost of an operator and usual ratios.
        Operators "operators",
        /// From the time of graph launches beyond the usual.
        GraphLaunches "graph_launches",
        /// Not estimated: nothing is subtracted, and the upper bound is the usual one.
        Unknown "unknown",
    }
}

named! {
    /// Why a trace does not show its recording costs.
    NotEstimated {
        /// It was recorded by another profiler.
        Profiler "profiler",
        /// It has too few operators.
        FewOperators "few_operators",
        /// Its operators that only call another one take longer than recording ever does.
        NoWrappers "no_wrappers",
        /// Its times are whole microseconds, too coarse for the cost of one event.
        Coarse "coarse",
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

/// Percentile of the gaps between neighbours, and the percentages of it that are cost: estimate,
/// lower bound, upper bound.
const GAPS: (usize, [i64; 3]) = (25, [70, 35, 100]);

/// The same for Python functions: the interpreter takes little time between two calls.
const PYTHON_GAPS: (usize, [i64; 3]) = (10, [80, 25, 120]);

/// The same for launches. The gap between two launches holds the cost outside of them, which is
/// six tenths of the whole.
const LAUNCH_GAPS: (usize, [i64; 3]) = (25, [150, 80, 200]);

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

/// Returns the bounds of the cost of a class as a percentage of the estimate, if all classes are at
/// their bounds: the steps of recorded programs that were timed without the profiler need 65 to
/// 124 % of all estimated costs.
fn percent_together(class: Class) -> [i64; 2] {
    match class {
        Class::OuterOperator | Class::NestedOperator => [65, 130],
        Class::Launch | Class::GraphLaunch => [50, 150],
        Class::Call => [32, 170],
        Class::PythonFunction => [31, 150],
        Class::Annotation => [32, 260],
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

/// Estimates the recording costs of a trace. A class whose cost the trace does not show has
/// [`Source::Unknown`], and nothing of it is subtracted.
///
/// # Errors
///
/// Returns the reason why the trace does not show the cost of any class.
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
    let operator = seen.operator();
    let costs = seen.costs(operator.unwrap_or(UNKNOWN), (tables, launches));
    let is_known = costs.rows.iter().any(|row| row.source != Source::Unknown);
    match operator {
        Err(reason) if !is_known => Err(reason),
        _ if is_coarse(tables) => Err(NotEstimated::Coarse),
        _ => Ok(costs),
    }
}

/// Returns default costs, for a trace that does not show its own. If the time of a step is given,
/// they only set the ratio between classes.
pub fn usual_costs(tables: &Tables, launches: &Launches, nesting: &Nesting) -> Costs {
    let [usual_ns, least_ns, most_ns] = USUAL_OPERATOR_NS;
    let source = Source::Operators;
    let operator = Learned { usual_ns, least_ns, most_ns, source, n_samples: 0 };
    Seen::of(tables, nesting).costs((operator, USUALLY_BEFORE), (tables, launches))
}

/// Returns the costs of a trace that shows none of them: nothing is subtracted, and each upper bound
/// is the usual one.
pub fn unknown_costs(tables: &Tables, launches: &Launches, nesting: &Nesting) -> Costs {
    Seen::of(tables, nesting).costs(UNKNOWN, (tables, launches))
}

/// An operator whose cost the trace does not show, and the fraction of it before its start.
const UNKNOWN: (Learned, f64) = (
    Learned {
        usual_ns: 0,
        least_ns: 0,
        most_ns: USUAL_OPERATOR_NS[2],
        source: Source::Unknown,
        n_samples: 0,
    },
    USUALLY_BEFORE,
);

impl Seen {
    /// Returns the costs of all classes, most of them derived from that of an operator.
    fn costs(
        mut self,
        (operator, before): (Learned, f64),
        (tables, launches): (&Tables, &Launches),
    ) -> Costs {
        let python = self.python();
        let is_known = operator.source != Source::Unknown;
        let launch = if is_known { None } else { self.launch() };
        let launch = launch.unwrap_or_else(|| operator.of_class(Class::Launch));
        let rows = Class::ALL.iter().filter(|&&class| self.counts[class as usize] > 0);
        let graphs = Graphs::of(tables, launches);
        let row = |&class: &Class| {
            let count = self.counts[class as usize];
            let learned = match class {
                Class::PythonFunction => python.unwrap_or_else(|| operator.of_class(class)),
                Class::Launch => launch,
                Class::GraphLaunch => launch.with_graphs(&graphs, count),
                _ => operator.of_class(class),
            };
            learned.cost(class, count)
        };
        Costs { rows: rows.map(row).collect(), before, node_ns: graphs.node_ns() }
    }
}

impl Costs {
    /// Whether the trace shows the cost of each class.
    #[must_use]
    pub fn are_known(&self) -> bool {
        self.rows.iter().all(|row| row.source != Source::Unknown)
    }

    /// Returns the costs with bounds within which all of them lie at once. Those of each class are
    /// wider.
    pub(super) fn together(&self) -> Self {
        let bounded = |row: &Cost| {
            let [least_ns, most_ns] =
                percent_together(row.class).map(|percent| row.cost_ns * percent / 100);
            if row.source == Source::Unknown { *row } else { Cost { least_ns, most_ns, ..*row } }
        };
        Self { rows: self.rows.iter().map(bounded).collect(), ..*self }
    }

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
        let is_own = is_operator || self.source == Source::Unknown;
        Self {
            usual_ns: self.usual_ns * usual / 100,
            least_ns: self.least_ns * least / 100,
            most_ns: self.most_ns * most / 100,
            source: if is_own { self.source } else { Source::Operators },
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
    /// Gaps between consecutive launches.
    launch_gaps_ns: Vec<i64>,
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
                seen.gap(before, event, (tables, &classes));
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

    fn gap(&mut self, before: EventId, event: EventId, (tables, classes): (&Tables, &Classes)) {
        use Class::{Launch, NestedOperator, OuterOperator, PythonFunction};
        let (Some((_, end)), Some((start, _))) =
            (tables.events.span(before), tables.events.span(event))
        else {
            return;
        };
        let gaps = match (classes.class(before), classes.class(event)) {
            (Some(OuterOperator), Some(OuterOperator))
            | (Some(NestedOperator), Some(NestedOperator)) => &mut self.gaps_ns,
            (Some(PythonFunction), Some(PythonFunction)) => &mut self.python_gaps_ns,
            (Some(Launch), Some(Launch)) => &mut self.launch_gaps_ns,
            _ => return,
        };
        gaps.push((start - end).max(0));
    }

    /// Returns the cost of an operator, and the fraction of it before its start.
    fn operator(&mut self) -> Result<(Learned, f64), NotEstimated> {
        let n_samples = self.wrappers_ns.len();
        if n_samples >= FEWEST_SAMPLES && self.n_names >= FEWEST_NAMES {
            let mut self_ns: Vec<_> = self.wrappers_ns.iter().map(|wrapper| wrapper.0).collect();
            let [usual_ns, least_ns, most_ns] =
                WRAPPERS.map(|place| percentile(&mut self_ns, place));
            let learned = Learned {
                usual_ns,
                least_ns: least_ns * LEAST_PERCENT / 100,
                most_ns: most_ns * MOST_PERCENT / 100,
                source: Source::Wrappers,
                n_samples,
            };
            let before = self.before(usual_ns);
            let is_possible = usual_ns <= MOST_NS;
            return is_possible.then_some((learned, before)).ok_or(NotEstimated::NoWrappers);
        }
        if self.gaps_ns.len() < FEWEST_SAMPLES * FEWEST_SAMPLES {
            return Err(NotEstimated::FewOperators);
        }
        let learned = learned(&mut self.gaps_ns, GAPS, Source::Gaps);
        learned.map(|learned| (learned, USUALLY_BEFORE)).ok_or(NotEstimated::NoWrappers)
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
        let is_enough = self.python_gaps_ns.len() >= FEWEST_SAMPLES * FEWEST_SAMPLES;
        is_enough.then(|| learned(&mut self.python_gaps_ns, PYTHON_GAPS, Source::Gaps))?
    }

    fn launch(&mut self) -> Option<Learned> {
        let is_enough = self.launch_gaps_ns.len() >= FEWEST_SAMPLES;
        is_enough.then(|| learned(&mut self.launch_gaps_ns, LAUNCH_GAPS, Source::Launches))?
    }
}

/// Returns the cost that the shortest gaps show; `None` if they are longer than recording ever
/// takes.
fn learned(
    samples_ns: &mut [i64],
    (place, percents): (usize, [i64; 3]),
    source: Source,
) -> Option<Learned> {
    let gap_ns = percentile(samples_ns, place);
    let [usual_ns, least_ns, most_ns] = percents.map(|percent| gap_ns * percent / 100);
    let n_samples = samples_ns.len();
    (gap_ns <= MOST_NS).then_some(Learned { usual_ns, least_ns, most_ns, source, n_samples })
}

/// Whether the times of a trace are whole microseconds.
fn is_coarse(tables: &Tables) -> bool {
    let events = &tables.events;
    let mut on_host = events.ids().filter(|&event| {
        let kind = events.kind(event);
        kind == EventKind::Operator || kind.is_call()
    });
    on_host.all(|event| {
        events
            .span(event)
            .is_none_or(|(start, end)| start % MICROSECOND_NS == 0 && end % MICROSECOND_NS == 0)
    })
}

/// Returns the value below which the given percentage of values lie.
fn percentile(values: &mut [i64], percent: usize) -> i64 {
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
        assert_eq!(bounds(&costs.together(), Class::OuterOperator), (1_300, 2_000, 2_600));
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
    fn launches_that_follow_one_another_show_their_cost_without_operators() {
        let launches: Vec<_> = (0..20)
            .map(|number| {
                let begin = 7_000 * number;
                ("cuda_runtime", "cudaLaunchKernel", begin, begin + 5_001)
            })
            .collect();
        let costs = of(&launches).unwrap();
        // Gaps of 1.999 us are six tenths of the cost, less what the program does in them.
        assert_eq!(bounds(&costs, Class::Launch), (1_599, 2_998, 3_998));
        assert_eq!(costs.of(Class::Launch).unwrap().source, Source::Launches);
    }

    #[test]
    fn a_class_that_nothing_shows_is_not_subtracted() {
        let mut events: Vec<_> = (0..20)
            .map(|number| {
                let begin = 7_000 * number;
                ("cuda_runtime", "cudaLaunchKernel", begin, begin + 5_001)
            })
            .collect();
        events.push(("cpu_op", "aten::mm", 150_000, 160_500));
        let costs = of(&events).unwrap();
        assert_eq!(bounds(&costs, Class::OuterOperator), (0, 0, 6_000));
        assert_eq!(costs.of(Class::OuterOperator).unwrap().source, Source::Unknown);
    }

    #[test]
    fn whole_microseconds_tell_no_cost() {
        let whole = |(category, name, start, end): (&'static str, &'static str, i64, i64)| {
            (category, name, start / 1_000 * 1_000, end / 1_000 * 1_000)
        };
        let events: Vec<_> = wrappers(300).into_iter().map(whole).collect();
        assert_eq!(of(&events).unwrap_err(), NotEstimated::Coarse);
    }

    #[test]
    fn few_operators_tell_nothing() {
        assert_eq!(of(&wrappers(9)).unwrap_err(), NotEstimated::FewOperators);
    }
}
