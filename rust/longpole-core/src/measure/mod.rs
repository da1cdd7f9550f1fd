//! Linked events -> figures.

mod api_roles;
mod blocking;
mod busy;
mod collectives;
mod doubts;
mod gaps;
mod launches;
mod self_time;

pub use api_roles::api_roles;
pub use blocking::{blocking_calls, Blocking, Reason};
pub use busy::{busy, Busy};
pub use collectives::{collectives, CollectiveRow, Collectives, Group, NamedBy};
pub use doubts::doubts;
pub use gaps::{gaps, Gap};
pub use launches::{launches, Launch};
pub use self_time::{self_time_ns, times_within, TimeWithin};
