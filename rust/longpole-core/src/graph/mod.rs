//! Linked events -> the graph of what had to happen before what.
//!
//! Nodes are the starts and ends of all events, in order of time. An edge says that its
//! target could not happen before its source, what the time between them is called,
//! why it exists and how it is known. Of the edges into a node the one that finished
//! last *binds*: it decided when the node came. `docs/path-rules.md` gives every rule.
//!
//! `model` is what the graph is made of, `facts` what the rules ask of a trace, `rules`
//! the rules, one a file. The graph is always that of the whole trace; a window only
//! chooses an end in it. What a profiler does not record (locks, thread pools, hidden
//! work of graphs) has no edge.

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

/// Builds the graph of a whole trace. `data_load` is the pattern of names of what
/// loads data. Where the clock of a device is found to be off, the graph is that of the
/// trace with its stamps moved.
///
/// # Errors
///
/// When `data_load` is no regular expression, and when `progress` asks to stop.
pub fn build(
    tables: &Tables,
    launches: &Launches,
    data_load: &str,
    progress: Progress<'_>,
) -> Result<Graph> {
    let is_loader = matching(data_load, tables)?;
    let mut clock_shifts = Vec::new();
    loop {
        let clocks = Clocks::of(&clock_shifts, &tables.lanes);
        let timeline = Timeline::of(tables, launches, clocks);
        report(progress, timeline.len() as u64)?;
        let nodes = Nodes::of(&timeline);
        let facts = Facts::of(tables, launches, &timeline, &nodes, &is_loader);
        if clock_shifts.is_empty() {
            clock_shifts = rules::clock_shifts(&facts);
            if !clock_shifts.is_empty() {
                continue;
            }
        }
        let (edges, counts) = rules::edges(&facts, progress)?;
        let clock_slacks = ClockSlack::by_lane(&rules::clock_slacks(&facts), &tables.lanes);
        let lost_launches = facts.lost_launches.calls().to_vec();
        let thread_nodes = facts.into_thread_nodes();
        report(progress, edges.len() as u64)?;
        let counts = Counts { clock_shifts: clock_shifts.len() as u64, ..counts };
        return Ok(Graph {
            lost_launches,
            clock_shifts,
            clock_slacks,
            ..Graph::of((timeline, nodes, thread_nodes), edges, counts)
        });
    }
}
