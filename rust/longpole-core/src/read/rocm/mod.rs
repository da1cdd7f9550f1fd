//! Reads the files of the ROCm profilers: `rocpd` databases, JSON and CSV of `rocprofv3`, and CSV
//! of the older `rocprof`. `chrome` reads the timeline of the latter.
//!
//! All but the last two contain the same records: kernel dispatches, memory copies, calls of the
//! HIP and HSA interfaces, and `ROCTx` markers. A call and its activities have a common correlation
//! id.
//!
//! Limits: no format records what a call waited for, or a rank. Grids are converted to blocks, as
//! in HIP, if the file has work items.

mod activities;
mod beside;
mod csv;
mod document;
mod fields;
mod layout;
mod rocpd;
mod timeline;

pub(super) use csv::{is_csv, read as read_csv};
pub(super) use document::read as read_document;
pub(super) use rocpd::{is_rocpd, read as read_rocpd};
pub(super) use timeline::interpret;
