//! Builds the workload for simulators: an execution trace with the times of a Kineto trace.
//!
//! Every node of the execution trace keeps its id; GPU activities and gaps between operators become
//! separate nodes. Durations are self times without the time in which the thread only waited. A
//! dependency has a kind, evidence, and the events that justify it. Waits for a device, another
//! stream or another thread are taken from the edges of the critical path's
//! [`Graph`](crate::graph::Graph), so that both agree.
//!
//! No dependency contradicts the measured times: a source that must have ended ends before its
//! target starts, and a source that only must have begun (an enclosing node, the operator that
//! launched a kernel) begins no later. Dependencies that would contradict them are dropped and
//! counted, so the graph has no cycles.

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
