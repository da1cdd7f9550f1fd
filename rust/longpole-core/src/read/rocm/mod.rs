//! What the ROCm profilers write: databases of `rocpd`, JSON of `rocprofv3`, and the timeline of the
//! older `rocprof`, which `chrome` reads.
//!
//! The first two hold the same records: dispatches of kernels, memory copies, calls of the HIP and HSA
//! interfaces, and markers of `ROCTx`. A call and what it launched have a correlation id in common.
//!
//! Limits: none says for what a call waited, nor names a rank. Grids are counted in blocks,
//! as HIP does, where the file counts work items.

mod activities;
mod devices;
mod document;
mod fields;
mod rocpd;
mod timeline;

pub(super) use document::read as read_document;
pub(super) use rocpd::{is_rocpd, read as read_rocpd};
pub(super) use timeline::interpret;
