//! The data structures of the graph: events in order, nodes, edges, and their names.
//!
//! The rules fill them and later stages read them. Nothing in this module depends on a rule.

mod edges;
#[allow(clippy::module_inception)] // the graph itself
mod graph;
mod instants;
mod kinds;
pub mod limits;
mod nodes;
mod part;
mod streams;
mod timeline;

pub use edges::{Edge, Edges};
pub use graph::{Counts, Graph};
pub use kinds::{Certainty, Evidence, Kind, Role};
pub use nodes::Nodes;
pub(super) use nodes::ThreadNodes;
pub(super) use streams::{Stream, Streams, first_of_last, latest_to_end};
pub(super) use timeline::Clocks;
pub use timeline::{ClockShift, ClockSlack, Timeline};
