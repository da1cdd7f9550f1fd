//! The thresholds of the critical path, each with its reason.
//!
//! No threshold decides which edge binds. Thresholds only decide when a dependency that the
//! profiler did not record is inferred, and such edges are marked as inferred. "Observed" refers to
//! profiles of V100, A100, H100 and MI250 machines.

const US: i64 = 1_000;

/// No wait is inferred for shorter calls: synchronization calls that had nothing to wait
/// for took 1.0 us in the median and 3.1 us at the third quartile.
pub const SHORTEST_WAIT_NS: i64 = 3_200;

/// The shortest observed call with a recorded wait. A shorter call may have had nothing to wait
/// for: inferring a wait for it needs strong evidence, and the next activity to end on any stream
/// is not.
pub const LONG_SYNC_NS: i64 = 8 * US;

/// Maximum time from the end of an activity to the end of the call that waited for it. 3 to 8 us
/// were observed for recorded waits.
pub const SYNC_RETURN_NS: i64 = 10 * US;

/// Minimum time from the end of an activity to the end of the call that waited for it; shorter ones
/// were never observed.
pub const QUICKEST_RETURN_NS: i64 = US;

/// Tolerated disagreement between the clocks of host and device; a round number, not measured. An
/// activity that ends at most this much after the call that waited for it is still accepted. Starts
/// before their call are counted separately if they are earlier by more than this.
pub const CLOCK_TOLERANCE_NS: i64 = 10 * US;

/// A recorded wait is kept if its activity ends after the call by at most this part of the wait,
/// or [`CLOCK_TOLERANCE_NS`]: clocks that jump were seen to be off by 14 us.
const TOLERATED_PART_OF_WAIT: i64 = 500;

const MOST_TOLERATED_NS: i64 = 50 * US;

/// Returns how much later than its call an awaited activity may end.
pub fn tolerated_ns(wait_ns: i64) -> i64 {
    (wait_ns / TOLERATED_PART_OF_WAIT).clamp(CLOCK_TOLERANCE_NS, MOST_TOLERATED_NS)
}

/// Minimum time from the start of a launch call to the start of its activity; 2.0 us were observed.
/// An earlier start means that the device clock is behind.
pub const QUICKEST_LAUNCH_NS: i64 = US;

/// Assumed time from the start of a launch call to the start of its activity for the fastest launch
/// of a trace, used to correct clocks: 2 to 6 us on simulated programs, 2 to 25 us on profiles.
pub const USUAL_LAUNCH_NS: i64 = 4 * US;

/// A clock correction is confirmed if several launches then start within this time.
pub const QUICK_LAUNCH_NS: i64 = 10 * US;

/// Spread allowed between three launches of a device to empty streams that count as equally fast.
pub const ALIKE_LAUNCHES_NS: i64 = 5 * US;

/// A clock is ahead if such launches take this much longer than those of another device of the
/// process.
pub const LATE_LAUNCHES_NS: i64 = 8 * US;

/// Assumed time from the end of an activity to the fastest return of a call that waited for it,
/// used to correct clocks.
pub const USUAL_RETURN_NS: i64 = 2 * US;

/// Returns of calls that waited agree if they differ by no more than this.
pub const ALIKE_RETURNS_NS: i64 = 2 * US;

/// Number of calls that need no other evidence if they agree that the device clock is ahead.
pub const MANY_ALIKE_RETURNS: usize = 5;

/// If the fastest calls return later than this after what they waited for, the timestamps of the
/// device are probably too early.
pub const SLOW_RETURN_NS: i64 = 5 * US;

/// A segment of the path between host and device is doubtful if this many times the probable clock
/// error exceeds its length.
pub const DOUBTED_CLOCK_PART: i64 = 4;

/// Minimum time from the end of an activity to the start of one on another device that waited for
/// it; within a device, 1 us was the observed minimum.
pub const QUICKEST_RELEASE_NS: i64 = US;

/// A clock correction is confirmed if several starts that waited for another device then come
/// within this time.
pub const USUAL_RELEASE_NS: i64 = 4 * US;

/// Remaining disagreement between corrected clocks: 3 us on simulated programs. A start that is
/// earlier than the end of an activity by more than this did not wait for it.
pub const UNEVEN_CLOCKS_NS: i64 = 5 * US;

/// Minimum number of events that must agree that a clock is off; one or two may have wrong
/// timestamps.
pub const LEAST_CLOCK_EVIDENCE: usize = 3;

/// A clock that seems to jump more often is not corrected by parts: its timestamps are wrong for
/// another reason. One jump in 1 s was seen.
pub const MOST_CLOCK_JUMPS: usize = 64;

/// A start later than this needs a reason. On streams used alone, the maximum observed latency was
/// 13 us after a predecessor and 8 us after a launch.
pub const LATE_START_NS: i64 = 20 * US;

/// Like [`LATE_START_NS`], if the program made the stream wait: twice the usual latency is enough.
pub const LATE_START_AFTER_WAIT_CALL_NS: i64 = 5 * US;

/// Maximum time from the end of the awaited activity to the start on another stream. 1 to 9 us were
/// observed; a larger limit matches more ends by chance.
pub const WAIT_RELEASE_NS: i64 = 10 * US;

/// Like [`WAIT_RELEASE_NS`], if the program made the stream wait: an end this near is unlikely to
/// be chance.
pub const WAIT_RELEASE_AFTER_WAIT_CALL_NS: i64 = 25 * US;

/// The kernels of one collective end this close to each other, or within the [`JOINT_ENDS_PART`]-th
/// part of the time in which all of them run. Kernels of two collectives that overlap by chance end
/// at unrelated times.
pub const JOINT_ENDS_NS: i64 = 10 * US;

/// Minimum number of late starts right after an end on the other side which show that a stream and
/// the others of its device implicitly wait for each other.
pub const LEAST_SERIAL_WAITS: usize = 3;

/// A start that two edges explain, by what their roles usually take, is decided by neither if these
/// differ by less: latencies of launches vary by more.
pub const EITHER_BOUND_NS: i64 = 3 * US;

/// See [`JOINT_ENDS_NS`].
pub const JOINT_ENDS_PART: i64 = 4;

/// Maximum time from the last event of the main thread to the first event of another thread.
/// Autograd threads began 79 to 179 us after it, slow ones 0.6 to 0.9 ms.
pub const THREAD_START_NS: i64 = 1_000 * US;

/// Shorter runs of queries are attributed to an allocator that checks its events: of 6,856 observed
/// runs, all were by an allocator, and 99 took longer.
pub const LONG_POLL_NS: i64 = 20 * US;

/// A query can return the result of an activity that ends up to this long after the query began.
pub const QUERY_SEES_NS: i64 = US / 2;

/// Shorter gaps of a thread do not count as waits for a queue.
pub const QUEUE_GAP_NS: i64 = 20 * US;

/// Minimum number of gaps, and of ends of one name, needed to infer a queue.
pub const LEAST_QUEUE_GAPS: usize = 5;

/// Maximum times from an end to the end of the gap, tried in this order; the first that identifies
/// a name is used.
pub const QUEUE_REACHES_NS: [i64; 3] = [20 * US, 50 * US, 150 * US];

/// A slow wake-up takes much the same time every time, at most this many percent longer. Similar
/// latencies distinguish a wait from chance better than a larger maximum does.
pub const QUEUE_SPREAD_PERCENT: i64 = 60;

/// Number of such ranges up to the largest maximum, for the correction for multiple tests.
pub const QUEUE_STRETCHES: f64 = 10.0;

/// Percentage of gaps that must end within the maximum. 60, 80 and 90 find the same queues.
pub const QUEUE_PERCENT: usize = 80;

/// Maximum probability that the gaps match by chance: none of 5,502 names on profiles comes
/// close, and a limit of a hundredth would miss eight loaders.
pub const QUEUE_CHANCE: f64 = 1e-4;

/// Like [`QUEUE_CHANCE`], if in nearly every gap the number of ends equals the number of times that
/// the thread has continued: a consumer takes exactly one item for each that was added.
pub const COUNTED_QUEUE_CHANCE: f64 = 1e-3;

/// A synchronization call that returns this long after everything it is known to have waited for
/// waited for something else. Calls that had nothing to wait for took up to 47 us on profiles.
pub const UNRECORDED_WAIT_NS: i64 = 50 * US;

/// Like [`UNRECORDED_WAIT_NS`], if the activity of the thread's latest launch is missing, or the
/// copy of a copy call.
pub const MISSING_WAIT_NS: i64 = 20 * US;

/// A start this late after its stream predecessor waited for something missing, if its thread made
/// a launch without an activity in between, or if the start has no launcher itself.
pub const LATE_AFTER_MISSING_NS: i64 = 5 * US;

/// Like [`LATE_AFTER_MISSING_NS`], measured from the launch of the activity: 8 us were observed at
/// most.
pub const LATE_LAUNCH_AFTER_MISSING_NS: i64 = 8 * US;

/// Minimum number of launches of a graph needed to learn its dependencies.
pub const LEAST_REPLAYS: usize = 3;

/// Minimum number of launches that must support a learned dependency.
pub const LEAST_SUPPORT: usize = 2;

/// A graph node is late by this, or by twice the usual latency between nodes of its graph. On
/// simulated programs with 16 streams, 100 % of the path was found; with the median instead of a
/// low percentile as the usual latency, 94 %.
pub const LATE_REPLAY_NS: i64 = 2 * US;

/// If two nodes ended within this time of each other before a node of a graph launched once, either
/// may have been waited for, because wait latencies vary by more. On simulated graphs with four
/// streams, launched once, 1.0 % of the time was wrongly certain, and 1.5 % with a fifth of this
/// limit.
pub const TOGETHER_NS: u64 = 500;

/// Launches with different nodes belong to one graph if this fraction of all their nodes is the
/// same.
pub const LEAST_SAME_NODES: (usize, usize) = (3, 4);

/// Maximum number of graphs compared with one whose nodes differ: those with the next larger
/// numbers of nodes.
pub const MOST_GRAPHS_TRIED: usize = 16;

/// A node that starts this late, and after its call has returned, follows an unexplained gap in its
/// graph.
pub const GRAPH_GAP_NS: i64 = 20 * US;

/// A kernel that starts while its stream predecessor still runs was released from inside that
/// predecessor, unless another activity ended within this time before.
pub const OVERLAP_SOURCE_NS: i64 = 5 * US;

/// A longer idle time of a device whose next activity was already launched is unexplained if the
/// trace shows no reason; it is not attributed to the launch. A round number: with four busy
/// streams, 99 % of the latencies of binding launches were below 46 us.
pub const UNEXPLAINED_NS: i64 = 100 * US;

/// Nine of ten observed launches took less than 21 us.
pub const LONG_LAUNCH_NS: i64 = 20 * US;

/// Minimum number of outstanding activities of a full queue. The queue of a stream holds 1,024
/// entries. Of 1,139 long launches with more than 1,000 outstanding activities, 1,132 found 1,022;
/// profilers do not show the other entries. The limit leaves room for more of those.
pub const FULL_QUEUE_OPERATIONS: usize = 950;

/// A call that frees or allocates memory and waits for the device returns within this time after
/// the device is idle.
pub const IMPLICIT_RETURN_NS: i64 = 50 * US;

/// As an alternative to [`IMPLICIT_RETURN_NS`], the return may follow within one part in this many
/// of the call's duration, which grows with the memory to unmap. Slower calls did not wait for the
/// device: some allocations take seconds.
pub const IMPLICIT_RETURN_PART: i64 = 5;

/// An activity that ends this long after a call began was outstanding at the call.
pub const OUTSTANDING_NS: i64 = 3 * US;

/// Calls of a name never wait if one in this many returned while activities still ran: `hipMalloc`
/// did in 163 of 166 cases, `hipFree` in none of 560.
pub const NEVER_WAITING_PART: usize = 10;

/// Percentile of the binding edges of a role that is used as the latency of its other edges. It is
/// low because any other delay makes an edge longer.
pub const TYPICAL_PERCENT: usize = 10;

/// A gap of this many times the typical latency has another reason.
pub const ODDLY_LONG: i64 = 2;

/// Something that finished this long before does not influence a latency: the maximum observed was
/// 13 us after a predecessor and 8 us after a launch.
pub const UNDISTURBED_NS: i64 = 10 * US;

/// If more than one part in this many is unknown, the path is inconclusive. On simulated programs a
/// tenth caught 79 % of the bad paths and no good one; a fifth caught half as many.
pub const INCONCLUSIVE_PART: i64 = 10;

/// Maximum number of overlapping stream predecessors kept for each activity, the last to end first.
/// Streams run two or three at once; without a limit, a damaged trace could create more edges than
/// fit into memory.
pub const MOST_OVERLAPS: usize = 64;

/// Events with times beyond this (the year 2116, if they count from 1970) are left out, so that the
/// difference of two times cannot overflow.
pub const LARGEST_TIME_NS: i64 = (1 << 62) - 1;
