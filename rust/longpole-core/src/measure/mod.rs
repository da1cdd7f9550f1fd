//! Linked events -> figures.

mod api_roles;
mod blocking;
mod busy;
mod by_name;
mod chosen;
mod class_times;
mod collective_waits;
mod collectives;
mod context_times;
mod contexts;
mod event_warnings;
mod gaps;
mod idle;
mod idle_causes;
mod launches;
mod overlaps;
mod profiler;
mod queues;
mod ranges;
mod recorded;
mod running;
mod self_time;
mod sequences;
mod spread;
mod warning_counts;

pub use api_roles::api_roles;
pub use blocking::{blocking_calls, copy_from_pageable, Blocking, Reason};
pub use busy::{busy, Busy};
pub use by_name::{
    blocking_by_name, by_name, kernels_by_name, operators_by_name, unlinked, NameTime,
};
pub use chosen::Chosen;
pub use class_times::{class_times, ClassTime};
pub use collective_waits::{awaited, collective_waits, Awaited, CollectiveWait};
pub use collectives::{collectives, CollectiveRow, Collectives, Group, NamedBy};
pub use context_times::{context_times, ContextTime, ContextTimes, Rest};
pub use contexts::{contexts, Context, Contexts, Frames};
pub use event_warnings::{event_warnings, launches_without_work, EventWarning};
pub use gaps::{gaps, Gap, Places};
pub use idle::{idle, Idle};
pub use idle_causes::{idle_causes, IdleCause, IdleTime};
pub use launches::{launches, Launch};
pub use overlaps::overlaps;
pub use profiler::profiler;
pub use queues::{queues, QueueChange};
pub use ranges::{device_ranges, enclosing, Side};
pub use recorded::{recorded, Recorded};
pub use running::running_at;
pub use self_time::{self_time_ns, times_within, TimeWithin};
pub use sequences::sequences;
pub use spread::{spread, Spread};
pub use warning_counts::warning_counts;
