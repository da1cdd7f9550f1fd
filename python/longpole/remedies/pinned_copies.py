"""Copies between the GPU and pageable memory.

The driver stages such copies through a buffer of its own: they reach only part of the bandwidth of
the link, and their calls wait even if the program makes them asynchronous.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from longpole.critical_path.changes import Drop, RemoveWait, Replace, Scale
from longpole.remedies.model import Found, Remedy
from longpole.wording import count, duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from longpole.critical_path.changes import Change
    from longpole.remedies.facts import Activity, Facts

__all__ = ["CALL_NS", "REMEDY"]

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
    for direction, is_from_host in (("HtoD", True), ("DtoH", False)):
        named = [row for row in facts.copies if direction in facts.name(row.event)]
        sized = [_sized(facts, row) for row in named]
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
    works = {row.work.event for row in copies}
    calls = [row.work.call for row in copies if row.work.call is not None]
    waits = [wait.call.event for wait in facts.waits if wait.work in works]
    quick_calls: list[Change] = [_shortened(facts, call) for call in calls]
    # Without `non_blocking`, PyTorch waits for the stream right after it enqueues the copy.
    places = {facts.enclosing_operator(call) for call in calls} - {None}
    after = {wait.call.event for wait in facts.waits} - {*calls}
    own = [event for event in sorted(after) if facts.enclosing_operator(event) in places]
    quick_calls.append(RemoveWait(events=[*calls, *own]))
    no_waits = RemoveWait(events=waits)
    least, most = (_at(*both, copies) for both in zip(rates, _STAYS, strict=True))
    careful = [*least, *quick_calls, *([no_waits] if is_from_host else [])]
    beside: list[Change] = [Drop(kind="copy", events=sorted(works))] if is_from_host else []
    hopeful = [*(beside or most), *quick_calls, no_waits]
    n_bytes = sum(row.n_bytes or 0 for row in copies)
    total_ns = sum(row.work.duration_ns for row in copies)
    n_copies = round(facts.per_window(len(copies)))
    return Found(
        careful=careful,
        hopeful=hopeful,
        advice=(
            "Copy to the GPU with pinned memory and `non_blocking=True`, best while other work runs"
            if is_from_host
            else "Copy from the GPU into a pinned buffer with `non_blocking=True`"
        ),
        evidence=(
            f"{count(max(n_copies, 1), 'copy', 'copies')} of "
            f"{n_bytes / len(copies) / 1e6:,.1f} MB {facts.each} "
            f"{'reaches' if n_copies <= 1 else 'reach'} {n_bytes / total_ns:.1f} GB/s"
            if n_bytes
            else f"{count(max(n_copies, 1), 'copy', 'copies')} {facts.each} of a size "
            f"that was not recorded {'takes' if n_copies <= 1 else 'take'} "
            f"{duration(round(facts.per_window(total_ns)))}"
        ),
        name=facts.name(copies[0].work.event),
        events=facts.longest(row.work for row in copies),
    )


def _at(rate: float, stays: float, copies: Sequence[_Copy]) -> list[Change]:
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
        "copies at the bandwidth that pinned ones reach in the trace (else what they reach on the "
        "link of the device: 40 to 56 GB/s on an H100, 20 to 27 GB/s on an A100), calls that only "
        "enqueue them, and no wait for copies to the GPU; at most, next to other work. Of a copy "
        "of unknown size, 10 to 60 % of the time stay"
    ),
    not_when="the memory is pinned, or the copies are small",
    find=_find,
)
