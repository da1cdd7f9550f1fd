//! Events predicted by their shape.
//!
//! A profiler writes few kinds of events, each with the same keys in the same order and most
//! values the same. The bytes that stay the same are compared with the file in one go, and
//! only the values between them are read. What is predicted is the text of a whole event:
//! nothing of it is kept before its last byte agrees, and an event that does not agree is left
//! to the scanner, so that what is accepted, what is found wrong and where stay the same.
//!
//! Limits: begin and end events, counters, asynchronous events, and events with anything
//! unusual are never predicted. The number of shapes and their size are bounded.

mod outline;
mod predictor;
mod shape;
mod value;

pub(super) use predictor::Predictor;
pub(super) use shape::{EventPlan, Plan};
pub(super) use value::{Found, Name, begins_with};
