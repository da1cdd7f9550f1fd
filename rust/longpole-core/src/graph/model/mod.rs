//! The data structures of the graph: events in order, nodes, edges, and their names.
//!
//! The rules fill them and later stages read them. Nothing in this module depends on a rule.

mod clocks;
mod edges;
#[allow(clippy::module_inception)] // the graph itself
mod graph;
mod instants;
mod kinds;
mod latencies;
pub mod limits;
mod nodes;
mod part;
mod retimed;
mod streams;
mod thread_nodes;
mod timeline;

pub(super) use clocks::Clocks;
pub use clocks::{ClockShift, ClockSlack};
pub use edges::{Edge, Edges};
pub use graph::{Counts, Graph};
pub use kinds::{Certainty, Evidence, Kind, Role};
pub use nodes::Nodes;
pub(super) use streams::{Stream, Streams, first_of_last, latest_to_end};
pub(super) use thread_nodes::ThreadNodes;
pub use timeline::Timeline;
