//! What recording cost, and the trace without it.
//!
//! A profiler adds time around each event of a thread. A trace shows how much: an operator that
//! only calls another one takes no time of its own, so what it shows is the cost of one event.
//! That cost is taken off the time in which it lies, and the graph is solved again: work of
//! devices keeps its length and starts when its launch and its stream allow. The result is a
//! trace with the same events at other times, and its graph.
//!
//! Only traces of torch.profiler tell their costs. Nothing is known of memory and caches that a
//! profiler fills, so the result is an estimate, with an interval.

mod classes;
mod costs;
mod lag_bounds;
mod pieces;
mod retime;
mod solution;

pub use classes::Class;
pub use costs::{Cost, Costs, Source, Untold, costs, usual_costs};
pub use lag_bounds::lag_bounds_ns;
pub use solution::{Lengths, Misfit, Solution, fitted, lengths, solution};
