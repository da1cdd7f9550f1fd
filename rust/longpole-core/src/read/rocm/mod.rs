//! What the ROCm profilers write: databases of `rocpd`, JSON and CSV of `rocprofv3`, CSV of the older
//! `rocprof`, and its timeline, which `chrome` reads.
//!
//! All but the last two hold the same records: dispatches of kernels, memory copies, calls of the HIP and HSA
//! interfaces, and markers of `ROCTx`. A call and what it launched have a correlation id in common.
//!
//! Limits: none says for what a call waited, nor names a rank. Grids are counted in blocks,
//! as HIP does, where the file counts work items.

mod activities;
mod beside;
mod csv;
mod devices;
mod document;
mod fields;
mod layout;
mod rocpd;
mod timeline;

pub(super) use csv::{is_csv, read as read_csv};
pub(super) use document::read as read_document;
pub(super) use rocpd::{is_rocpd, read as read_rocpd};
pub(super) use timeline::interpret;
