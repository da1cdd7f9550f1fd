//! The recording overhead, and the trace without it.

use std::sync::Arc;

use longpole_core::graph::Graph;
use longpole_core::names::Names;
use longpole_core::overhead::{self, Cost, Costs, Lengths, Misfit, NotEstimated};
use longpole_core::path::{Choice, Scope, Unit};
use pyo3::prelude::*;

use crate::enter::enter;
use crate::trace::Trace;

/// The recording costs as a dictionary; its fields are in `python/longpole/_core.pyi`.
#[derive(IntoPyObject)]
pub(crate) struct OverheadParts {
    not_estimated: Option<&'static str>,
    unit: &'static str,
    classes: Vec<ClassParts>,
    lengths_ns: Option<(i64, i64, i64, i64)>,
    run_percent: i64,
    factor: f64,
    misfit: Option<(&'static str, Option<i64>)>,
}

/// The recording cost of one class of events, as a dictionary.
#[derive(IntoPyObject)]
struct ClassParts {
    event_class: &'static str,
    count: u64,
    cost_ns: i64,
    least_ns: i64,
    most_ns: i64,
    source: &'static str,
    n_samples: u64,
}

impl ClassParts {
    fn of(cost: &Cost) -> Self {
        let &Cost { class, count, cost_ns, least_ns, most_ns, source, n_samples } = cost;
        let (event_class, source) = (class.name(), source.name());
        Self { event_class, count, cost_ns, least_ns, most_ns, source, n_samples }
    }
}

impl OverheadParts {
    fn not_estimated(reason: NotEstimated) -> Self {
        Self {
            not_estimated: Some(reason.name()),
            unit: "step",
            classes: Vec::new(),
            lengths_ns: None,
            run_percent: 0,
            factor: 0.0,
            misfit: None,
        }
    }

    fn of(costs: &Costs, unit: Unit, lengths: Lengths, fitted: Result<f64, Misfit>) -> Self {
        let Lengths { recorded_ns, usual_ns, least_ns, most_ns, run_percent } = lengths;
        let misfit = |misfit| match misfit {
            Misfit::Longer => ("longer", None),
            Misfit::Shorter(least_ns) => ("shorter", Some(least_ns)),
        };
        Self {
            not_estimated: None,
            unit: unit.name(),
            classes: costs.rows.iter().map(ClassParts::of).collect(),
            lengths_ns: Some((recorded_ns, usual_ns, least_ns, most_ns)),
            run_percent,
            factor: fitted.unwrap_or(1.0),
            misfit: fitted.err().map(misfit),
        }
    }
}

#[pymethods]
impl Trace {
    /// Returns the recording cost, and the trace without it if the cost is known. With
    /// `step_time_ns`, the usual step has that length.
    #[pyo3(signature = (step_time_ns, *, data_load, step_name))]
    fn without_profiler(
        &self,
        py: Python<'_>,
        step_time_ns: Option<i64>,
        data_load: Option<&str>,
        step_name: Option<&str>,
    ) -> PyResult<(OverheadParts, Option<Self>)> {
        let found = self.fitted(py, step_time_ns, (data_load, step_name))?;
        let Fitted { costs, graph, scope, by } = match found {
            Ok(found) => found,
            Err(parts) => return Ok((parts, None)),
        };
        let (tables, nesting) = (self.tables(), self.nesting(py)?);
        let factor = by.unwrap_or(1.0);
        self.blocking_in(py, &graph)?;
        let solution = enter(py, None, None, |progress| {
            let graph = Arc::unwrap_or_clone(graph);
            overhead::solution(graph, tables, &nesting, &costs, (&scope, factor), progress)
        })?;
        let parts = OverheadParts::of(&costs, scope.unit, solution.lengths, by);
        let retimed = self.retimed(py, solution, (costs, factor), self.data_load(data_load))?;
        Ok((parts, Some(retimed)))
    }

    /// Returns the recording cost as `without_profiler` does, without the trace at other times.
    #[pyo3(signature = (step_time_ns, *, data_load, step_name))]
    fn recording_cost(
        &self,
        py: Python<'_>,
        step_time_ns: Option<i64>,
        data_load: Option<&str>,
        step_name: Option<&str>,
    ) -> PyResult<OverheadParts> {
        let found = self.fitted(py, step_time_ns, (data_load, step_name))?;
        let Fitted { costs, graph, scope, by } = match found {
            Ok(found) => found,
            Err(parts) => return Ok(parts),
        };
        let (tables, nesting, factor) = (self.tables(), self.nesting(py)?, by.unwrap_or(1.0));
        let lengths = enter(py, None, None, |progress| {
            Lengths::of(&graph, tables, &nesting, &costs, (&scope, factor), progress)
        })?;
        Ok(OverheadParts::of(&costs, scope.unit, lengths, by))
    }
}

/// The recording cost, and what it was learned from.
struct Fitted {
    costs: Costs,
    graph: Arc<Graph>,
    scope: Arc<Scope>,
    /// The factor of the costs with which the usual window has the requested length.
    by: Result<f64, Misfit>,
}

impl Trace {
    /// Returns the recording cost, scaled so that the usual window takes `step_time_ns`; the answer
    /// if it is unknown.
    fn fitted(
        &self,
        py: Python<'_>,
        step_time_ns: Option<i64>,
        (data_load, step_name): (Option<&str>, Option<&str>),
    ) -> PyResult<Result<Fitted, OverheadParts>> {
        let (launches, nesting) = (self.linked(py)?, self.nesting(py)?);
        let tables = self.tables();
        let costs = enter(py, None, None, |_| Ok(overhead::costs(tables, &launches, &nesting)))?;
        let costs = match (costs, step_time_ns) {
            (Ok(costs), None) => costs,
            (Ok(costs), Some(_)) if costs.are_known() => costs,
            (_, Some(_)) => overhead::usual_costs(tables, &launches, &nesting),
            (Err(NotEstimated::Profiler), None) => {
                return Ok(Err(OverheadParts::not_estimated(NotEstimated::Profiler)));
            }
            (Err(reason), None) => {
                return Ok(Err(self.not_estimated(py, reason, (data_load, step_name))?));
            }
        };
        let graph = self.graph_for_now(py, data_load)?;
        let scope = self.scope_of(py, Choice::Usual, step_name)?;
        let fitted = match step_time_ns {
            None => Ok(1.0),
            Some(step_ns) => enter(py, None, None, |progress| {
                overhead::fitted(&graph, tables, &nesting, &costs, (&scope, step_ns), progress)
            })?,
        };
        Ok(Ok(Fitted { costs, graph, scope, by: fitted }))
    }

    /// Returns the length of the usual window with the usual costs at most, for a trace that does
    /// not show its own.
    fn not_estimated(
        &self,
        py: Python<'_>,
        reason: NotEstimated,
        (data_load, step_name): (Option<&str>, Option<&str>),
    ) -> PyResult<OverheadParts> {
        let (launches, nesting, tables) = (self.linked(py)?, self.nesting(py)?, self.tables());
        let costs = overhead::unknown_costs(tables, &launches, &nesting);
        let (graph, scope) =
            (self.graph_for_now(py, data_load)?, self.scope_of(py, Choice::Usual, step_name)?);
        let lengths = enter(py, None, None, |progress| {
            Lengths::of(&graph, tables, &nesting, &costs, (&scope, 1.0), progress)
        })?;
        let known = OverheadParts::of(&costs, scope.unit, lengths, Ok(1.0));
        Ok(OverheadParts { not_estimated: Some(reason.name()), ..known })
    }
}
