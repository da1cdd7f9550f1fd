//! Linked events -> figures.

mod busy;
mod doubts;
mod gaps;
mod launches;
mod own_time;

pub use busy::{busy, Busy};
pub use doubts::doubts;
pub use gaps::{gaps, Gap};
pub use launches::{launches, Launch};
pub use own_time::{own_time_ns, times_within, TimeWithin};
