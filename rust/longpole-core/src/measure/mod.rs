//! Measurements on linked events, one table for each.

mod blocking;
mod busy;
mod by_name;
mod chosen;
mod collective_waits;
mod collectives;
mod context_times;
mod contexts;
mod idle_causes;
mod impossible_times;
mod phases;
mod queues;
mod ranges;
mod recorded;
mod self_time;
mod spread;
mod warnings;

pub use blocking::{Blocking, Reason, api_roles, blocking_calls, copy_from_pageable};
pub use busy::{Busy, ClassTime, busy, class_times, overlaps};
pub use by_name::{
    NameTime, blocking_by_name, by_name, earlier_work, kernels_by_name, launching_operator,
    operators_by_name, unlinked,
};
pub use chosen::Chosen;
pub use collective_waits::{Awaited, CollectiveWait, awaited, collective_waits};
pub use collectives::{CollectiveRow, Collectives, Group, NamedBy, collectives};
pub use context_times::{ContextTime, ContextTimes, Rest, context_times};
pub use contexts::{Context, Contexts, Frames, contexts, running_at};
pub use idle_causes::{Gap, IdleCause, IdleTime, Places, gaps, idle_causes};
pub use impossible_times::impossible_ns;
pub use phases::{DevicePhase, HostPhase, phase_times};
pub use queues::{Launch, QueueChange, launches, queues};
pub use ranges::{Side, device_ranges, enclosing};
pub use recorded::{Recorded, profiler, recorded};
pub use self_time::{TimeWithin, self_time_ns, times_within};
pub use spread::{Spread, sequences, spread};
pub use warnings::{EventWarning, event_warnings, launches_without_work, warning_counts};
