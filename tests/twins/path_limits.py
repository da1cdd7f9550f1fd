"""Every number the critical path's definition leaves to judgement, each with its reason.

None of them decides which edge binds: latencies need no threshold. They only say when a profiler
that was silent may be helped out by a guess, and each guess is marked ``inferred``.
"""

US = 1_000
"""One microsecond in the unit of all times here, the nanosecond."""

SHORTEST_WAIT_NS = 4 * US
"""A synchronising call that finds nothing to wait for takes 1 to 3 us, its own way into the driver
and back. Shorter than this, a call is not asked what it waited for."""

CLOCK_TOLERANCE_NS = 10 * US
"""How far host and device clocks of one profile may disagree. They are aligned once per
profile and drift; a few us are seen on healthy traces. Device work that ends this much after the
call that waited for it still is what it waited for; starts this much before their own call are
counted as ordinary skew, larger ones apart."""

LATE_START_NS = 20 * US
"""A kernel starts 1 to 10 us after all it needs is there. Later than this needs a reason."""

LATE_START_AFTER_WAIT_CALL_NS = 5 * US
"""The same where the program itself asked the stream to wait: the suspicion is stronger."""

WAIT_RELEASE_NS = 10 * US
"""From the end of the work waited for to the start it releases, on another stream. Two kernels
of one stream follow each other within 1 to 2 us; across streams a semaphore is added."""

WAIT_RELEASE_AFTER_WAIT_CALL_NS = 25 * US
"""The same where the program asked the stream to wait. Releases of 10 to 20 us were seen behind
such calls; without one, so long a distance is as likely chance."""

OVERLAP_SOURCE_NS = 5 * US
"""A kernel that starts while its predecessor on the stream still runs (programmatic dependent
launch) was released from inside that predecessor, unless something else ended this shortly
before."""

UNEXPLAINED_NS = 100 * US
"""A device that idles longer than this with its next work submitted and no reason in the trace is
said to be unexplained instead of being blamed on the launch. Launch latency stays below even
on a slow host, so that gaps of 20 to 100 us keep their plain name."""

LONG_LAUNCH_NS = 20 * US
"""A launch takes 3 to 10 us. One that takes longer may have found the queue full."""

FULL_QUEUE_OPERATIONS = 950
"""The launch queue of a stream holds 1,024 entries; launches that wait find 1,021 or 1,022 kernels
and copies outstanding, the rest being entries no profiler shows. Some room is left for more of
those, far above what a queue holds that is merely busy."""

IMPLICIT_RETURN_NS = 50 * US
"""A free or an allocation that waits for the device returns this soon after the device is done,"""

IMPLICIT_RETURN_SHARE = (1, 5)
"""or within this share of its own duration (numerator, denominator): what is freed must still be
unmapped, and that grows with it. Anything slower was slow by itself."""

TYPICAL_PERCENT = 10
"""The latency an edge that did not bind would have shown is the 10th percentile of those of
its role that did: low, because whatever else delays an edge makes it longer, never shorter."""

INCONCLUSIVE_SHARE = (1, 5)
"""From this share of unexplained time on, the path is no basis for a decision."""
