//! Collectives of one trace, and of several ranks.

use std::sync::Arc;

use longpole_core::graph::{Certainty, Evidence, Kind};
use longpole_core::ids::{InColumn, NO_ROW};
use longpole_core::measure::{self, CollectiveRow, Collectives, NamedBy};
use longpole_core::path::{self, Ratio, Segment};
use longpole_core::ranks::{
    self, Call, Cause, Clock, FindingKind, Hop, Joint, LegKind, Matching, Method, Profile, Rank,
    Scaling, Solution, TimeClass, Transfer,
};
use longpole_core::vocabulary::{Collective, Names};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;

use crate::arrow::{Columns, Table};
use crate::critical_path::{change, ChangeParts};
use crate::enter::{detached, enter};
use crate::trace::Trace;

/// A row for each collective of a trace; see `longpole.Trace.collectives`.
#[pyfunction]
pub(crate) fn collectives(py: Python<'_>, trace: &Trace) -> PyResult<Table> {
    let (launches, nesting) = (trace.linked(py)?, trace.nesting(py)?);
    let tables = trace.tables();
    let found = enter(py, None, None, |_| Ok(measure::collectives(tables, &launches, &nesting)))?;
    detached(py, || collective_table(&found))
}

fn collective_table(found: &Collectives) -> PyResult<Table> {
    let rows = &found.rows;
    let group = |row: &CollectiveRow| row.group.map(|place| &found.groups[place]);
    let ranks = |row: &CollectiveRow| {
        let ranks = group(row)?.ranks.as_ref()?.iter().map(ToString::to_string);
        Some(ranks.collect::<Vec<_>>().join(" "))
    };
    let ranks: Vec<_> = rows.iter().map(ranks).collect();
    let integers = |value: fn(&CollectiveRow) -> Option<i64>| -> Vec<i64> {
        rows.iter().map(|row| value(row).in_column()).collect()
    };
    let choice = |place: Option<u32>| place.unwrap_or(NO_ROW);
    let operation = |row: &CollectiveRow| choice(row.operation.map(|it| it as u32));
    let sizes = rows.iter().map(|row| group(row).and_then(|it| it.size).in_column());
    Columns::default()
        .rows("event", rows.iter().map(|row| Some(row.event).in_column()).collect())
        .rows("call", rows.iter().map(|row| row.call.in_column()).collect())
        .choices("operation", rows.iter().map(operation), Collective::NAMES)
        .choices(
            "named_by",
            rows.iter().map(|row| choice(row.named_by.map(|it| it as u32))),
            NamedBy::NAMES,
        )
        .strings("group", rows.iter().map(|row| group(row).map(|it| it.name.as_str())))
        .integers("group_size", sizes.collect())
        .strings("group_ranks", ranks.iter().map(Option::as_deref))
        .integers("sequence", integers(|row| row.sequence))
        .strings("call_id", rows.iter().map(|row| row.id.as_deref()))
        .integers("peer", integers(|row| row.peer))
        .integers("in_elements", integers(|row| row.in_elements))
        .integers("out_elements", integers(|row| row.out_elements))
        .strings("data_type", rows.iter().map(|row| row.data_type))
        .integers("bytes", integers(|row| row.bytes))
        .booleans("coalesced", rows.iter().map(|row| row.is_coalesced).collect())
        .into_table()
}

/// A class of time with its factor by step: `(class, name, [(step, numerator, denominator)])`.
type ScalingParts = (String, Option<String>, Vec<(Option<i64>, u64, u64)>);

fn scaling_of((class, name, by_step): ScalingParts) -> PyResult<Scaling> {
    let class = TimeClass::named(&class)
        .ok_or_else(|| PyValueError::new_err(format!("no class of time is called {class:?}")))?;
    let factor = |(step, numerator, denominator)| {
        let ratio = Ratio::new(numerator, denominator);
        ratio.map(|ratio| (step, ratio)).ok_or_else(|| PyValueError::new_err("a factor over 0"))
    };
    let by_step = by_step.into_iter().map(factor).collect::<PyResult<_>>()?;
    Ok(Scaling { class, name, by_step })
}

/// One rank, reduced to what others can feel.
#[pyclass(frozen, module = "longpole._core")]
pub(crate) struct ReducedRank {
    rank: Arc<Rank>,
    profile: Profile,
}

/// Reduces one rank, as observed or after changes; see `longpole.TraceSet`.
#[pyfunction]
#[pyo3(signature = (trace, *, rank=None, data_load=None, step_name=None, changes=None, scalings=None))]
pub(crate) fn reduce_rank(
    py: Python<'_>,
    trace: &Trace,
    rank: Option<i64>,
    data_load: Option<&str>,
    step_name: Option<&str>,
    changes: Option<Vec<ChangeParts>>,
    scalings: Option<Vec<ScalingParts>>,
) -> PyResult<ReducedRank> {
    let n_events = trace.tables().events.len();
    let changes: Vec<_> = changes
        .unwrap_or_default()
        .into_iter()
        .map(|parts| change(parts, n_events))
        .collect::<PyResult<_>>()?;
    let scalings: Vec<_> =
        scalings.unwrap_or_default().into_iter().map(scaling_of).collect::<PyResult<_>>()?;
    let (launches, nesting) = (trace.linked(py)?, trace.nesting(py)?);
    let graph = trace.graph(py, data_load)?;
    let tables = trace.tables();
    enter(py, None, None, |progress| {
        let found = measure::collectives(tables, &launches, &nesting);
        let lags_ns = path::lags_ns(&graph);
        let profile = ranks::profile(tables, &launches, &graph, &lags_ns, step_name)?;
        let lags_ns =
            ranks::scaled_lags_ns(tables, &launches, &graph, &lags_ns, &scalings, step_name)?;
        let lags_ns = path::changed_lags_ns(&graph, tables, &lags_ns, &changes)?;
        let reduced =
            ranks::reduce(tables, &launches, &graph, &found, &lags_ns, step_name, progress)?;
        let reduced = Rank { rank: rank.or(reduced.rank), ..reduced };
        Ok(ReducedRank { rank: Arc::new(reduced), profile })
    })
}

#[pymethods]
impl ReducedRank {
    /// Its number, where the file says so or it was given.
    #[getter]
    fn rank(&self) -> Option<i64> {
        self.rank.rank
    }

    /// How many ranks there are.
    #[getter]
    fn world_size(&self) -> Option<i64> {
        self.rank.world_size
    }

    /// The machine it ran on.
    #[getter]
    fn host(&self) -> Option<&str> {
        self.rank.host.as_deref()
    }

    /// The numbers of its steps.
    #[getter]
    fn steps(&self) -> Vec<i64> {
        self.rank.steps.clone()
    }

    /// The window of its whole trace, by its own clock.
    #[getter]
    fn window(&self) -> (i64, i64) {
        self.rank.window_ns
    }

    /// How many shares in calls it has.
    #[getter]
    fn n_members(&self) -> usize {
        self.rank.members.len()
    }

    /// The bytes that it takes.
    #[getter]
    fn n_bytes(&self) -> usize {
        self.rank.n_bytes()
    }

    /// The time of each class in each step.
    fn step_totals(&self) -> PyResult<Table> {
        let rows = &self.profile.steps;
        Columns::default()
            .integers("step", rows.iter().map(|row| row.step.in_column()).collect())
            .choices("class", rows.iter().map(|row| row.class as u32), TimeClass::NAMES)
            .integers("total_ns", rows.iter().map(|row| row.total_ns).collect())
            .into_table()
    }

    /// The time of each name in each step.
    fn name_totals(&self) -> PyResult<Table> {
        let rows = &self.profile.names;
        Columns::default()
            .integers("step", rows.iter().map(|row| row.step.in_column()).collect())
            .choices("class", rows.iter().map(|row| row.class as u32), TimeClass::NAMES)
            .strings("name", rows.iter().map(|row| Some(row.name.as_str())))
            .strings("shape", rows.iter().map(|row| Some(row.shape.as_str())))
            .integers("count", rows.iter().map(|row| row.count).collect())
            .integers("total_ns", rows.iter().map(|row| row.total_ns).collect())
            .into_table()
    }

    /// Every boundary node: `node`, `time_ns`, `kind`, and its number of sources.
    fn boundary_nodes(&self) -> PyResult<Table> {
        let nodes = &self.rank.reduced.nodes;
        let kind = |place: usize| match nodes[place].kind {
            ranks::BoundaryKind::Arrival(_) => 0,
            ranks::BoundaryKind::End(_) => 1,
            ranks::BoundaryKind::Cut => 2,
            ranks::BoundaryKind::Completion(_) => 3,
        };
        let sources = |place: usize| self.rank.reduced.reaching(place).count();
        let count = |value: usize| i64::try_from(value).unwrap_or(i64::MAX);
        Columns::default()
            .rows("node", nodes.iter().map(|node| node.node).collect())
            .integers("time_ns", nodes.iter().map(|node| node.time_ns).collect())
            .choices("kind", (0..nodes.len()).map(kind), &["arrival", "end", "cut", "completion"])
            .integers("n_sources", (0..nodes.len()).map(|place| count(sources(place))).collect())
            .into_table()
    }
}

/// Several ranks joined: their calls, clocks and the solution of their graph.
#[pyclass(frozen, module = "longpole._core")]
pub(crate) struct JointRanks {
    ranks: Vec<Arc<Rank>>,
    matching: Matching,
    clocks: Vec<Clock>,
    transfers: Vec<Transfer>,
}

/// When a run is over, as observed or after changes.
#[pyclass(frozen, module = "longpole._core")]
pub(crate) struct JointSolution {
    ranks: Vec<Arc<Rank>>,
    matching: Matching,
    clocks: Vec<Clock>,
    solution: Solution,
}

fn references(ranks: &[Arc<Rank>]) -> Vec<&Rank> {
    ranks.iter().map(|rank| &**rank).collect()
}

#[pymethods]
impl JointRanks {
    /// Joins ranks that are given in order of their numbers.
    #[new]
    fn new(py: Python<'_>, ranks: Vec<PyRef<'_, ReducedRank>>) -> PyResult<Self> {
        let ranks: Vec<_> = ranks.iter().map(|rank| Arc::clone(&rank.rank)).collect();
        let found = enter(py, None, None, |_| {
            let these = references(&ranks);
            let matching = ranks::matching(&these);
            let clocks = ranks::clocks(&these, &matching.calls);
            let transfers = ranks::transfers(&these, &matching.calls, &clocks);
            Ok((matching, clocks, transfers))
        })?;
        let (matching, clocks, transfers) = found;
        Ok(Self { ranks, matching, clocks, transfers })
    }

    /// One row for each call.
    fn calls(&self, py: Python<'_>) -> PyResult<Table> {
        detached(py, || self.call_table())
    }

    /// One row for each member of each call, on the common clock.
    fn members(&self, py: Python<'_>) -> PyResult<Table> {
        detached(py, || self.member_table())
    }

    /// One row for each rank.
    fn clocks(&self) -> PyResult<Table> {
        let rows = &self.clocks;
        let column = |value: fn(&Clock) -> i64| rows.iter().map(value).collect::<Vec<_>>();
        let count = |row: &Clock| i64::try_from(row.n_calls).unwrap_or(i64::MAX);
        Columns::default()
            .integers("rank", self.ranks.iter().map(|rank| rank.rank.in_column()).collect())
            .integers("offset_ns", column(|row| row.offset_ns))
            .integers("base_ns", column(|row| row.base_ns))
            .floats("drift", rows.iter().map(|row| row.drift).collect())
            .integers("residual_ns", column(|row| row.residual_ns))
            .integers("worst_residual_ns", column(|row| row.worst_residual_ns))
            .integers("bound_ns", column(|row| row.bound_ns))
            .integers("calls", rows.iter().map(count).collect())
            .booleans("connected", rows.iter().map(|row| row.is_connected).collect())
            .integers("entry_ns", self.entries_ns())
            .into_table()
    }

    /// What ranks disagree about: `(kind, group, sequence, n_calls, ranks, others, values,
    /// events, is_at_edge)`; ranks by place.
    #[allow(clippy::type_complexity)] // a row
    fn findings(
        &self,
    ) -> Vec<(
        &'static str,
        Option<String>,
        Option<i64>,
        i64,
        Vec<u32>,
        Vec<u32>,
        Vec<String>,
        Vec<u32>,
        bool,
    )> {
        let row = |it: &ranks::Finding| {
            (
                FindingKind::name(it.kind),
                it.group.clone(),
                it.sequence,
                it.n_calls,
                it.ranks.clone(),
                it.others.clone(),
                it.values.clone(),
                it.events.clone(),
                it.is_at_edge,
            )
        };
        self.matching.findings.iter().map(row).collect()
    }

    /// Solves the joint graph, with some ranks replaced by what changes made of them, and
    /// with all programs beginning together if so asked.
    #[pyo3(signature = (changed, *, together))]
    fn solve(
        &self,
        py: Python<'_>,
        changed: Vec<(usize, PyRef<'_, ReducedRank>)>,
        together: bool,
    ) -> PyResult<JointSolution> {
        let mut ranks = self.ranks.clone();
        for (place, rank) in &changed {
            let slot = ranks.get_mut(*place);
            *slot.ok_or_else(|| PyIndexError::new_err("no rank has that place"))? =
                Arc::clone(&rank.rank);
        }
        let entries_ns = self.entries_ns();
        let first_ns = entries_ns.iter().copied().min().unwrap_or(0);
        let earlier = |entry_ns: &i64| if together { entry_ns - first_ns } else { 0 };
        let earlier_ns: Vec<_> = entries_ns.iter().map(earlier).collect();
        let solution = enter(py, None, None, |_| {
            let these = references(&ranks);
            let joint = Joint { ranks: &these, calls: &self.matching.calls, clocks: &self.clocks };
            Ok(ranks::solve(joint, &references(&self.ranks), &earlier_ns))
        })?;
        let (matching, clocks) = (self.matching.clone(), self.clocks.clone());
        Ok(JointSolution { ranks, matching, clocks, solution })
    }
}

impl JointRanks {
    fn entries_ns(&self) -> Vec<i64> {
        let ranks = self.ranks.iter().zip(&self.clocks);
        ranks.map(|(rank, clock)| clock.common_ns(rank.entry_ns)).collect()
    }

    fn first_member(&self, call: &Call) -> &ranks::Member {
        let described = call
            .members
            .iter()
            .map(|&(rank, member)| &self.ranks[rank as usize].members[member as usize]);
        let mut described: Vec<_> = described.collect();
        described.sort_by_key(|member| !member.is_recorded);
        described[0]
    }

    fn call_table(&self) -> PyResult<Table> {
        let (calls, transfers) = (&self.matching.calls, &self.transfers);
        let first = |call: &Call| self.first_member(call);
        let operation = |call: &Call| first(call).operation.map_or(NO_ROW, |it| it as u32);
        let integers = |value: &dyn Fn(&Call) -> Option<i64>| -> Vec<i64> {
            calls.iter().map(|call| value(call).in_column()).collect()
        };
        let of_members = |call: &Call, value: fn(&ranks::Member) -> Option<i64>| {
            let members = call.members.iter();
            members
                .filter_map(|&(rank, it)| value(&self.ranks[rank as usize].members[it as usize]))
                .max()
        };
        let count = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        let last =
            |(call, it): (&Call, &Transfer)| it.last.map_or(NO_ROW, |last| call.members[last].0);
        let absent: Vec<_> = calls
            .iter()
            .map(|call| call.absent.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
            .collect();
        Columns::default()
            .rows("call", (0..longpole_core::ids::row_in_column(calls.len())).collect())
            .strings("group", calls.iter().map(|call| call.group.as_deref()))
            .integers("sequence", integers(&|call| call.sequence))
            .integers("step", integers(&|call| of_members(call, |it| it.step)))
            .choices("operation", calls.iter().map(operation), Collective::NAMES)
            .booleans("pair", calls.iter().map(|call| call.is_pair).collect())
            .strings("data_type", calls.iter().map(|call| first(call).data_type))
            .integers("bytes", integers(&|call| of_members(call, |it| it.bytes)))
            .integers("members", integers(&|call| Some(count(call.members.len()))))
            .integers("n_absent", integers(&|call| Some(call.n_absent)))
            .strings("absent", absent.iter().map(|it| Some(it.as_str())))
            .integers("n_missing", integers(&|call| Some(count(call.missing.len()))))
            .choices("matched_by", calls.iter().map(|call| call.method as u32), Method::NAMES)
            .rows("last", calls.iter().zip(transfers).map(last).collect())
            .integers("late_ns", transfers.iter().map(|it| it.late_ns).collect())
            .choices("cause", transfers.iter().map(|it| it.cause as u32), Cause::NAMES)
            .booleans("impossible", transfers.iter().map(|it| it.is_impossible).collect())
            .into_table()
    }

    fn member_table(&self) -> PyResult<Table> {
        let mut places = Vec::new();
        let mut times: [Vec<i64>; 4] = Default::default();
        for (call, (row, transfer)) in self.matching.calls.iter().zip(&self.transfers).enumerate() {
            for &(rank, member) in &row.members {
                places.push((longpole_core::ids::row_in_column(call), rank, member));
            }
            let columns = [
                &transfer.arrivals_ns,
                &transfer.ends_ns,
                &transfer.waits_ns,
                &transfer.transfers_ns,
            ];
            times.iter_mut().zip(columns).for_each(|(to, from)| to.extend(from));
        }
        let [arrivals, ends, waits, transfers] = times;
        let member = |&(_, rank, member): &(u32, u32, u32)| {
            &self.ranks[rank as usize].members[member as usize]
        };
        Columns::default()
            .rows("call", places.iter().map(|it| it.0).collect())
            .rows("place", places.iter().map(|it| it.1).collect())
            .rows("member", places.iter().map(|it| it.2).collect())
            .rows("event", places.iter().map(|it| member(it).event).collect())
            .integers("arrival_ns", arrivals)
            .integers("end_ns", ends)
            .integers("wait_ns", waits)
            .integers("transfer_ns", transfers)
            .integers(
                "in_elements",
                places.iter().map(|it| member(it).in_elements.in_column()).collect(),
            )
            .into_table()
    }
}

#[pymethods]
impl JointSolution {
    /// From the earliest start to the last completion, on the common clock.
    #[getter]
    fn run(&self) -> (i64, i64) {
        self.solution.run_ns
    }

    /// Members that ended before another one of their call arrived.
    #[getter]
    fn n_early_ends(&self) -> u64 {
        self.solution.n_early_ends
    }

    /// Nodes that closed a circle within one instant.
    #[getter]
    fn n_circles(&self) -> u64 {
        self.solution.n_circles
    }

    /// When each rank completes each step, and under none its whole trace.
    fn completions(&self) -> PyResult<Table> {
        let mut rows = Vec::new();
        for (place, rank) in self.ranks.iter().enumerate() {
            for (node, boundary) in rank.reduced.nodes.iter().enumerate() {
                if let ranks::BoundaryKind::Completion(step) = boundary.kind {
                    let place32 = longpole_core::ids::row_in_column(place);
                    rows.push((place32, step, self.solution.time_ns(place, node)));
                }
            }
        }
        Columns::default()
            .rows("place", rows.iter().map(|row| row.0).collect())
            .integers("step", rows.iter().map(|row| row.1.in_column()).collect())
            .integers("time_ns", rows.iter().map(|row| row.2).collect())
            .into_table()
    }

    /// When each boundary node of a rank comes.
    fn node_times(&self, place: usize) -> PyResult<Table> {
        let rank =
            self.ranks.get(place).ok_or_else(|| PyIndexError::new_err("no rank has that place"))?;
        let nodes = &rank.reduced.nodes;
        let times = (0..nodes.len()).map(|node| self.solution.time_ns(place, node)).collect();
        Columns::default()
            .rows("node", nodes.iter().map(|node| node.node).collect())
            .integers("time_ns", times)
            .into_table()
    }

    /// By how much the last member of each call comes later than the median one.
    fn late_ns(&self) -> Vec<i64> {
        ranks::lateness(
            Joint {
                ranks: &references(&self.ranks),
                calls: &self.matching.calls,
                clocks: &self.clocks,
            },
            &self.solution,
        )
    }

    /// The path to the completion of a step, or of the run, from a time on: a row for each
    /// part of it.
    #[pyo3(signature = (step, start_ns))]
    fn legs(&self, py: Python<'_>, step: Option<i64>, start_ns: i64) -> PyResult<Table> {
        let legs = enter(py, None, None, |_| {
            let these = references(&self.ranks);
            let joint = Joint { ranks: &these, calls: &self.matching.calls, clocks: &self.clocks };
            Ok(ranks::route(joint, &self.solution, step, start_ns))
        })?;
        let kinds = &["within", "transfer", "before_first"];
        let _: [LegKind; 3] = [LegKind::Within, LegKind::Transfer, LegKind::BeforeFirst];
        Columns::default()
            .rows("place", legs.iter().map(|leg| leg.rank).collect())
            .choices("kind", legs.iter().map(|leg| leg.kind as u32), kinds)
            .rows("source", legs.iter().map(|leg| leg.source).collect())
            .rows("target", legs.iter().map(|leg| leg.target).collect())
            .integers("start_ns", legs.iter().map(|leg| leg.start_ns).collect())
            .integers("end_ns", legs.iter().map(|leg| leg.end_ns).collect())
            .rows("call", legs.iter().map(|leg| leg.call.unwrap_or(NO_ROW)).collect())
            .into_table()
    }

    /// Brings a time of a rank to the common clock.
    fn common_ns(&self, place: usize, time_ns: i64) -> PyResult<i64> {
        let clock = self.clocks.get(place);
        Ok(clock.ok_or_else(|| PyIndexError::new_err("no rank has that place"))?.common_ns(time_ns))
    }
}

/// The segments of some stretches of the path within one rank, by its own clock: for each
/// stretch `(source, target)`, nodes of its graph.
#[pyfunction]
#[pyo3(signature = (trace, hops, *, data_load=None))]
pub(crate) fn expand_hops(
    py: Python<'_>,
    trace: &Trace,
    hops: Vec<(Option<u32>, u32)>,
    data_load: Option<&str>,
) -> PyResult<Table> {
    let graph = trace.graph(py, data_load)?;
    let n_nodes = graph.nodes.len();
    if hops.iter().any(|&(source, target)| source.unwrap_or(0).max(target) as usize >= n_nodes) {
        return Err(PyIndexError::new_err("the graph has no such node"));
    }
    let rows: Vec<(u32, Segment)> = enter(py, None, None, |_| {
        let expanded = hops.iter().enumerate().flat_map(|(place, &(source, target))| {
            let hop = Hop { source: source.unwrap_or(ranks::ROOT), target };
            let place = longpole_core::ids::row_in_column(place);
            ranks::expand(&graph, hop).into_iter().map(move |segment| (place, segment))
        });
        Ok(expanded.collect())
    })?;
    let tables = trace.tables();
    let name = |segment: &Segment| segment.event.and_then(|it| tables.events.name(it)).in_column();
    let words = |all: Vec<&'static str>| all;
    Columns::default()
        .rows("hop", rows.iter().map(|row| row.0).collect())
        .integers("start_ns", rows.iter().map(|row| row.1.start_ns).collect())
        .integers("end_ns", rows.iter().map(|row| row.1.end_ns).collect())
        .choices(
            "kind",
            rows.iter().map(|row| row.1.kind as u32),
            &words(Kind::ALL.iter().map(|kind| kind.name()).collect()),
        )
        .rows("event", rows.iter().map(|row| row.1.event.in_column()).collect())
        .texts("name", rows.iter().map(|row| name(&row.1)), &tables.strings)
        .choices(
            "evidence",
            rows.iter().map(|row| row.1.evidence as u32),
            &words(Evidence::ALL.iter().map(|it| it.name()).collect()),
        )
        .choices(
            "certainty",
            rows.iter().map(|row| row.1.certainty as u32),
            &words(Certainty::ALL.iter().map(|it| it.name()).collect()),
        )
        .into_table()
}
