//! Several ranks as one program: their calls, clocks, and the solution of their joint graph.

use std::sync::Arc;

use longpole_core::ids::{InColumn, NO_ROW, row_in_column};
use longpole_core::names::Names;
use longpole_core::path::Segment;
use longpole_core::ranks::{
    self, Call, Clock, FindingKind, Hop, Joint, Matching, Rank, Solution, Transfer,
};
use longpole_core::vocabulary::DataType;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;

use crate::arrow::{Columns, Table};
use crate::enter::{detached, enter};
use crate::ranks::ReducedRank;
use crate::trace::Trace;

/// Several ranks with their calls, clocks and joint graph.
#[pyclass(frozen, module = "longpole._core")]
pub(crate) struct JointRanks {
    ranks: Vec<Arc<Rank>>,
    matching: Arc<Matching>,
    clocks: Vec<Clock>,
    transfers: Vec<Transfer>,
}

/// The times of a run, as observed or after changes.
#[pyclass(frozen, module = "longpole._core")]
pub(crate) struct JointSolution {
    ranks: Vec<Arc<Rank>>,
    matching: Arc<Matching>,
    clocks: Vec<Clock>,
    solution: Solution,
}

fn references(ranks: &[Arc<Rank>]) -> Vec<&Rank> {
    ranks.iter().map(|rank| &**rank).collect()
}

#[pymethods]
impl JointRanks {
    /// Joins ranks, given in order of their numbers.
    #[new]
    #[allow(clippy::needless_pass_by_value)] // from Python
    fn new(py: Python<'_>, ranks: Vec<PyRef<'_, ReducedRank>>) -> PyResult<Self> {
        let ranks: Vec<_> = ranks.iter().map(|rank| Arc::clone(&rank.rank)).collect();
        let found = enter(py, None, None, |_| {
            let these = references(&ranks);
            let matching = ranks::matching(&these);
            let clocks = ranks::clocks(&these, &matching.calls);
            let transfers = ranks::transfers(&these, &matching.calls, &clocks);
            Ok((Arc::new(matching), clocks, transfers))
        })?;
        let (matching, clocks, transfers) = found;
        Ok(Self { ranks, matching, clocks, transfers })
    }

    /// Returns one row for each call.
    fn calls(&self, py: Python<'_>) -> PyResult<Table> {
        detached(py, || self.call_table())
    }

    /// Returns one row for each member of each call, in common time.
    fn members(&self, py: Python<'_>) -> PyResult<Table> {
        detached(py, || self.member_table())
    }

    /// Returns one row for each rank.
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
            .integers("edge_bound_ns", column(|row| row.edge_bound_ns))
            .integers("calls", rows.iter().map(count).collect())
            .booleans("connected", rows.iter().map(|row| row.is_connected).collect())
            .integers("entry_ns", self.entries_ns())
            .into_table()
    }

    /// Returns disagreements between ranks: `(kind, group, sequence, n_calls, ranks, others,
    /// values, events, is_at_edge)`; ranks by index.
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

    /// Solves the joint graph, with some ranks replaced by changed ones, and optionally with all
    /// programs starting together.
    #[allow(clippy::needless_pass_by_value)] // from Python
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
            *slot.ok_or_else(|| PyIndexError::new_err("no rank has that index"))? =
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
        let (matching, clocks) = (Arc::clone(&self.matching), self.clocks.clone());
        Ok(JointSolution { ranks, matching, clocks, solution })
    }
}

impl JointRanks {
    pub(crate) fn fitted(&self) -> &[Clock] {
        &self.clocks
    }

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
            .rows("call", (0..row_in_column(calls.len())).collect())
            .strings("group", calls.iter().map(|call| call.group.as_deref()))
            .integers("sequence", integers(&|call| call.sequence))
            .integers("step", integers(&|call| of_members(call, |it| it.step.get())))
            .known_words("operation", calls.iter().map(|call| first(call).operation))
            .booleans("pair", calls.iter().map(|call| call.is_pair).collect())
            .strings(
                "data_type",
                calls.iter().map(|call| first(call).data_type.map(DataType::name)),
            )
            .integers("bytes", integers(&|call| of_members(call, |it| it.bytes.get())))
            .integers("members", integers(&|call| Some(count(call.members.len()))))
            .integers("n_absent", integers(&|call| Some(call.n_absent)))
            .strings("absent", absent.iter().map(|it| Some(it.as_str())))
            .integers("n_missing", integers(&|call| Some(count(call.missing.len()))))
            .words("matched_by", calls.iter().map(|call| call.method))
            .rows("last", calls.iter().zip(transfers).map(last).collect())
            .integers("late_ns", transfers.iter().map(|it| it.late_ns).collect())
            .words("cause", transfers.iter().map(|it| it.cause))
            .booleans("impossible", transfers.iter().map(|it| it.is_impossible).collect())
            .into_table()
    }

    fn member_table(&self) -> PyResult<Table> {
        let mut places = Vec::new();
        let mut times: [Vec<i64>; 4] = Default::default();
        let these = references(&self.ranks);
        for (call, row) in self.matching.calls.iter().enumerate() {
            let shares = ranks::shares(row, &these, &self.clocks);
            for &(rank, member) in &row.members {
                places.push((row_in_column(call), rank, member));
            }
            let columns =
                [shares.arrivals_ns, shares.ends_ns, shares.waits_ns, shares.transfers_ns];
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
                places.iter().map(|it| member(it).in_elements.get().in_column()).collect(),
            )
            .into_table()
    }
}

#[pymethods]
impl JointSolution {
    /// Returns from the earliest start to the last completion, in common time.
    #[getter]
    fn run(&self) -> (i64, i64) {
        self.solution.run_ns
    }

    /// Returns the number of members that ended before another member of their call arrived.
    #[getter]
    fn n_early_ends(&self) -> u64 {
        self.solution.n_early_ends
    }

    /// Returns when each rank completes each step; step `None` is its whole trace.
    fn completions(&self) -> PyResult<Table> {
        let mut rows = Vec::new();
        for (place, rank) in self.ranks.iter().enumerate() {
            for (node, boundary) in rank.reduced.nodes.iter().enumerate() {
                if let ranks::BoundaryKind::Completion(step) = boundary.kind {
                    let place32 = row_in_column(place);
                    rows.push((place32, rank.step(step), self.solution.time_ns(place, node)));
                }
            }
        }
        Columns::default()
            .rows("place", rows.iter().map(|row| row.0).collect())
            .integers("step", rows.iter().map(|row| row.1.in_column()).collect())
            .integers("time_ns", rows.iter().map(|row| row.2).collect())
            .into_table()
    }

    /// Returns the time of each boundary node of a rank.
    fn node_times(&self, place: usize) -> PyResult<Table> {
        let rank =
            self.ranks.get(place).ok_or_else(|| PyIndexError::new_err("no rank has that index"))?;
        let nodes = &rank.reduced.nodes;
        let times = (0..nodes.len()).map(|node| self.solution.time_ns(place, node)).collect();
        let is_member = |node: &ranks::Boundary| {
            matches!(node.kind, ranks::BoundaryKind::Arrival(_) | ranks::BoundaryKind::End(_))
        };
        Columns::default()
            .rows("node", nodes.iter().map(|node| node.node).collect())
            .booleans("of_call", nodes.iter().map(is_member).collect())
            .integers("time_ns", times)
            .into_table()
    }

    /// Returns how much later the last member of each call arrives than the median one.
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

    /// Returns the path to the completion of a step, or of the run, back to `start_ns`: one row for
    /// each part.
    #[pyo3(signature = (step, start_ns))]
    fn legs(&self, py: Python<'_>, step: Option<i64>, start_ns: i64) -> PyResult<Table> {
        let legs = enter(py, None, None, |_| {
            let these = references(&self.ranks);
            let joint = Joint { ranks: &these, calls: &self.matching.calls, clocks: &self.clocks };
            Ok(ranks::route(joint, &self.solution, step, start_ns))
        })?;
        Columns::default()
            .rows("place", legs.iter().map(|leg| leg.rank).collect())
            .words("kind", legs.iter().map(|leg| leg.kind))
            .rows("source", legs.iter().map(|leg| leg.source).collect())
            .rows("target", legs.iter().map(|leg| leg.target).collect())
            .integers("start_ns", legs.iter().map(|leg| leg.start_ns).collect())
            .integers("end_ns", legs.iter().map(|leg| leg.end_ns).collect())
            .rows("call", legs.iter().map(|leg| leg.call.unwrap_or(NO_ROW)).collect())
            .into_table()
    }

    /// Converts a time of a rank to common time.
    fn common_ns(&self, place: usize, time_ns: i64) -> PyResult<i64> {
        Ok(self.clock_at(place)?.common_ns(time_ns))
    }

    /// Returns the conversion of a rank's clock to common time: offset, drift and origin.
    fn clock(&self, place: usize) -> PyResult<RankClock> {
        let clock = self.clock_at(place)?;
        Ok((clock.offset_ns, clock.drift, clock.origin_ns))
    }
}

impl JointSolution {
    fn clock_at(&self, place: usize) -> PyResult<&Clock> {
        self.clocks.get(place).ok_or_else(|| PyIndexError::new_err("no rank has that index"))
    }
}

/// The offset, drift and origin of a [`Clock`], in a form that can be sent to other processes.
type RankClock = (i64, f64, i64);

/// Returns the segments of some parts of the path within one rank, in common time. Each part is
/// `(source, target)`, two nodes of its graph.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // from Python
#[pyo3(signature = (trace, hops, clock, *, data_load=None))]
pub(crate) fn expand_hops(
    py: Python<'_>,
    trace: &Trace,
    hops: Vec<(Option<u32>, u32)>,
    clock: RankClock,
    data_load: Option<&str>,
) -> PyResult<Table> {
    let (offset_ns, drift, origin_ns) = clock;
    let clock = Clock { offset_ns, drift, origin_ns, ..Clock::default() };
    let graph = trace.graph(py, data_load)?;
    let n_nodes = graph.nodes.len();
    if hops.iter().any(|&(source, target)| source.unwrap_or(0).max(target) as usize >= n_nodes) {
        return Err(PyIndexError::new_err("the graph has no such node"));
    }
    let rows: Vec<(u32, Segment)> = enter(py, None, None, |_| {
        let expanded = hops.iter().enumerate().flat_map(|(place, &(source, target))| {
            let hop = Hop { source: source.unwrap_or(ranks::ROOT), target };
            let place = row_in_column(place);
            ranks::expand(&graph, hop).into_iter().map(move |segment| (place, segment))
        });
        Ok(expanded.collect())
    })?;
    let tables = trace.tables();
    let name = |segment: &Segment| segment.event.and_then(|it| tables.events.name(it)).in_column();
    Columns::default()
        .rows("hop", rows.iter().map(|row| row.0).collect())
        .integers("start_ns", rows.iter().map(|row| clock.common_ns(row.1.start_ns)).collect())
        .integers("end_ns", rows.iter().map(|row| clock.common_ns(row.1.end_ns)).collect())
        .words("kind", rows.iter().map(|row| row.1.kind))
        .rows("event", rows.iter().map(|row| row.1.event.in_column()).collect())
        .texts("name", rows.iter().map(|row| name(&row.1)), &tables.strings)
        .words("evidence", rows.iter().map(|row| row.1.evidence))
        .words("certainty", rows.iter().map(|row| row.1.certainty))
        .into_table()
}
