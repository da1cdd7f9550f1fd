//! Events -> who encloses whom, on each thread.

mod nesting;

pub use nesting::{nesting, Nesting, NO_DEPTH, TOLERANCE_NS};
