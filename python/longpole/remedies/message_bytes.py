"""How much of the time of collectives depends on their bytes, by their recorded sizes.

The shortest collective of each size waited least. What it takes longer than the shortest one of
fewer bytes, more bytes cost; the rest is latency, or waiting for other ranks.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from longpole.remedies.small_messages import bytes_of
from longpole.words.wording import duration, memory_size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from longpole.remedies.facts import Facts
    from longpole.remedies.recorded import Activity

# Sizes that differ by a smaller factor do not show what bytes cost.
_APART: Final = 1.5


class OfBytes(NamedTuple):
    """The part of the time of collectives that depends on their bytes."""

    times_ns: Mapping[int, float]
    """For each collective, at most how much of its time."""
    evidence: str

    @property
    def total_ns(self) -> float:
        """The part of all of them."""
        return sum(self.times_ns.values())


def time_of_bytes(facts: Facts, works: Sequence[Activity]) -> OfBytes | None:
    """Return which part of the time of collectives depends on bytes; None if it is not recorded."""
    sizes = {work: bytes_of(facts, work) for work in works}
    least: dict[str, dict[int, int]] = defaultdict(dict)
    for work, n_bytes in sizes.items():
        if not n_bytes:
            return None
        of_name = least[facts.name(work.event)]
        of_name[n_bytes] = min(work.duration_ns, of_name.get(n_bytes, work.duration_ns))
    times = {
        work.event: _of_bytes(least[facts.name(work.event)], n_bytes or 0)
        for work, n_bytes in sizes.items()
    }
    total_ns = sum(work.duration_ns for work in works)
    part_ns, all_ns = (round(facts.per_window(it)) for it in (sum(times.values()), total_ns))
    told = f"at most {duration(part_ns)} of {duration(all_ns)} {facts.each} depend on the bytes"
    shown = max(least.values(), key=len)
    sized = [f"{memory_size(it)} {duration(shown[it])}" for it in (min(shown), max(shown))]
    known = " and ".join(dict.fromkeys(sized))
    return OfBytes(times, f"{told}, as {known} at best; the rest is latency, or waiting for ranks")


def _of_bytes(least: Mapping[int, int], n_bytes: int) -> float:
    """Return at most how much of the time of a collective depends on its bytes."""
    small, large = min(least), max(least)
    own_ns = float(least[n_bytes])
    if large < _APART * small:
        return own_ns
    rate = max(least[large] - least[small], 0) / (large - small)
    return min(rate * n_bytes, own_ns)
