//! An execution trace with the times of a Kineto trace: the workload that simulators run.
//!
//! Every node of the execution trace keeps its id; work on devices and gaps between
//! operators become nodes of their own. Durations are self times without the time in which
//! the thread only waited. A dependency names its kind, how it is known and the events that
//! justify it; what waits for a device, for another stream or for another thread is taken
//! from the edges of the critical path's [`Graph`](crate::graph::Graph), so that there is one answer.
//!
//! No dependency contradicts the measured times: what must be over is over before its
//! target starts, and what must only have begun (the node around another one, the operator
//! that launched a kernel) begins no later. Dependencies that would are dropped and counted,
//! so the graph has no cycles.

mod build;
mod chains;
pub mod check;
mod communication;
mod dependencies;
mod devices;
mod model;
mod replay;
mod storages;
mod waits;

pub use build::workload;
pub use communication::{Communication, communications, tensor_bytes};
pub use model::{
    Dependency, DependencyKind, DeviceReason, Dropped, Linked, LinkedDevice, Moment, NodeKind,
    Sources, Workload, WorkloadNode,
};
pub use replay::{
    Deviation, Replay, ReplayNode, Resource, ResourceReplay, replay, replay_workload,
};
