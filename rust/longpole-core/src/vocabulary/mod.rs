//! What names mean, whoever wrote them.
//!
//! Each profiler, vendor and library calls the same thing by another name. What a name
//! means is said here, in one table for each question, and nowhere else.

mod category;
mod markers;

pub use category::{is_annotation, EventKind};
pub use markers::{is_backward_node, step_number};
