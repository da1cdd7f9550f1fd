//! One rank, reduced to the nodes that affect other ranks.

use std::sync::Arc;

use longpole_core::columns::{Record, columns};
use longpole_core::ids::row_in_column;
use longpole_core::measure::{self, Group};
use longpole_core::names::Names;
use longpole_core::path::{self, Ratio};
use longpole_core::ranks::{
    self, Channel, Maybe, Member, Profile, Rank, Scaling, StepTotal, TimeClass,
};
use longpole_core::vocabulary::{self, Collective, DataType};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arrow::Table;
use crate::critical_path::{ChangeParts, change};
use crate::enter::enter;
use crate::trace::Trace;

/// A class of time with its factor by step: `(class, name, [(step, numerator, denominator)])`.
type ScalingParts = (String, Option<String>, Vec<(Option<i64>, u64, u64)>);

fn scaling_of((class, name, by_step): ScalingParts) -> PyResult<Scaling> {
    let class = TimeClass::named(&class)
        .ok_or_else(|| PyValueError::new_err(format!("unknown class of time {class:?}")))?;
    let factor = |(step, numerator, denominator)| {
        let ratio = Ratio::new(numerator, denominator);
        ratio
            .map(|ratio| (step, ratio))
            .ok_or_else(|| PyValueError::new_err("a factor must be above 0"))
    };
    let by_step = by_step.into_iter().map(factor).collect::<PyResult<_>>()?;
    Ok(Scaling { class, name, by_step })
}

/// One rank, reduced to the nodes that affect other ranks.
#[pyclass(frozen, module = "longpole._core")]
pub(crate) struct ReducedRank {
    pub(crate) rank: Arc<Rank>,
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
        let latencies_ns = path::latencies_ns(&graph);
        let profile = ranks::profile(tables, &launches, &graph, &latencies_ns, step_name)?;
        let latencies_ns = ranks::scaled_latencies_ns(
            tables,
            &launches,
            &graph,
            &latencies_ns,
            &scalings,
            step_name,
        )?;
        let latencies_ns =
            path::changed_latencies_ns(&graph, tables, &latencies_ns, &changes, None)?;
        let reduced =
            ranks::reduce(tables, &launches, &graph, &found, &latencies_ns, step_name, progress)?;
        let reduced = Rank { rank: rank.or(reduced.rank), ..reduced };
        Ok(ReducedRank { rank: Arc::new(reduced), profile })
    })
}

/// A process group: `(name, description, size, ranks)`.
type GroupParts = (String, Option<String>, Option<i64>, Option<Vec<i64>>);

/// A member of a call: `(operation, group, sequence, peer, elements, data type, bytes)`.
type CallParts =
    (Option<String>, u32, Option<i64>, Option<i64>, Option<i64>, Option<String>, Option<i64>);

/// Creates a rank from its calls in order, without times.
#[pyfunction]
#[pyo3(signature = (rank, *, world_size, groups, calls))]
pub(crate) fn rank_of_calls(
    rank: Option<i64>,
    world_size: Option<i64>,
    groups: Vec<GroupParts>,
    calls: Vec<CallParts>,
) -> ReducedRank {
    let group = |(name, description, size, ranks)| Group { name, description, size, ranks };
    let member = |(place, parts): (usize, CallParts)| {
        let (operation, group, sequence, peer, elements, data_type, bytes) = parts;
        Member {
            event: row_in_column(place),
            start_ns: 0,
            end_ns: 0,
            step: Maybe::NONE,
            sequence: sequence.into(),
            id: 0,
            peer: peer.into(),
            in_elements: elements.into(),
            bytes: bytes.into(),
            channel: Channel::Group(group),
            operation: operation.as_deref().and_then(Collective::of_name),
            is_recorded: true,
            data_type: data_type
                .as_deref()
                .and_then(vocabulary::data_type)
                .and_then(|(it, _)| DataType::named(it)),
        }
    };
    let rank = Rank {
        rank,
        world_size,
        groups: groups.into_iter().map(group).collect(),
        members: calls.into_iter().enumerate().map(member).collect(),
        ..Rank::default()
    };
    ReducedRank { rank: Arc::new(rank), profile: Profile::default() }
}

/// Restores a reduced rank from the bytes of `ReducedRank.pack`, in this process or another.
#[pyfunction]
pub(crate) fn unpack_rank(py: Python<'_>, packed: &[u8]) -> PyResult<ReducedRank> {
    let found = enter(py, None, None, |_| Ok(ranks::unpacked(packed)))?;
    let (rank, profile) = found.ok_or_else(|| {
        PyValueError::new_err("these bytes are not a rank that this version of longpole reduced")
    })?;
    Ok(ReducedRank { rank: Arc::new(rank), profile })
}

#[pymethods]
impl ReducedRank {
    /// Serializes the rank for another process of the same version.
    fn pack<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = enter(py, None, None, |_| Ok(ranks::packed(&self.rank, &self.profile)))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Returns the rank number, if it is in the file or was given.
    #[getter]
    fn rank(&self) -> Option<i64> {
        self.rank.rank
    }

    /// Returns the world size.
    #[getter]
    fn world_size(&self) -> Option<i64> {
        self.rank.world_size
    }

    /// Returns the host name.
    #[getter]
    fn host(&self) -> Option<&str> {
        self.rank.host.as_deref()
    }

    /// Returns the numbers of its steps.
    #[getter]
    fn steps(&self) -> Vec<i64> {
        self.rank.steps.clone()
    }

    /// Returns the window of its whole trace, by its own clock.
    #[getter]
    fn window(&self) -> (i64, i64) {
        self.rank.window_ns
    }

    /// Returns the number of its members of calls.
    #[getter]
    fn n_members(&self) -> usize {
        self.rank.members.len()
    }

    /// Returns the size in bytes.
    #[getter]
    fn n_bytes(&self) -> usize {
        self.rank.n_bytes()
    }

    /// Returns the time of each class in each step.
    fn step_totals(&self) -> PyResult<Table> {
        Table::of(StepTotal::columns(&self.profile.steps))
    }

    /// Returns the total time of each name, for the names with the longest time.
    fn name_totals(&self) -> PyResult<Table> {
        Table::of(columns!(self.profile.names.iter(), |row| Columns {
            class: row.class,
            name: row.name.as_str(),
            shape: row.shape.as_str(),
            count: row.count,
            total_ns: row.total_ns,
        }))
    }

    /// Returns every boundary node: `node`, `time_ns`, `kind`, and its number of sources.
    fn boundary_nodes(&self) -> PyResult<Table> {
        let nodes = &self.rank.reduced.nodes;
        let kind = |node: &ranks::Boundary| match node.kind {
            ranks::BoundaryKind::Arrival(_) => "arrival",
            ranks::BoundaryKind::End(_) => "end",
            ranks::BoundaryKind::Cut => "cut",
            ranks::BoundaryKind::Completion(_) => "completion",
        };
        Table::of(columns!(nodes.iter().enumerate(), |(place, node)| Columns {
            node: node.node,
            time_ns: node.time_ns,
            kind: kind(node),
            n_sources: self.rank.reduced.reaching(place).count(),
        }))
    }
}
