"""Copies of one size to the GPU that are repeated within a step, with work in between.

The data of a batch is copied together, before the work. Copies of one size in between are often one
tensor that should stay on the GPU: a mask, positions, a table.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from longpole.engine.critical_path.changes import Drop, RemoveWait
from longpole.remedies.model import Found, Remedy
from longpole.remedies.rooflines import in_words
from longpole.words.wording import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.remedies.facts import Activity, Facts

__all__ = ["REMEDY"]

# Minimum numbers per step of copies, of their bytes, and of launches in between.
_LEAST_COPIES: Final = 3
_LEAST_BYTES: Final = 1 << 18
_LEAST_BETWEEN: Final = 3

# Operators that only copy: without the copy, the host does none of their work.
_COPYING: Final = ("aten::to", "aten::_to_copy", "aten::copy_")


def _find(facts: Facts) -> Iterator[Found]:
    of_kind: dict[tuple[int, str], list[Activity]] = defaultdict(list)
    for copy in facts.uploads:
        n_bytes = facts.number(copy.event, "bytes") or 0
        if n_bytes >= _LEAST_BYTES and copy.call is not None:
            what = in_words(facts, copy.operator) if copy.operator is not None else ""
            of_kind[n_bytes, what].append(copy)
    for (n_bytes, what), copies in sorted(of_kind.items()):
        n_each = len(copies) / facts.n_windows
        if n_each < _LEAST_COPIES or not _is_in_every_window(facts, copies):
            continue
        if facts.is_worth(sum(copy.duration_ns for copy in copies)) and _is_between_work(
            facts, copies
        ):
            yield _found(facts, n_bytes, what, copies)


def _is_in_every_window(facts: Facts, copies: list[Activity]) -> bool:
    numbers: dict[int, int] = defaultdict(int)
    for copy in copies:
        numbers[copy.window] += 1
    return len(numbers) == facts.n_windows and len(set(numbers.values())) == 1


def _is_between_work(facts: Facts, copies: list[Activity]) -> bool:
    """Whether kernels are launched between all copies of each window."""
    launched = sorted(
        facts.place(work.call).start_ns for work in facts.kernels if work.call is not None
    )
    return all(
        _number_between(launched, first, second) >= _LEAST_BETWEEN
        for first, second in _in_turn(facts, copies)
    )


def _in_turn(facts: Facts, copies: list[Activity]) -> Iterator[tuple[int, int]]:
    """Yield the times of each two consecutive copies of a window."""
    of_window: dict[int, list[int]] = defaultdict(list)
    for copy in copies:
        of_window[copy.window].append(facts.place(copy.call or 0).start_ns)
    for times in of_window.values():
        times.sort()
        yield from pairwise(times)


def _number_between(launched: list[int], first_ns: int, second_ns: int) -> int:
    return bisect_left(launched, second_ns) - bisect_left(launched, first_ns)


def _found(facts: Facts, n_bytes: int, what: str, copies: list[Activity]) -> Found:
    events = [copy.event for copy in copies]
    calls = [copy.call for copy in copies if copy.call is not None]
    works = set(events)
    waits = [wait.call.event for wait in facts.waits if wait.work in works]
    time_ranges = [
        facts.place(copy.outermost).time_range
        for copy in copies
        if copy.outermost is not None and facts.name(copy.outermost) in _COPYING
    ]
    n_each = round(facts.per_window(len(copies)))
    of_what = f" in {what}" if what else ""
    return Found(
        careful=[
            Drop(kind="copy", events=events),
            Drop(kind="runtime", events=calls),
            RemoveWait(events=[*calls, *waits]),
            *([Drop(time_ranges=time_ranges)] if time_ranges else []),
        ],
        advice="Keep this tensor on the GPU, if it is the same each time (`register_buffer`)",
        evidence=(
            f"{count(n_each, 'copy', 'copies')} of {n_bytes / 1e6:,.1f} MB "
            f"{facts.each}, with work between them{of_what}"
        ),
        name=what or None,
        events=facts.longest(copies),
    )


REMEDY: Final = Remedy(
    id="repeated_copies",
    side="copies",
    effort="one_line",
    needs="memcpys with their bytes",
    seen_by=(
        "at least 3 copies of one size to the GPU in every step, of 256 KB or more, with 3 "
        "launches or more between each two"
    ),
    change="the copies, the operators that only copy, their calls and waits; that the bytes are "
    "the same is not known",
    not_when="the copies follow each other, as those of a batch do, or their number changes",
    is_upper_bound=True,
    find=_find,
)
