//! Predicts events by their shape.
//!
//! A profiler writes few kinds of events, each with the same keys in the same order and mostly the
//! same values. The constant bytes are compared with the file in one step, and only the values
//! between them are read. The prediction covers the text of a whole event: it is used only if its
//! last byte matches, and other events are left to the scanner. Predictions therefore change
//! neither what is accepted nor the findings and their offsets.
//!
//! Limits: begin and end events, counters, asynchronous events, and events with anything unusual
//! are never predicted. The number of shapes and their size are bounded.

mod predictor;
mod shape;
mod value;

pub(super) use predictor::Predictor;
pub(super) use shape::{EventPlan, Plan};
pub(super) use value::{Found, Name, begins_with};
