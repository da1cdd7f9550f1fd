//! Nesting of the events of each thread.

mod nesting;

pub use nesting::{NO_DEPTH, Nesting, TOLERANCE_NS, nesting};
