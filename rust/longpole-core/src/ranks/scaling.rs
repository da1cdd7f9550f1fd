//! Scales classes of time of a rank, step by step.

use std::collections::HashMap;

use super::completions::Completions;
use super::profile::{Classes, TimeClass};
use crate::error::Result;
use crate::graph::Graph;
use crate::link::Launches;
use crate::path::{REMOVED, Ratio};
use crate::tables::Tables;

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
pub fn scaled_lags_ns(
    tables: &Tables,
    launches: &Launches,
    graph: &Graph,
    lags_ns: &[i64],
    scalings: &[Scaling],
    step_name: Option<&str>,
) -> Result<Vec<i64>> {
    let completions = Completions::of(tables, launches, graph, step_name)?;
    let classes = Classes::of(tables, graph, &completions);
    let mut changed_ns = lags_ns.to_vec();
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
