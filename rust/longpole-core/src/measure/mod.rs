//! Measurements on linked events, one table for each.

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
mod idle_causes;
mod impossible_times;
mod launches;
mod overlaps;
mod profiler;
mod queues;
mod ranges;
mod recorded;
mod running;
mod self_time;
mod spread;
mod warning_counts;

pub use blocking::api_roles;
pub use blocking::{Blocking, Reason, blocking_calls, copy_from_pageable};
pub use busy::{Busy, busy};
pub use by_name::earlier_work;
pub use by_name::{
    NameTime, blocking_by_name, by_name, kernels_by_name, launching_operator, operators_by_name,
    unlinked,
};
pub use chosen::Chosen;
pub use class_times::{ClassTime, class_times};
pub use collective_waits::{Awaited, CollectiveWait, awaited, collective_waits};
pub use collectives::{CollectiveRow, Collectives, Group, NamedBy, collectives};
pub use context_times::{ContextTime, ContextTimes, Rest, context_times};
pub use contexts::{Context, Contexts, Frames, contexts};
pub use event_warnings::{EventWarning, event_warnings, launches_without_work};
pub use gaps::{Gap, Places, gaps};
pub use idle_causes::{IdleCause, IdleTime, idle_causes};
pub use impossible_times::impossible_ns;
pub use launches::{Launch, launches};
pub use overlaps::overlaps;
pub use profiler::profiler;
pub use queues::{QueueChange, queues};
pub use ranges::{Side, device_ranges, enclosing};
pub use recorded::{Recorded, recorded};
pub use running::running_at;
pub use self_time::{TimeWithin, self_time_ns, times_within};
pub use spread::sequences;
pub use spread::{Spread, spread};
pub use warning_counts::warning_counts;
