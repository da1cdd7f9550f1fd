//! Several ranks as one program: their calls, clocks, and the solution of their joint graph.

use std::sync::Arc;

use longpole_core::columns::columns;
use longpole_core::ids::{EventId, row_in_column};
use longpole_core::names::Names;
use longpole_core::path::Segment;
use longpole_core::ranks::{
    self, Call, Clock, FindingKind, Hop, Joint, Matching, Rank, Solution, Transfer,
};
use longpole_core::vocabulary::DataType;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;

use crate::arrow::Table;
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
        let rows = self.ranks.iter().zip(&self.clocks).zip(self.entries_ns());
        Table::of(columns!(rows, |((rank, clock), entry_ns)| Columns {
            rank: rank.rank,
            offset_ns: clock.offset_ns,
            base_ns: clock.base_ns,
            drift: clock.drift,
            residual_ns: clock.residual_ns,
            worst_residual_ns: clock.worst_residual_ns,
            bound_ns: clock.bound_ns,
            edge_bound_ns: clock.edge_bound_ns,
            calls: clock.n_calls,
            connected: clock.is_connected,
            entry_ns,
        }))
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
        let of_members = |call: &Call, value: fn(&ranks::Member) -> Option<i64>| {
            let members = call.members.iter();
            members
                .filter_map(|&(rank, it)| value(&self.ranks[rank as usize].members[it as usize]))
                .max()
        };
        let absent =
            |call: &Call| call.absent.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        let rows = self.matching.calls.iter().zip(&self.transfers).enumerate();
        Table::of(columns!(rows, |(row, (call, transfer))| Columns {
            call: row_in_column(row),
            group: call.group.as_deref(),
            sequence: call.sequence,
            step: of_members(call, |member| member.step.get()),
            operation: self.first_member(call).operation,
            pair: call.is_pair,
            data_type: self.first_member(call).data_type.map(DataType::name),
            bytes: of_members(call, |member| member.bytes.get()),
            members: call.members.len(),
            n_absent: call.n_absent,
            absent: absent(call),
            n_missing: call.missing.len(),
            matched_by: call.method,
            last: transfer.last.map(|last| call.members[last].0),
            late_ns: transfer.late_ns,
            cause: transfer.cause,
            impossible: transfer.is_impossible,
        }))
    }

    fn member_table(&self) -> PyResult<Table> {
        let these = references(&self.ranks);
        let mut rows = Vec::new();
        for (call, row) in self.matching.calls.iter().enumerate() {
            let shares = ranks::shares(row, &these, &self.clocks);
            for (place, &(rank, member)) in row.members.iter().enumerate() {
                let times_ns = [
                    shares.arrivals_ns[place],
                    shares.ends_ns[place],
                    shares.waits_ns[place],
                    shares.transfers_ns[place],
                ];
                rows.push((row_in_column(call), rank, member, times_ns));
            }
        }
        let member = |rank: u32, member: u32| &self.ranks[rank as usize].members[member as usize];
        Table::of(columns!(rows.iter(), |&(call, rank, place, times_ns)| Columns {
            call,
            place: rank,
            member: place,
            event: member(rank, place).event,
            arrival_ns: times_ns[0],
            end_ns: times_ns[1],
            wait_ns: times_ns[2],
            transfer_ns: times_ns[3],
            in_elements: member(rank, place).in_elements.get(),
        }))
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
        Table::of(columns!(rows.iter(), |&(place, step, time_ns)| Columns { place, step, time_ns }))
    }

    /// Returns the time of each boundary node of a rank.
    fn node_times(&self, place: usize) -> PyResult<Table> {
        let rank =
            self.ranks.get(place).ok_or_else(|| PyIndexError::new_err("no rank has that index"))?;
        let nodes = &rank.reduced.nodes;
        let is_member = |node: &ranks::Boundary| {
            matches!(node.kind, ranks::BoundaryKind::Arrival(_) | ranks::BoundaryKind::End(_))
        };
        Table::of(columns!(nodes.iter().enumerate(), |(row, node)| Columns {
            node: node.node,
            of_call: is_member(node),
            time_ns: self.solution.time_ns(place, row),
        }))
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
        Table::of(columns!(legs.iter(), |leg| Columns {
            place: leg.rank,
            kind: leg.kind,
            source: leg.source,
            target: leg.target,
            start_ns: leg.start_ns,
            end_ns: leg.end_ns,
            call: leg.call,
        }))
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
    let name = |event: Option<EventId>| event.and_then(|event| tables.events.name(event));
    let columns = columns!(rows.iter(), |(hop, segment)| Columns {
        hop: *hop,
        start_ns: clock.common_ns(segment.start_ns),
        end_ns: clock.common_ns(segment.end_ns),
        kind: segment.kind,
        event: segment.event,
        name: name(segment.event),
        evidence: segment.evidence,
        certainty: segment.certainty,
    });
    Table::with_texts(columns, &tables.strings)
}
