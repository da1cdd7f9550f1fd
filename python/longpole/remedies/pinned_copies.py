"""Copies between the GPU and pageable memory.

The driver stages such copies through a buffer of its own: they reach only part of the bandwidth of
the link, and their calls wait even if the program makes them asynchronous.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_left
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from longpole.engine.critical_path.changes import RemoveWait, Replace, Scale
from longpole.remedies.model import Found, Remedy
from longpole.remedies.round_trip import trips
from longpole.words.wording import count, duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from longpole.engine.critical_path.changes import Change
    from longpole.remedies.facts import Facts
    from longpole.remedies.recorded import Activity, ThreadGap

# Smaller copies take as long as their call, which pinned memory does not change.
_LEAST_BYTES: Final = 1 << 20

# Bandwidth of pinned copies if the trace has none to compare with, in bytes per ns: on the link of
# the device, and on that of an unknown one. 16 lanes of PCIe 3, 4 and 5 have 15.8, 31.5 and 63 GB/s
# in each direction.
_OF_LINK: Final = (
    (re.compile(r"\b(H100|H200|H20|B100|B200|B300|MI3\d\dX?)\b"), (40.0, 56.0)),
    (re.compile(r"\b(A100|A800|A30|A40|A10G?|L4|L40S?|MI2\d\dX?|RTX [34A]\d+)\b"), (20.0, 27.0)),
    (re.compile(r"\b(V100|P100|P40|T4|RTX 20\d\d|MI[56]0|MI100)\b"), (10.0, 13.5)),
)
_PINNED: Final = (22.0, 56.0)

CALL_NS: Final = 10_000
"""Time of a call that only enqueues a copy."""

# The C library maps larger blocks one by one and returns them to the system when they are freed,
# which was measured at 15 to 30 bytes per ns. Shorter gaps are not examined.
_MAPPED_BYTES: Final = 32 << 20
_FREED: Final = 15.0
_SHORTEST_GAP_NS: Final = 100_000

# Operator that copies to a new tensor.
_NEW: Final = "aten::_to_copy"

# Copies that already reach this share of the bandwidth of pinned ones are skipped.
_NEARLY: Final = 0.7


# A copy of unknown size that takes this long is not small; one that is slower than any link, in
# bytes per ns, does not have the recorded size. The last value is the fraction of its time that
# remains without staging: maximum and minimum.
_LONG_NS: Final = 200_000
_SLOWEST: Final = 0.1
_STAYS: Final = (0.6, 0.1)


class _Copy(NamedTuple):
    work: Activity
    n_bytes: int | None

    @property
    def is_large(self) -> bool:
        if self.n_bytes is None:
            return self.work.duration_ns >= _LONG_NS
        return self.n_bytes >= _LEAST_BYTES

    @property
    def bandwidth(self) -> float:
        """Bandwidth in bytes per ns; 0 if unknown."""
        return (self.n_bytes or 0) / max(self.work.duration_ns, 1)

    def time_ns(self, rate: float, stays: float) -> int:
        """Return the time at a bandwidth, or if its size is unknown, a share of its time."""
        if self.n_bytes is None:
            return round(stays * self.work.duration_ns)
        return min(round(self.n_bytes / rate), self.work.duration_ns)


def _find(facts: Facts) -> Iterator[Found]:
    for rows, is_from_host in ((facts.uploads, True), (facts.downloads, False)):
        sized = [_sized(facts, row) for row in rows]
        large = [row for row in sized if row.is_large]
        ends = [facts.core.pageable_ends(row.work.event) for row in large]
        pageable = [row for row, both in zip(large, ends, strict=True) if any(both)]
        pinned = [row.bandwidth for row, both in zip(large, ends, strict=True) if not any(both)]
        best = max(pinned, default=0.0)
        rates = (best, best) if best else _rates_of_link(facts)
        slow = [row for row in pageable if row.bandwidth < _NEARLY * rates[1]]
        if facts.is_worth(sum(row.work.duration_ns for row in slow)):
            yield _found(facts, slow, rates, is_from_host=is_from_host)


def _sized(facts: Facts, row: Activity) -> _Copy:
    """Return a copy with its recorded size, or without if its time contradicts the size."""
    n_bytes = facts.number(row.event, "bytes")
    is_odd = row.duration_ns >= _LONG_NS and (n_bytes or 0) < _SLOWEST * row.duration_ns
    return _Copy(row, None if is_odd else n_bytes)


def _rates_of_link(facts: Facts) -> tuple[float, float]:
    """Return the lowest and the highest bandwidth of pinned copies, in bytes per ns."""
    name = facts.device_name or ""
    return next((rates for pattern, rates in _OF_LINK if pattern.search(name)), _PINNED)


def _found(
    facts: Facts, copies: list[_Copy], rates: tuple[float, float], *, is_from_host: bool
) -> Found:
    calls = [row.work.call for row in copies if row.work.call is not None]
    quick_calls: list[Change] = [_shortened(facts, call) for call in calls]
    least, most = (_at(*both, copies) for both in zip(rates, _STAYS, strict=True))
    # The host needs results at once that it copies back, and perhaps others.
    used = set() if is_from_host else {trip.down.event for trip in facts.once(trips)}
    later = [row for row in copies if row.work.event not in used]
    no_waits = [RemoveWait(events=_waits(facts, later))] if later else []
    if is_from_host:
        careful = [*least, *quick_calls, *no_waits]
        hopeful = [*_beside(facts, most), *quick_calls, *no_waits]
    else:
        quick_calls += _unfreed(facts, copies)
        careful = [*least, *quick_calls, *_quick_returns(facts, copies)]
        at_once = [row for row in copies if row.work.event in used]
        hopeful = [*most, *quick_calls, *_quick_returns(facts, at_once), *no_waits]
    n_bytes = sum(row.n_bytes or 0 for row in copies)
    total_ns = sum(row.work.duration_ns for row in copies)
    n_copies = round(facts.per_window(len(copies)))
    return Found(
        careful=careful,
        hopeful=hopeful,
        advice=_advice(facts, is_from_host=is_from_host),
        evidence=(
            f"{count(max(n_copies, 1), 'copy', 'copies')} of "
            f"{n_bytes / len(copies) / 1e6:,.1f} MB {facts.each} "
            f"{'reaches' if n_copies <= 1 else 'reach'} {n_bytes / total_ns:.1f} GB/s"
            if n_bytes
            else f"{count(max(n_copies, 1), 'copy', 'copies')} {facts.each} of a size "
            f"that was not recorded {'takes' if n_copies <= 1 else 'take'} "
            f"{duration(facts.told_ns([row.work for row in copies]))}"
        ),
        name=facts.name(copies[0].work.event),
        events=facts.longest(row.work for row in copies),
    )


def _advice(facts: Facts, *, is_from_host: bool) -> str:
    is_of_torch = facts.is_of_torch
    if is_from_host:
        how = "with pinned memory and `non_blocking=True`"
        how = how if is_of_torch else "from pinned memory and asynchronously"
        return f"Copy to the GPU {how}, best while other work runs"
    how = "with `non_blocking=True`" if is_of_torch else "asynchronously"
    return f"Copy from the GPU into a pinned buffer {how}"


def _waits(facts: Facts, copies: Sequence[_Copy]) -> list[int]:
    """Return the calls that wait for the copies.

    Without `non_blocking`, PyTorch waits for the stream right after it enqueues a copy.
    """
    works = {row.work.event for row in copies}
    calls = {row.work.call for row in copies if row.work.call is not None}
    places = {facts.enclosing_operator(call) for call in calls} - {None}
    waits = {wait.call.event for wait in facts.waits if wait.work in works}
    others = {wait.call.event for wait in facts.waits} - calls
    return sorted(calls | waits | {it for it in others if facts.enclosing_operator(it) in places})


def _quick_returns(facts: Facts, copies: Sequence[_Copy]) -> Iterator[Change]:
    """Yield the changes after which calls return soon after their copies, without staging."""
    for row in copies:
        if row.work.call is not None:
            end_ns = row.work.start_ns + row.work.duration_ns
            return_ns = facts.place(row.work.call).end_ns - end_ns
            if return_ns > CALL_NS:
                by = CALL_NS / return_ns
                yield Scale(kind="sync_return", by=by, events=[row.work.call])


def _unfreed(facts: Facts, copies: Sequence[_Copy]) -> Iterator[Change]:
    """Yield the changes after which the host does not free the memory of large results.

    It does so in the longest gap before the next copy, unless other work takes most of that.
    """
    calls = sorted(_mapped(facts, copies))
    gaps = sorted(facts.gaps(_SHORTEST_GAP_NS) if calls else [], key=_place_of)
    for (lane, end_ns, n_bytes), following in pairwise([*calls, (sys.maxsize, 0, 0)]):
        ends = ((lane, end_ns), min(following[:2], (lane + 1, 0)))
        bounds = (bisect_left(gaps, end, key=_place_of) for end in ends)
        longest = max(gaps[slice(*bounds)], key=lambda gap: gap.duration_ns, default=None)
        freed_ns = n_bytes / _FREED
        if longest is not None and longest.duration_ns < 2 * freed_ns:
            by = max(1 - freed_ns / longest.duration_ns, 0.0)
            yield Scale(by=by, time_ranges=[longest.time_range])


def _mapped(facts: Facts, copies: Sequence[_Copy]) -> Iterator[tuple[int, int, int]]:
    """Yield thread, end and bytes of each copy to new memory that is mapped for it alone."""
    for row in copies:
        if row.work.call is not None and row.n_bytes is not None and row.n_bytes >= _MAPPED_BYTES:
            place = facts.place(row.work.call)
            if any(name == _NEW for _, _, name in facts.around(row.work.call)):
                yield place.lane, place.end_ns, row.n_bytes


def _place_of(gap: ThreadGap) -> tuple[int, int]:
    return gap.lane, gap.start_ns


def _beside(facts: Facts, copies: Sequence[Replace]) -> Iterator[Change]:
    """Yield the part of the copies that is left if they run while the kernels run."""
    copied_ns = sum(change.time_ns * len(change.events) for change in copies)
    kernels_ns = sum(row.duration_ns for row in facts.kernels)
    left = 1 - min(kernels_ns / max(copied_ns, 1), 1.0)
    for change in copies:
        yield Replace(time_ns=round(left * change.time_ns), events=change.events)


def _at(rate: float, stays: float, copies: Sequence[_Copy]) -> list[Replace]:
    """Return the changes that let each copy reach at least a bandwidth."""
    of_time: dict[int, list[int]] = {}
    for row in copies:
        of_time.setdefault(row.time_ns(rate, stays), []).append(row.work.event)
    return [Replace(time_ns=time_ns, events=events) for time_ns, events in of_time.items()]


def _shortened(facts: Facts, call: int) -> Change:
    """Return the change after which a call only enqueues its copy, without staging it."""
    length_ns = max(facts.place(call).duration_ns or 0, CALL_NS)
    return Scale(by=CALL_NS / length_ns, events=[call])


REMEDY: Final = Remedy(
    id="pinned_copies",
    side="copies",
    effort="one_line",
    needs="memcpys, best with their bytes",
    seen_by="copies of at least 1 MB from or to pageable memory, or of an unknown size and 0.2 ms",
    change=(
        "copies at the bandwidth that pinned ones reach in the trace (else 40 to 56 GB/s on an "
        "H100, 20 to 27 on an A100), calls that only enqueue them, no wait for copies to the GPU, "
        "and no results of 32 MiB or more to free; at most, copies to the GPU run next to kernels, "
        "and only results that are copied back are waited for. Of an unknown size, 10 to 60 % of "
        "the time stay"
    ),
    not_when="the memory is pinned, or the copies are small",
    find=_find,
)
