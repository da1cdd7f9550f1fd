//! The Chrome trace-event format, as the PyTorch profiler and others write it.
//!
//! A document is an object with `traceEvents`, or a bare list of events. The frame
//! (`document`) hands each event to a scanner (`event`), which drafts it in place, and the
//! draft to a collector (`collect`), which makes rows of it. What is damaged is skipped and
//! counted (`recovery`).
//!
//! Limits: metadata events are kept as counted statements; a begin without its end keeps a
//! null duration.

mod arguments;
mod collect;
mod document;
mod event;
mod header;
mod kinds;
mod pairs;
mod place;
mod recent;
mod recovery;
mod stream;
mod values;

pub use arguments::Arguments;
pub(super) use document::read;
