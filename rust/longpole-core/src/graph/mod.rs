//! The dependency graph: linked events -> nodes and edges.
//!
//! Nodes are the starts and ends of all events, in order of time. An edge means that its target
//! could not happen before its source. It has a kind (the name of its time), a role (why it exists)
//! and evidence (how it is known). Of the edges into a node, the one that finished last *binds*: it
//! determined the time of the node. `docs/path-rules.md` describes every rule.
//!
//! `model` holds the data structures, `facts` what the rules need to know about a trace, and
//! `rules` the rules. The graph always covers the whole trace; a window only selects an end
//! in it. Dependencies that profilers do not record (locks, thread pools, hidden graph nodes) have
//! no edge.

mod facts;
mod model;
mod names;
mod rules;

pub use model::{
    Certainty, ClockShift, ClockSlack, Counts, Edge, Edges, Evidence, Graph, Kind, Nodes, Role,
    Timeline, limits,
};
pub(crate) use names::{matching, matching_kernels};

use crate::error::Result;
use crate::link::Launches;
use crate::progress::{Progress, report};
use crate::tables::Tables;
use facts::Facts;
use model::Clocks;

/// Builds the graph of a whole trace. `data_load` is a regular expression for the names of
/// data-loading functions. If the clock of a device is found to be off, the graph uses shifted
/// timestamps; a clock that jumps has several shifts.
///
/// # Errors
///
/// Returns an error if `data_load` is not a valid regular expression, or if `progress` asks to
/// stop.
pub fn build(
    tables: &Tables,
    launches: &Launches,
    data_load: &str,
    progress: Progress<'_>,
) -> Result<Graph> {
    let is_loader = matching(data_load, tables)?;
    let (mut clock_shifts, mut clocks) = (Vec::new(), Clocks::default());
    loop {
        let timeline = Timeline::of(tables, launches, &clocks);
        report(progress, timeline.len() as u64)?;
        let nodes = Nodes::of(&timeline);
        let facts = Facts::of(tables, launches, &timeline, &nodes, &is_loader);
        if clock_shifts.is_empty() {
            (clock_shifts, clocks) = rules::clock_shifts(&facts);
            if !clock_shifts.is_empty() {
                continue;
            }
        }
        let (edges, counts) = rules::edges(&facts, progress)?;
        let clock_slacks = ClockSlack::by_lane(&rules::clock_slacks(&facts), &tables.lanes);
        let missing_activities = facts.missing_activities.calls().to_vec();
        let thread_nodes = facts.into_thread_nodes();
        report(progress, edges.len() as u64)?;
        let n_shifted = clock_shifts.iter().filter(|shift| shift.from_ns.is_none()).count();
        let counts = Counts { clock_shifts: n_shifted as u64, ..counts };
        return Ok(Graph {
            missing_activities,
            clock_shifts,
            clock_slacks,
            ..Graph::of((timeline, nodes, thread_nodes), edges, counts)
        });
    }
}
