use super::{EventKind, EventTable};
use crate::ids::EventId;
use crate::strings::Strings;

/// What work on a device is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkClass {
    /// Computing.
    Compute,
    /// Talking to other devices.
    Communication,
    /// Moving or filling memory.
    Copy,
}

/// Parts of the names of kernels that communicate: the collective libraries of
/// the vendors, and the one-kernel collectives of serving engines.
const COMMUNICATION: &[&str] = &[
    "nccl",
    "rccl",
    "hccl",
    "msccl",
    "nvshmem",
    "rocshmem",
    "cross_device_reduce",
    "allreduce",
    "all_reduce",
    "allgather",
    "all_gather",
    "reduce_scatter",
    "reducescatter",
    "alltoall",
    "all_to_all",
    "sendrecv",
];

impl WorkClass {
    /// Its names in columns, in the order of the enum.
    pub const NAMES: &'static [&'static str] = &["compute", "communication", "copy"];

    /// The class of each event that is work on a device, asked often: the names
    /// are looked at once.
    pub(crate) fn of_events<'a>(
        events: &'a EventTable,
        strings: &Strings,
    ) -> impl Fn(EventId) -> Option<Self> + 'a {
        let communicates = strings.matching(|name| {
            let name = name.to_ascii_lowercase();
            COMMUNICATION.iter().any(|part| name.contains(part))
        });
        move |event| match events.kind(event) {
            EventKind::Kernel => {
                let named = events.name(event).is_some_and(|name| communicates[name.row()]);
                Some(if named { Self::Communication } else { Self::Compute })
            }
            EventKind::Copy | EventKind::Fill => Some(Self::Copy),
            _ => None,
        }
    }
}
