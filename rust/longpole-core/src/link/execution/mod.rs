//! Links the nodes of an execution trace to the CPU events of a Kineto trace.
//!
//! If both observers ran together, both files contain the record function ids of operators. Older
//! files share no ids. In these, the order of names on each thread is compared: an execution trace
//! of one iteration matches the iterations of the Kineto trace that ran the same operators. A few
//! files from 2023 have the record function id as external id.
//!
//! Names are compared to distinguish real matches from ids that agree by chance: a pair of files
//! whose names disagree is rejected with figures.

mod fits;
mod model;
mod numbers;
mod windows;

use fits::Names;
use model::pids_differ;
pub use model::{ExecutionLink, Iteration, Method, Unlinked};
use numbers::Agreement;

use crate::error::{Error, ErrorKind, Result};
use crate::tables::{ExecutionTrace, Tables};

/// Links each node to its event. `iteration` selects one of the matching iterations if the order of
/// names decides; without it, the one of median length is used.
///
/// # Errors
///
/// Returns [`ErrorKind::NotAPair`] if the files do not belong together, and [`ErrorKind::NoWindow`]
/// if there is no such iteration.
pub fn execution(
    trace: &ExecutionTrace,
    tables: &Tables,
    iteration: Option<usize>,
) -> Result<ExecutionLink> {
    let names = Names::of(trace, tables);
    let by_record = numbers::by_record_function(trace, tables, &names);
    if by_record.is_sound() {
        return Ok(by_record.into_link(trace, tables, Method::RecordFunction));
    }
    let found = windows::iterations(trace, tables, &names);
    let is_complete = found.1;
    if !found.0.is_empty() {
        return windows::link_iteration(trace, tables, found, iteration);
    }
    let by_external = numbers::by_external_id(trace, tables, &names);
    if by_external.is_sound() && 2 * by_external.n_same_name >= trace.nodes.len() {
        return Ok(by_external.into_link(trace, tables, Method::ExternalId));
    }
    Err(refusal(trace, tables, &by_record, &by_external, is_complete))
}

/// Returns the error for a pair that does not belong together, with figures.
fn refusal(
    trace: &ExecutionTrace,
    tables: &Tables,
    by_record: &Agreement,
    by_external: &Agreement,
    is_complete: bool,
) -> Error {
    let figures = format!(
        "of {} nodes, {} share a record function id with the trace ({} of those the name), {} \
         an External id ({} the name), and no iteration of the trace has the same operators \
         in the same order{}{}",
        trace.nodes.len(),
        by_record.n_common,
        by_record.n_same_name,
        by_external.n_common,
        by_external.n_same_name,
        if is_complete { "" } else { windows::SEARCH_CUT },
        if pids_differ(trace, tables) { "; the process ids differ too" } else { "" },
    );
    Error::new(ErrorKind::NotAPair(figures), 0)
}
