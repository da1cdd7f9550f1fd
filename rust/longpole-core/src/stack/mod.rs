//! Events -> who encloses whom, on each thread.

mod nesting;

pub use nesting::{NO_DEPTH, Nesting, TOLERANCE_NS, nesting};
