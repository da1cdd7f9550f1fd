"""Copies between the GPU and pageable memory.

The driver stages such copies through a buffer of its own: they reach a part of the bandwidth of the
link, and their calls wait, however asynchronous they are.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from longpole.critical_path.changes import Drop, RemoveWait, Replace, Scale
from longpole.remedies.model import Found, Remedy
from longpole.wording import count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from longpole.critical_path.changes import Change
    from longpole.remedies.facts import Activity, Facts

__all__ = ["REMEDY"]

# Smaller copies take as long as their call, which pinned memory does not change.
_LEAST_BYTES: Final = 1 << 20

# What pinned copies reach where the trace has none to compare with, in bytes a ns: on the link of
# the device, and on that of an unknown one. 16 lanes of PCIe 3, 4 and 5 have 15.8, 31.5 and 63 GB/s
# in each direction.
_OF_LINK: Final = (
    (re.compile(r"\b(H100|H200|H20|B100|B200|B300|MI3\d\dX?)\b"), (40.0, 56.0)),
    (re.compile(r"\b(A100|A800|A30|A40|A10G?|L4|L40S?|MI2\d\dX?|RTX [34A]\d+)\b"), (20.0, 27.0)),
    (re.compile(r"\b(V100|P100|P40|T4|RTX 20\d\d|MI[56]0|MI100)\b"), (10.0, 13.5)),
)
_PINNED: Final = (22.0, 56.0)

# What a call that only enqueues a copy takes.
_CALL_NS: Final = 10_000

# Copies that already reach this share of the bandwidth of pinned ones are skipped.
_NEARLY: Final = 0.7


class _Copy(NamedTuple):
    work: Activity
    n_bytes: int

    @property
    def bandwidth(self) -> float:
        return self.n_bytes / max(self.work.duration_ns, 1)


def _find(facts: Facts) -> Iterator[Found]:
    for direction, is_from_host in (("HtoD", True), ("DtoH", False)):
        named = [row for row in facts.copies if direction in facts.name(row.event)]
        sized = [_Copy(row, facts.number(row.event, "bytes") or 0) for row in named]
        large = [row for row in sized if row.n_bytes >= _LEAST_BYTES]
        ends = [facts.core.pageable_ends(row.work.event) for row in large]
        pageable = [row for row, both in zip(large, ends, strict=True) if any(both)]
        pinned = [row.bandwidth for row, both in zip(large, ends, strict=True) if not any(both)]
        rates = (max(pinned), max(pinned)) if pinned else _rates_of_link(facts)
        slow = [row for row in pageable if row.bandwidth < _NEARLY * rates[1]]
        if facts.is_worth(sum(row.work.duration_ns for row in slow)):
            yield _found(facts, slow, rates, is_from_host=is_from_host)


def _rates_of_link(facts: Facts) -> tuple[float, float]:
    """Return the least and the most that pinned copies reach, in bytes a ns."""
    name = facts.device_name or ""
    return next((rates for pattern, rates in _OF_LINK if pattern.search(name)), _PINNED)


def _found(
    facts: Facts, copies: list[_Copy], rates: tuple[float, float], *, is_from_host: bool
) -> Found:
    works = {row.work.event for row in copies}
    calls = [row.work.call for row in copies if row.work.call is not None]
    waits = [wait.call.event for wait in facts.waits if wait.work in works]
    quick_calls: list[Change] = [_shortened(facts, call) for call in calls]
    quick_calls.append(RemoveWait(events=calls))
    no_waits = RemoveWait(events=waits)
    careful = [*_at(rates[0], copies), *quick_calls, *([no_waits] if is_from_host else [])]
    beside: list[Change] = [Drop(kind="copy", events=sorted(works))] if is_from_host else []
    hopeful = [*(beside or _at(rates[1], copies)), *quick_calls, no_waits]
    n_bytes = sum(row.n_bytes for row in copies)
    total_ns = sum(row.work.duration_ns for row in copies)
    n_copies = round(facts.per_window(len(copies)))
    where = "to" if is_from_host else "from"
    return Found(
        careful=careful,
        hopeful=hopeful,
        advice=(
            f"Copy {where} the GPU with pinned memory and `non_blocking=True`"
            if is_from_host
            else f"Copy {where} the GPU into a pinned buffer with `non_blocking=True`"
        ),
        evidence=(
            f"{count(max(n_copies, 1), 'copy', 'copies')} of "
            f"{n_bytes / len(copies) / 1e6:,.1f} MB a {facts.parts['unit']} "
            f"{'reaches' if n_copies <= 1 else 'reach'} {n_bytes / total_ns:.1f} GB/s"
        ),
        name=facts.name(copies[0].work.event),
        events=facts.longest(row.work for row in copies),
    )


def _at(rate: float, copies: Sequence[_Copy]) -> list[Change]:
    """Return the changes that let each copy reach at least a bandwidth."""
    of_time: dict[int, list[int]] = {}
    for row in copies:
        time_ns = min(round(row.n_bytes / rate), row.work.duration_ns)
        of_time.setdefault(time_ns, []).append(row.work.event)
    return [Replace(time_ns=time_ns, events=events) for time_ns, events in of_time.items()]


def _shortened(facts: Facts, call: int) -> Change:
    """Return the change that lets a call only enqueue its copy: staging is over."""
    length_ns = max(facts.place(call).duration_ns or 0, _CALL_NS)
    return Scale(by=_CALL_NS / length_ns, events=[call])


REMEDY: Final = Remedy(
    id="pinned_copies",
    side="copies",
    effort="one_line",
    needs="memcpys with their bytes",
    seen_by="copies of at least 1 MB from or to pageable memory",
    change=(
        "copies at the bandwidth that pinned ones reach in the trace (else what they reach on the "
        "link of the device: 40 to 56 GB/s on an H100, 20 to 27 GB/s on an A100), calls that only "
        "enqueue them, and no wait for copies to the GPU; at most, next to other work"
    ),
    not_when="the memory is pinned, or the copies are small",
    find=_find,
)
