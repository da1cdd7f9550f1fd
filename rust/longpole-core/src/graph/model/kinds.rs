//! The names that an edge carries: kind, role, evidence.
//!
//! Each name is written once, next to its variant. Columns, the command line and the documentation
//! use the same name.

use crate::names::named;

named! {
    /// The name of the time of an edge on the path.
    Kind {
        /// An operator, or a Python function inside one.
        Operator "operator",
        /// A runtime or driver API call.
        Runtime "runtime",
        /// Host time on a thread outside operators and calls.
        HostGap "host_gap",
        /// Time in a data loader outside calls.
        DataLoading "data_loading",
        /// A compute kernel.
        Kernel "kernel",
        /// A memcpy or memset.
        Copy "copy",
        /// A communication kernel (collective or point-to-point).
        Communication "communication",
        /// From the end of a launch call to the start of the activity.
        Launch "launch",
        /// A GPU activity that began before its launch call.
        ClockSkew "clock_skew",
        /// From the end of an activity to the start of the next on its stream.
        KernelDelay "kernel_delay",
        /// From the start of an activity to the start of the next on its stream, while the first
        /// still runs.
        StreamOverlap "stream_overlap",
        /// From the end of an activity to the start of one that waited on another stream.
        EventWait "event_wait",
        /// From the end of an activity to the return of the call that waited for it.
        SyncReturn "sync_return",
        /// From the end of an activity to the return of a launch call that found the queue full.
        QueueFull "queue_full",
        /// Handoff between two threads, such as forward and backward.
        Handover "handover",
        /// A long idle gap of the device inside a graph launch.
        GraphGap "graph_gap",
        /// A long idle gap of the device that the trace does not explain.
        Unexplained "unexplained",
        /// A wait for something missing from the trace.
        Unrecorded "unrecorded",
        /// Before the first event to which the path leads.
        BeforeFirstEvent "before_first_event",
        /// After the last event.
        AfterLastEvent "after_last_event",
    }
}

named! {
    /// Why an edge exists; several roles may share a kind. Sorted by name, which is the final
    /// tie-break.
    Role {
        /// An activity that began before its launch call follows the last node of the thread.
        Clock "clock",
        /// A kernel of another stream held the device.
        DeviceOccupied "device_occupied",
        /// From the start to the end of a GPU activity.
        DeviceWork "device_work",
        /// A stream waited for another stream.
        EventWait "event_wait",
        /// A graph is one operation of its stream: the next operation waits for all of its nodes.
        GraphOrder "graph_order",
        /// A thread continues after another thread, such as forward and backward.
        Handover "handover",
        /// A multi-device collective ends after the last of its kernels has started.
        JointCollective "joint_collective",
        /// A call launched the activity.
        Launch "launch",
        /// A call launched the activity, which began before the call returned.
        LaunchInside "launch_inside",
        /// A missing node of a graph ran until then.
        MissingNode "missing_node",
        /// The trace shows no reason.
        NoReason "no_reason",
        /// Started while its stream predecessor was still running (e.g. programmatic dependent
        /// launch).
        OverlapInside "overlap_inside",
        /// The later of two overlapping activities has the time after the end of the earlier one.
        OverlapTail "overlap_tail",
        /// A launch waited for room in the queue of its stream.
        QueueFull "queue_full",
        /// A call copied pageable memory to a staging buffer.
        Staging "staging",
        /// Activities of one stream run in order.
        StreamOrder "stream_order",
        /// Activities of one stream start in order.
        StreamOverlap "stream_overlap",
        /// A call waited for an activity.
        Sync "sync",
        /// A call waited for an activity whose timestamps end slightly later.
        SyncInside "sync_inside",
        /// The nodes of one thread follow each other.
        ThreadOrder "thread_order",
    }
}

named! {
    /// How an edge is known.
    Evidence {
        /// By the order of events on one lane.
        Order "order",
        /// By a correlation id.
        Correlation "correlation",
        /// By a synchronization record.
        Recorded "recorded",
        /// By several launches of a graph.
        Replayed "replayed",
        /// Inferred from names and times.
        Inferred "inferred",
        /// Not known.
        None "none",
    }
}

named! {
    /// How reliable a segment of the path is.
    Certainty {
        /// Known, or learned from several launches of a graph.
        Certain "certain",
        /// Inferred, without an alternative.
        Likely "likely",
        /// Inferred with a rival, delayed by an occupied device, or before an unexplained gap.
        Doubtful "doubtful",
        /// The trace shows no reason.
        Unknown "unknown",
    }
}

impl Kind {
    /// The kinds of time that the trace does not explain.
    pub const UNKNOWN: &'static [Self] =
        &[Self::Unexplained, Self::Unrecorded, Self::GraphGap, Self::BeforeFirstEvent];

    /// Whether this kind is work, which a change without a kind selects. A faster kernel is not
    /// launched faster, so launches are not work.
    pub fn is_work(self) -> bool {
        self <= Self::Communication
    }

    /// Whether this kind is the time of GPU activities.
    pub fn is_device_work(self) -> bool {
        matches!(self, Self::Kernel | Self::Copy | Self::Communication)
    }

    /// Whether the trace does not explain this time.
    pub fn is_unknown(self) -> bool {
        self == Self::AfterLastEvent || Self::UNKNOWN.contains(&self)
    }
}

impl Role {
    /// Whether the edge leaves a running activity, and therefore finishes at its target.
    pub fn is_inside(self) -> bool {
        matches!(
            self,
            Self::OverlapInside | Self::DeviceOccupied | Self::SyncInside | Self::MissingNode
        )
    }

    /// Returns the tie-break class, smallest first: 0 for the own lane, 1 for waits on another
    /// lane, 2 for launches.
    pub fn tie_class(self) -> u8 {
        match self {
            Self::Launch | Self::LaunchInside | Self::Clock => 2,
            Self::EventWait
            | Self::JointCollective
            | Self::DeviceOccupied
            | Self::MissingNode
            | Self::Sync
            | Self::SyncInside
            | Self::Staging
            | Self::QueueFull
            | Self::Handover => 1,
            // No wildcard: a new role must choose its class here.
            Self::DeviceWork
            | Self::GraphOrder
            | Self::NoReason
            | Self::OverlapInside
            | Self::OverlapTail
            | Self::StreamOrder
            | Self::StreamOverlap
            | Self::ThreadOrder => 0,
        }
    }

    /// Whether the edge leads from the call that launched the activity.
    pub fn launches(self) -> bool {
        matches!(self, Self::Launch | Self::LaunchInside)
    }

    /// Whether the edge leads from the end of another activity that had to finish first.
    pub fn releases(self) -> bool {
        matches!(self, Self::StreamOrder | Self::EventWait | Self::GraphOrder)
    }

    /// Returns the kind of wait that the edge represents, if a program could remove it.
    pub fn waits(self) -> Option<Kind> {
        match self {
            // A staged copy waits for its turn on the stream.
            Self::Sync | Self::SyncInside | Self::Staging => Some(Kind::SyncReturn),
            Self::EventWait => Some(Kind::EventWait),
            Self::QueueFull => Some(Kind::QueueFull),
            _ => None,
        }
    }

    /// Whether the edge is the duration of something itself, not a wait.
    pub fn is_self_time(self) -> bool {
        matches!(self, Self::ThreadOrder | Self::DeviceWork | Self::OverlapTail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Names;

    #[test]
    fn roles_stand_in_the_order_of_their_names() {
        assert!(Role::ALL.is_sorted_by_key(|role| role.name()));
    }

    #[test]
    fn every_kind_is_found_by_its_name() {
        assert!(Kind::ALL.iter().all(|&kind| Kind::named(kind.name()) == Some(kind)));
        assert_eq!(Kind::named("gemm"), None);
    }
}
