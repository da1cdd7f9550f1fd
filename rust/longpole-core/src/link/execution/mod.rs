//! Joins the nodes of an execution trace to the CPU events of a Kineto trace.
//!
//! Where both observers ran together the record function id names a node in either
//! file. Older files share no number; there the order of names on each thread decides:
//! an execution trace of one iteration fits those iterations of the Kineto trace that
//! ran the same operators. A few files of 2023 carry the record function id as
//! External id.
//!
//! Numbers that agree by chance are told from those that mean something by the names: a
//! pair whose names disagree is refused with the figures.

mod fits;
mod model;
mod names;
mod numbers;
mod windows;

use model::pids_differ;
pub use model::{ExecutionLink, Iteration, Method, Unlinked};
use names::Names;
use numbers::Agreement;

use crate::error::{Error, ErrorKind, Result};
use crate::tables::{ExecutionTrace, Tables};

/// Finds the event of each node. `iteration` chooses one of the iterations that fit
/// where the order of names decides; without it the one of median length is taken.
///
/// # Errors
///
/// [`ErrorKind::NotAPair`] where the files do not belong together, and
/// [`ErrorKind::NoWindow`] where there is no such iteration.
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

/// The figures of a pair that does not belong together.
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
