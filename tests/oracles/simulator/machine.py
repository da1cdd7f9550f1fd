"""How long things take on a machine: latencies, noise, the limit of a launch queue.

Every draw of noise belongs to one place of the program (thread, item, role), not to the moment
it is asked for. So a program that runs again with a change meets the same noise everywhere else,
and the difference between the two runs is what the change did.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

_WORD = (1 << 64) - 1
_TAIL_LIMIT = 4.0  # no draw lies further out, so that latencies stay below what is suspicious


class Role(IntEnum):
    """What of an item is drawn: each has noise of its own."""

    DURATION = 0
    LATENCY = 1
    GAP = 2
    RETURN = 3
    WORK = 4


class Place(NamedTuple):
    """Where in a program something stands; `part` counts the works of one launch."""

    thread: int
    item: int
    part: int = 0


@dataclass(frozen=True, slots=True)
class Machine:
    """Nominal latencies and the spread around them.

    Parameters
    ----------
    seed
        Of all noise.
    quantum_ns
        Every duration is a multiple of it; 1,000 gives times in whole microseconds.
    spread
        Mean share of a duration that is noise; 0 makes every duration nominal.
    launch_latency_ns
        From the end of a launch call to the earliest start of its work.
    kernel_gap_ns
        Between two GPU activities of one stream.
    event_latency_ns
        From the end of awaited work to the start of the work of another stream.
    return_latency_ns
        From the end of awaited work to the end of the call that waits for it.
    handover_ns
        From one thread to another.
    queue_limit
        Launches a stream holds before the next launch call must wait.
    queue_poll_ns
        The shortest time a call takes that finds its queue full.
    device_clock_offset_ns
        How far the clocks of devices are ahead of the host's. The windows of the truth are in
        the time of the host.
    device_clock_offsets_ns
        Offsets of the devices by number, on top of that of all.
    device_clock_jumps_ns
        When the clocks of devices jump, counted from the first event, and how far ahead.
    """

    seed: int = 0
    quantum_ns: int = 1
    spread: float = 0.15
    launch_latency_ns: int = 4_500
    kernel_gap_ns: int = 900
    event_latency_ns: int = 1_600
    return_latency_ns: int = 3_000
    handover_ns: int = 14_000
    queue_limit: int = 1_024
    queue_poll_ns: int = 25_000
    device_clock_offset_ns: int = 0
    device_clock_offsets_ns: tuple[int, ...] = ()
    device_clock_jumps_ns: tuple[tuple[int, int], ...] = ()

    def draw_ns(self, nominal_ns: int, place: Place, role: Role) -> int:
        """Return a duration with the noise of its place: seldom shorter, sometimes much longer."""
        if nominal_ns <= 0:
            return 0
        tail = min(-math.log1p(-self._uniform(place, role)), _TAIL_LIMIT)
        return self.aligned_ns(nominal_ns * (1.0 - self.spread + self.spread * tail))

    def aligned_ns(self, duration_ns: float) -> int:
        """Round to the quantum, but never to nothing."""
        return max(1, round(duration_ns / self.quantum_ns)) * self.quantum_ns

    def clock_offset_ns(self, device: int) -> int:
        """Return how far the clock of a device is ahead of the host's."""
        own = self.device_clock_offsets_ns[device : device + 1]
        return self.device_clock_offset_ns + sum(own)

    def clock_jumped_ns(self, at_ns: int) -> int:
        """Return how far the clocks of devices have jumped ahead by a time."""
        return sum(by_ns for jump_ns, by_ns in self.device_clock_jumps_ns if jump_ns <= at_ns)

    def _uniform(self, place: Place, role: Role) -> float:
        """Return a number in [0, 1) that depends on the seed and the place alone."""
        word = _mix(self.seed * 0x9E3779B97F4A7C15 + place.thread)
        word = _mix(word + place.item * 0xD1B54A32D192ED03 + place.part)
        return (_mix(word + role) >> 11) / (1 << 53)


def _mix(word: int) -> int:
    """Stafford's thirteenth variant of the MurmurHash3 finisher (as in SplitMix64)."""
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & _WORD
    return word ^ (word >> 31)
