"""Every number the critical path's definition leaves to judgement, each with its reason.

None of them decides which edge binds: latencies need no threshold. They only say when a profiler
that was silent may be helped out by a guess, and each guess is marked ``inferred``. All are
judgement, made with what real profiles of V100, A100, H100 and MI250 show; "seen" means seen there.
"""

US = 1_000
"""One microsecond in the unit of all times here, the nanosecond."""

SHORTEST_WAIT_NS = 3_200
"""Synchronising calls that found nothing to wait for were seen to take 1.0 us in the median and 3.1
us at the third quartile. Shorter than this, a call is not asked what it waited for."""

LONG_SYNC_NS = 8 * US
"""The shortest call that was seen to wait where the wait was recorded. A shorter one may just as
well have found nothing to wait for: it takes good evidence to say what it waited for, and the next
thing to end on some stream is not."""

SYNC_RETURN_NS = 10 * US
"""From the end of the work to the end of the call that waited for it: 3 to 8 us were seen where the
wait was recorded,"""

QUICKEST_RETURN_NS = US
"""and nowhere less than this."""

CLOCK_TOLERANCE_NS = 10 * US
"""How far host and device clocks of one profile may disagree; a round number, not measured. Work
that ends this much after the call that waited for it still is what it waited for. Starts before
their own call are counted, those by more than this apart."""

QUICKEST_LAUNCH_NS = US
"""Work starts no sooner than this after its call began: 2.0 us were seen. A clock that says
otherwise is behind."""

USUAL_LAUNCH_NS = 4 * US
"""What the quickest launch takes from the start of its call, where a clock is corrected: 2 to 25 us
were seen."""

QUICK_LAUNCH_NS = 10 * US
"""Several launches that start as soon as this, once a clock is corrected, confirm it."""

LATE_AFTER_LOST_NS = 5 * US
"""Work without a launcher that starts this late after the work before it was launched late."""

JOINT_ENDS_NS = 10 * US
JOINT_ENDS_PART = 4
"""The kernels of one collective end this close together, or within this part of the time that
they all run."""

OUTSTANDING_NS = 3 * US
"""Work that ends this long after a call began was outstanding."""

NEVER_WAITING_PART = 10
"""Calls of a name never wait if one in this many returned while work went on."""

USUAL_RETURN_NS = 2 * US
"""What a call takes to return from a wait, at the least, where a clock is corrected."""

QUICKEST_RELEASE_NS = US
"""Work that waited for an end on another device starts no sooner than this after it: 1 us was seen
at the least within a device."""

USUAL_RELEASE_NS = 4 * US
"""Several such starts that come no later than this, once a clock is corrected, confirm it."""

UNEVEN_CLOCKS_NS = 5 * US
"""Clocks that were moved may still disagree by this: 3 us were left on simulated programs. What
seems to have been released earlier was not waited for."""

LEAST_CLOCK_EVIDENCE = 3
"""So many events must say that a clock is off: one or two may be badly stamped."""

LATE_START_NS = 20 * US
"""Where one stream is used alone, the latency seen is at most 13 us after a predecessor (2.6 us in
99 % of the cases) and 8 us after a launch. Later than this needs a reason."""

LATE_START_AFTER_WAIT_CALL_NS = 5 * US
"""The same where the program itself asked the stream to wait: the suspicion is stronger, and twice
the usual latency is enough."""

WAIT_RELEASE_NS = 10 * US
"""From the end of the work waited for to the start it releases on another stream. Seen are 1 to
9 us; the longer the reach, the more ends are near by chance."""

WAIT_RELEASE_AFTER_WAIT_CALL_NS = 25 * US
"""The same where the program asked the stream to wait: a near end is then hardly chance."""

OVERLAP_SOURCE_NS = 5 * US
"""A kernel that starts while its predecessor on the stream still runs (programmatic dependent
launch) was released from inside that predecessor, unless something else ended this shortly
before."""

UNEXPLAINED_NS = 100 * US
"""A device that idles longer than this with its next work submitted and no reason in the trace is
said to be unexplained instead of being blamed on the launch. A round number: with four busy streams
99 % of the launches whose latency bound took less than 46 us."""

LONG_LAUNCH_NS = 20 * US
"""Nine launches of ten were seen to take less than 21 us, with those that wait among the rest."""

FULL_QUEUE_OPERATIONS = 950
"""The queue of a stream holds 1,024 entries. Of 1,139 long launches seen with more than 1,000
kernels and copies outstanding, 1,132 had 1,022 of them, the rest being entries no profiler shows.
Some room is left for more of those, above the 900 of launches that were slow by themselves."""

IMPLICIT_RETURN_NS = 50 * US
"""A free or an allocation that waits for the device returns this soon after the device is done,"""

IMPLICIT_RETURN_SHARE = (1, 5)
"""or within this share of its own duration (numerator, denominator), which grows with what must be
unmapped. Anything slower was slow by itself: some allocations take seconds."""

THREAD_START_NS = 1_000 * US
"""A thread may begin this long after what the main thread did last."""

TYPICAL_PERCENT = 10
"""The latency an edge that did not bind would have shown is the 10th percentile of those of
its role that did: low, because whatever else delays an edge makes it longer, never shorter."""

UNDISTURBED_NS = 10 * US
"""What finished this long before has no part in a latency."""

ALIKE_LAUNCHES_NS = 5 * US
"""Three launches of a device into empty streams that take the same, but for so much,"""

LATE_LAUNCHES_NS = 8 * US
"""and so much longer than those of another device of the process, show a clock that is ahead."""

LARGEST_TIME_NS = (1 << 62) - 1
"""Times beyond this take no part."""

INCONCLUSIVE_SHARE = (1, 10)
"""With more than this share of unexplained time, the path is no basis for a decision."""
