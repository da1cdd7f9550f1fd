"""When calls that are not recorded were made, by their correlation ids."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

UNORDERED_ONE_IN = 100
ALWAYS = (-(2**63), 2**63 - 1)


class Numbered(NamedTuple):
    """A call with its number."""

    number: int
    start_ns: int
    end_ns: int
    process: object
    thread: object


class CallOrder:
    """The calls of each process whose numbers rise with time."""

    def __init__(self, calls: Iterable[Numbered]) -> None:
        of_process = defaultdict(list)
        for call in calls:
            of_process[call.process].append(call)
        self._of_process = {}
        for process, unsorted in of_process.items():
            rows = sorted(unsorted, key=lambda call: call[:3])
            pairs = list(pairwise(rows))
            inverted = [it for it, after in pairs if after.start_ns < it.start_ns]
            at_once = [
                it
                for it, after in pairs
                if after.start_ns < it.end_ns and after.thread != it.thread
            ]
            is_serial = len(at_once) * UNORDERED_ONE_IN <= len(rows)
            if len(inverted) * UNORDERED_ONE_IN <= len(rows):
                self._of_process[process] = rows, is_serial

    def around(self, process: object, number: int | None) -> tuple[int, int]:
        """Give the times between which a process made the call with a number."""
        rows, is_serial = self._of_process.get(process, ((), False))
        if not number or number <= 0:
            return ALWAYS
        before = [call for call in rows if call.number <= number]
        start_ns = max((call.start_ns for call in before), default=ALWAYS[0])
        over_ns = max(start_ns, before[-1].end_ns) if before and is_serial else start_ns
        behind = rows[len(before) : len(before) + 1]
        next_ns = max([start_ns, *(call.start_ns for call in behind)]) if behind else ALWAYS[1]
        return min(over_ns, next_ns), next_ns
