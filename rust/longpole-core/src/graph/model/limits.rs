//! Every number that the definition of the critical path leaves to judgement, each
//! with its reason.
//!
//! None of them decides which edge binds: latencies need no threshold. They only say
//! when a profiler that was silent may be helped out by a guess, and each guess is
//! marked as inferred. "Seen" means: on profiles of V100, A100, H100 and MI250 machines.

const US: i64 = 1_000;

/// Calls that synchronise and found nothing to wait for were seen to take 1.0 us in
/// the median and 3.1 us at the third quartile. Shorter than this, a call is not
/// asked what it waited for.
pub const SHORTEST_WAIT_NS: i64 = 3_200;

/// The shortest call that was seen to wait where the wait was recorded. A shorter one may
/// just as well have found nothing to wait for: it takes good evidence to say what it
/// waited for, and the next thing to end on some stream is not.
pub const LONG_SYNC_NS: i64 = 8 * US;

/// From the end of the work to the end of the call that waited for it. 3 to 8 us were
/// seen where the wait was recorded; ...
pub const SYNC_RETURN_NS: i64 = 10 * US;

/// ... and nowhere less than this.
pub const QUICKEST_RETURN_NS: i64 = US;

/// How far the clocks of host and device may disagree; a round number, not measured.
/// Work that ends this much after the call that waited for it still is what it waited
/// for. Starts before their own call are counted, those by more than this apart.
pub const CLOCK_TOLERANCE_NS: i64 = 10 * US;

/// Work starts no sooner than this after its call began to launch it; 2.0 us were seen. A
/// clock that says otherwise is behind.
pub const QUICKEST_LAUNCH_NS: i64 = US;

/// What the quickest launch of a trace takes from the start of its call, where clocks are
/// corrected: 2 to 6 us on simulated programs, 2 to 25 us on profiles.
pub const USUAL_LAUNCH_NS: i64 = 4 * US;

/// Several launches that start as soon as this, once a clock is corrected, confirm it.
pub const QUICK_LAUNCH_NS: i64 = 10 * US;

/// Three launches of a device into empty streams that take the same, but for so much, ...
pub const ALIKE_LAUNCHES_NS: i64 = 5 * US;

/// ... and so much longer than those of another device of the process, show a clock that is
/// ahead.
pub const LATE_LAUNCHES_NS: i64 = 8 * US;

/// What a call takes to return from a wait, at the least, where clocks are corrected.
pub const USUAL_RETURN_NS: i64 = 2 * US;

/// Work that waited for an end on another device starts no sooner than this after it: 1 us was
/// seen at the least within a device.
pub const QUICKEST_RELEASE_NS: i64 = US;

/// Several such starts that come no later than this, once a clock is corrected, confirm it.
pub const USUAL_RELEASE_NS: i64 = 4 * US;

/// Clocks that were moved may still disagree by this: 3 us were left on simulated programs. What
/// seems to have been released earlier was not waited for.
pub const UNEVEN_CLOCKS_NS: i64 = 5 * US;

/// So many events must say that a clock is off: one or two may be badly stamped.
pub const LEAST_CLOCK_EVIDENCE: usize = 3;

/// Where one stream is used alone, the latency seen is at most 13 us after a
/// predecessor and 8 us after a launch. Later than this needs a reason.
pub const LATE_START_NS: i64 = 20 * US;

/// The same where the program itself asked the stream to wait: twice the usual
/// latency is enough.
pub const LATE_START_AFTER_WAIT_CALL_NS: i64 = 5 * US;

/// From the end of the work waited for to the start that it releases on another
/// stream. Seen are 1 to 9 us; the longer the reach, the more ends are near by chance.
pub const WAIT_RELEASE_NS: i64 = 10 * US;

/// The same where the program asked the stream to wait: a near end is hardly chance.
pub const WAIT_RELEASE_AFTER_WAIT_CALL_NS: i64 = 25 * US;

/// The kernels of one collective end this close to each other, or within this part of the
/// time that they all run. Those of two collectives overlap by chance and end anywhere.
pub const JOINT_ENDS_NS: i64 = 10 * US;

/// See [`JOINT_ENDS_NS`].
pub const JOINT_ENDS_PART: i64 = 4;

/// A thread may begin this long after what the main thread did last: those of autograd
/// were seen to begin 79 to 179 us after it, slow ones 0.6 to 0.9 ms.
pub const THREAD_START_NS: i64 = 1_000 * US;

/// A run of queries shorter than this is an allocator that looks at its events: of 6,856
/// runs seen on profiles, all were, and 99 took longer.
pub const LONG_POLL_NS: i64 = 20 * US;

/// A query sees work that ends this long after it began.
pub const QUERY_SEES_NS: i64 = US / 2;

/// A gap of a thread that is shorter than this is no wait for a queue.
pub const QUEUE_GAP_NS: i64 = 20 * US;

/// So many gaps, and so many ends of one name, it takes to tell a queue from chance.
pub const LEAST_QUEUE_GAPS: usize = 5;

/// How soon after an end a gap may end; the first reach that finds a name is taken.
pub const QUEUE_REACHES_NS: [i64; 3] = [20 * US, 50 * US, 150 * US];

/// A thread that wakes slowly takes much the same time every time, at most longer by so many
/// percent: that tells a wait from chance better than a long reach does.
pub const QUEUE_SPREAD_PERCENT: i64 = 60;

/// So many of such stretches lie side by side up to the farthest reach.
pub const QUEUE_STRETCHES: f64 = 10.0;

/// So many gaps of a hundred must end that soon. 60, 80 and 90 find the same.
pub const QUEUE_PERCENT: usize = 80;

/// The chance of that many must be below this: none of 5,502 names on profiles comes
/// near, and a hundredth of it would miss eight loaders.
pub const QUEUE_CHANCE: f64 = 1e-4;

/// The same where, in nearly every gap, as many ended as the thread has gone on for: who takes one
/// from a queue for each that was put into it counts alike.
pub const COUNTED_QUEUE_CHANCE: f64 = 1e-3;

/// A synchronising call that returns this long after all that it is known to have waited
/// for, waited for something else: those that found nothing took up to 47 us in profiles.
pub const UNRECORDED_WAIT_NS: i64 = 50 * US;

/// The same where the work of the thread's newest launch is missing, or the copy of a
/// call that copies.
pub const LOST_WAIT_NS: i64 = 20 * US;

/// A start this late after the work before it on its stream waited for something missing, if its
/// thread made a launch in between whose work is missing, or has no launcher itself; ...
pub const LATE_AFTER_LOST_NS: i64 = 5 * US;

/// ... and so did one this late after its launch: 8 us were seen at the most.
pub const LATE_LAUNCH_AFTER_LOST_NS: i64 = 8 * US;

/// So many replays of a graph are enough to learn what its nodes wait for, ...
pub const LEAST_REPLAYS: usize = 3;

/// ... where at least this many of them support it, ...
pub const LEAST_SUPPORT: usize = 2;

/// ... and a node is late by this, or by twice what its graph usually takes from node to
/// node: on simulated programs, the median in place of a low percentile found 94 % of the
/// path with 16 streams, and this 100 %.
pub const LATE_REPLAY_NS: i64 = 2 * US;

/// Of two nodes that ended within this of each other before a node of a graph launched once,
/// either may have been waited for: how long a wait takes varies by more. On simulated graphs over
/// four streams, launched once, 1.0 % of the time was falsely certain, and 1.5 % with a fifth of this.
pub const TOGETHER_NS: u64 = 500;

/// Launches whose nodes differ are of one graph if this part of all their nodes is the same.
pub const LEAST_SAME_NODES: (usize, usize) = (3, 4);

/// So many graphs are compared with one whose nodes differ: those with the next more nodes.
pub const MOST_GRAPHS_TRIED: usize = 16;

/// A node that starts this late, and after its call has returned, shows a gap in its graph.
pub const GRAPH_GAP_NS: i64 = 20 * US;

/// A kernel that starts while its predecessor on the stream still runs was released
/// from inside that, unless something else ended this shortly before.
pub const OVERLAP_SOURCE_NS: i64 = 5 * US;

/// A device that idles longer than this, with its next work submitted and no reason
/// in the trace, is unexplained; the launch is not blamed. A round number: with four
/// busy streams 99 % of the latencies of launches that bound were below 46 us.
pub const UNEXPLAINED_NS: i64 = 100 * US;

/// Nine launches of ten were seen to take less than 21 us.
pub const LONG_LAUNCH_NS: i64 = 20 * US;

/// The queue of a stream holds 1,024 entries. Of 1,139 long launches into more than
/// 1,000 GPU activities, 1,132 found 1,022 of them outstanding, the rest being entries
/// that no profiler shows. Some room is left for more of those.
pub const FULL_QUEUE_OPERATIONS: usize = 950;

/// A call that frees or allocates and waits for the device returns this soon after
/// the device is done, ...
pub const IMPLICIT_RETURN_NS: i64 = 50 * US;

/// ... or within this part of its own duration, which grows with what must be
/// unmapped. Anything slower was slow by itself: some allocations take seconds.
pub const IMPLICIT_RETURN_PART: i64 = 5;

/// Work that ends this long after a call began was outstanding.
pub const OUTSTANDING_NS: i64 = 3 * US;

/// Calls of a name never wait if one in this many returned while work went on: `hipMalloc` did
/// in 163 of 166 cases, `hipFree` in none of 560.
pub const NEVER_WAITING_PART: usize = 10;

/// The latency of an edge that did not bind is taken to be this percentile of those
/// of its role that did: low, for whatever else delays an edge makes it longer.
pub const TYPICAL_PERCENT: usize = 10;

/// A gap that is so many times as long as is typical has another reason.
pub const ODDLY_LONG: i64 = 2;

/// What finished this long before has no part in a latency: 13 us were seen at the most
/// after a predecessor, 8 us after a launch.
pub const UNDISTURBED_NS: i64 = 10 * US;

/// With more than one part in this many unknown, the path is no basis for a decision. On
/// simulated programs a tenth caught 79 % of the bad paths and no good one, a fifth
/// caught half as many.
pub const INCONCLUSIVE_PART: i64 = 10;

/// A GPU activity holds on to this many of those that ran beside it on its stream,
/// the last to end. Streams run two or three at once; without a limit, a damaged
/// trace could make more edges than fit into memory.
pub const MOST_OVERLAPS: usize = 64;

/// Times beyond this (the year 2116, if they count from 1970) take no part, so that
/// the distance of any two times is a time again.
pub const LARGEST_TIME_NS: i64 = (1 << 62) - 1;
