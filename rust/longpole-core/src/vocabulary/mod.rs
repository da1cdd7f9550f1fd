//! The meaning of names, independent of the profiler.
//!
//! Each profiler, vendor and library uses different names for the same thing. This module contains
//! the meaning of names, in one table for each question:
//!
//! | question | module |
//! |---|---|
//! | kind of an event, by its category | `category` |
//! | role of a runtime API call | `api` |
//! | class of a kernel | `kernels` |
//! | family of a kernel | `families` |
//! | kernels that are HIP memsets and memcpys | `blits` |
//! | operation and data type of a collective | `collectives` |
//! | data-loading functions | `loading` |
//! | owner of a Python function | `frames` |
//! | parts of an Ascend profile | `ascend` |
//! | device and stream of a Perfetto track | `tracks` |
//! | parts of an XProf profile | `xprof` |
//! | iteration markers, and nodes of the backward graph | `markers` |
//! | phases of a training step | `phases` |
//! | iterations of inference servers | `serving` |
//!
//! A [`Vocabulary`] combines these tables with additions by the user.

mod api;
mod ascend;
mod category;
mod collectives;
mod families;
mod frames;
mod kernels;
mod phases;
mod serving;
mod tracks;
mod user;
mod xprof;

pub use api::{ApiRole, Waiting, api_names};
pub use ascend::{
    CollectiveTrack, DeviceRange, Layer, Profiler, TaskKind, hccl_number, stream_number,
};
pub use category::EventKind;
pub use collectives::{
    Collective, DataType, data_type, data_type_of_kernel, is_collective_range, runs_on_cpu,
};
pub use families::{OTHER, is_kernel_family, kernel_family};
pub use frames::{
    DATA_LOADING, is_backward_node, is_engine_work, is_own_frame, is_wrapper_frame, module_name,
    step_number,
};
pub use kernels::{MEMORY_KINDS, WorkClass, blit_call, blit_kernel, pageable_ends};
pub use phases::{Phase, annotated_phase, frame_phase, operator_phase};
pub use serving::{
    HostPart, Iteration, IterationKind, Server, annotated_iteration, framed_iteration, host_part,
    kind_of_frame,
};
pub use tracks::{agent_number, track_numbers};
pub use user::{SECTIONS, Vocabulary};
pub use xprof::{Line, Plane, xprof_activity, xprof_detail, xprof_host_event};
