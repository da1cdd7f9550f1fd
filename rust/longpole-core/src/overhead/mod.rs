//! Estimates the recording overhead and removes it from the trace.
//!
//! A profiler adds time around each event of a thread. The trace shows how much: an operator that
//! only calls another one takes no time of its own, so its self time is the cost of one event. This
//! cost is subtracted from the time that contains it, and the graph is solved again: GPU activities
//! keep their duration and start when their launch and their stream allow. The result is a trace
//! with the same events at other times, and its graph.
//!
//! Only traces of torch.profiler show their costs. The effect of a profiler on memory and caches is
//! unknown, so the result is an estimate with an interval.

mod classes;
mod costs;
mod pieces;
mod solution;

pub use classes::Class;
pub use costs::{Cost, Costs, NotEstimated, Source, costs, unknown_costs, usual_costs};
pub use solution::{Lengths, Misfit, Solution, fitted, latency_bounds_ns, solution};
