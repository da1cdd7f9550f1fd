//! The Chrome trace-event format, as the PyTorch profiler and others write it.
//!
//! A document is an object with `traceEvents`, or a bare list of events. The frame
//! (`document`) hands each event to a scanner (`event`), which drafts it in place, and the
//! draft to a collector (`collect`), which makes rows of it. Most events have a shape that was
//! seen before (`shapes`) and become rows without either (`predicted`). Several threads may read
//! parts of the list (`parts`, `part`), whose tables are joined (`join`). What is damaged is
//! skipped and counted (`recovery`).
//!
//! Limits: metadata events are kept as counted statements; a begin without its end keeps a
//! null duration.

mod arguments;
mod collect;
mod cut;
mod document;
mod event;
mod header;
mod join;
mod kinds;
mod part;
mod parts;
mod place;
mod predicted;
mod reader;
mod recovery;
mod repaired;
mod shapes;
mod stream;
mod values;

pub(super) use document::{read, repair};
pub(super) use header::facts;
pub(super) use repaired::{Repaired, sound_value};
