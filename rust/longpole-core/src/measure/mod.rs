//! Linked events -> figures.

mod api_roles;
mod blocking;
mod busy;
mod collectives;
mod gaps;
mod launches;
mod self_time;
mod warning_counts;

pub use api_roles::api_roles;
pub use blocking::{blocking_calls, Blocking, Reason};
pub use busy::{busy, Busy};
pub use collectives::{collectives, CollectiveRow, Collectives, Group, NamedBy};
pub use gaps::{gaps, Gap};
pub use launches::{launches, Launch};
pub use self_time::{self_time_ns, times_within, TimeWithin};
pub use warning_counts::warning_counts;
