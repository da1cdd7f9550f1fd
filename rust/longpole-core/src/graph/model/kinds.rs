//! The names an edge carries: what its time is called, why it exists, how it is known.
//!
//! Each name is written once, beside its variant, and is the one seen in columns, on the
//! command line and in the documentation.

use crate::names::named;

named! {
    /// What the time of an edge is called when the path takes it.
    Kind {
        /// An operator, or a Python function inside one.
        Operator "operator",
        /// A call into the runtime or the driver.
        Runtime "runtime",
        /// Nobody's work on a thread.
        HostGap "host_gap",
        /// Anything but calls inside a data loader.
        DataLoading "data_loading",
        /// A kernel that computes.
        Kernel "kernel",
        /// A copy or a fill of memory.
        Copy "copy",
        /// A kernel that talks to other devices.
        Communication "communication",
        /// From the end of a call to the start of what it launched.
        Launch "launch",
        /// Work that began before its own call.
        ClockSkew "clock_skew",
        /// From the end of work to the start of the next on its stream.
        KernelDelay "kernel_delay",
        /// From the start of work to the start of the next, while it still runs.
        StreamOverlap "stream_overlap",
        /// From the end of work to the start of what waited on another stream.
        EventWait "event_wait",
        /// From the end of work to the return of the call that waited for it.
        SyncReturn "sync_return",
        /// From the end of work to the return of the launch that found the queue full.
        QueueFull "queue_full",
        /// Between the forward and the backward thread.
        Handover "handover",
        /// A long silence of the device inside a graph launch.
        GraphGap "graph_gap",
        /// A long silence of the device that nothing in the trace explains.
        Unexplained "unexplained",
        /// A wait for something that the trace does not hold.
        Unrecorded "unrecorded",
        /// Before the first event that the path can be traced to.
        BeforeFirstEvent "before_first_event",
        /// After everything was over.
        AfterLastEvent "after_last_event",
    }
}

named! {
    /// Why an edge exists; several roles may share a kind. In order of their names,
    /// which settles the last of the ties.
    Role {
        /// Work that began before its call hangs on what the thread did last.
        Clock "clock",
        /// A kernel of another stream held the device.
        DeviceOccupied "device_occupied",
        /// The work itself.
        DeviceWork "device_work",
        /// A stream waited for another one.
        EventWait "event_wait",
        /// A graph is one operation of its stream: the next one waits for all of it.
        GraphOrder "graph_order",
        /// The forward thread and the backward thread take turns.
        Handover "handover",
        /// A collective of several devices ends after the last of them has begun.
        JointCollective "joint_collective",
        /// A call launched the work.
        Launch "launch",
        /// A call launched the work, which began before the call returned.
        LaunchInside "launch_inside",
        /// A node of a graph that the trace does not hold ran until then.
        LostNode "lost_node",
        /// Nothing in the trace is the reason.
        NoReason "no_reason",
        /// The work was released from inside the one that still ran.
        OverlapInside "overlap_inside",
        /// Of two that overlap, the later one has what remains.
        OverlapTail "overlap_tail",
        /// A launch waited for room in the queue of its stream.
        QueueFull "queue_full",
        /// A call copied pageable memory into a staging buffer.
        Staging "staging",
        /// Work of one stream runs in order.
        StreamOrder "stream_order",
        /// Work of one stream starts in order.
        StreamOverlap "stream_overlap",
        /// A call waited for work.
        Sync "sync",
        /// A call waited for work that by its stamps ended a little later.
        SyncInside "sync_inside",
        /// Points of one thread follow each other.
        ThreadOrder "thread_order",
    }
}

named! {
    /// How an edge is known.
    Evidence {
        /// By the order of time on one lane.
        Order "order",
        /// By a correlation number.
        Correlation "correlation",
        /// By a record of synchronisation.
        Recorded "recorded",
        /// By several replays of a graph.
        Replayed "replayed",
        /// By a guess from names and times.
        Inferred "inferred",
        /// Not at all.
        None "none",
    }
}

named! {
    /// How far a segment of the path can be relied on.
    Certainty {
        /// Known, or learned from several repetitions.
        Certain "certain",
        /// Inferred, and nothing else could have been meant.
        Likely "likely",
        /// Inferred with a rival, held up by an occupied device, or reached through a gap
        /// that nothing explains.
        Doubtful "doubtful",
        /// Nothing in the trace is the reason.
        Unknown "unknown",
    }
}

impl Kind {
    /// The kinds of time that the trace does not explain.
    pub const UNKNOWN: &'static [Self] =
        &[Self::Unexplained, Self::Unrecorded, Self::GraphGap, Self::BeforeFirstEvent];

    /// Whether it is work: what a change is about that names no kind. A kernel made
    /// faster is not launched faster.
    pub fn is_work(self) -> bool {
        self <= Self::Communication
    }

    /// Whether nothing in the trace says what the time was.
    pub fn is_unknown(self) -> bool {
        self == Self::AfterLastEvent || Self::UNKNOWN.contains(&self)
    }
}

impl Role {
    /// Whether the edge leaves a running kernel, and so is finished only at its target.
    pub fn is_inside(self) -> bool {
        matches!(
            self,
            Self::OverlapInside | Self::DeviceOccupied | Self::SyncInside | Self::LostNode
        )
    }

    /// 0 for the own lane, 1 for what waits on another lane, 2 for launches: the
    /// smaller one wins a tie.
    pub fn tie_class(self) -> u8 {
        match self {
            Self::Launch | Self::LaunchInside | Self::Clock => 2,
            Self::EventWait
            | Self::JointCollective
            | Self::DeviceOccupied
            | Self::LostNode
            | Self::Sync
            | Self::SyncInside
            | Self::Staging
            | Self::QueueFull
            | Self::Handover => 1,
            // All are listed, so that a new role asks for its class.
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

    /// Whether the edge leads from the call that launched the work.
    pub fn launches(self) -> bool {
        matches!(self, Self::Launch | Self::LaunchInside)
    }

    /// Whether the edge leads from the end of other work that had to be over first.
    pub fn releases(self) -> bool {
        matches!(self, Self::StreamOrder | Self::EventWait | Self::GraphOrder)
    }

    /// The kind of waiting that the edge stands for, if a program could leave it out.
    pub fn waits(self) -> Option<Kind> {
        match self {
            // A copy that is staged waits for its turn on the stream.
            Self::Sync | Self::SyncInside | Self::Staging => Some(Kind::SyncReturn),
            Self::EventWait => Some(Kind::EventWait),
            Self::QueueFull => Some(Kind::QueueFull),
            _ => None,
        }
    }

    /// Whether the edge says how long something itself takes, not what it waits for.
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
