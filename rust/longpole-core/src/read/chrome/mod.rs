//! Reads the Chrome trace-event format, as written by the PyTorch profiler and others.
//!
//! A document is an object with `traceEvents`, or a bare list of events. `document` passes each
//! event to a scanner (`event`), which fills a draft in place, and the draft to a collector
//! (`collect`), which adds table rows. Most events have a known shape (`shapes`) and become rows
//! without these steps (`predicted`). Several threads can read parts of the list (`parts`, `part`),
//! whose tables are then joined (`join`). Damaged text is skipped and counted (`recovery`).
//!
//! Limits: metadata events are kept as counted statements; a begin event without an end event has a
//! null duration.

mod arguments;
mod collect;
mod cut;
mod document;
mod event;
mod join;
mod part;
mod parts;
mod predicted;
mod reader;
mod recovery;
mod repaired;
mod shapes;
mod stream;

pub(super) use document::{read, repair};
pub(super) use repaired::{Repaired, sound_value};
