"""Finds inconsistencies between the traces of several ranks: compares each with earlier ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from longpole.tables.check import finding
from longpole.words.wording import duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.tables.findings import Finding
    from longpole.trace.trace import Trace

_FAR_NS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class _Companion:
    """The properties of a trace that later traces are compared with."""

    name: str
    rank: int | None
    world_size: int | None
    span_ns: tuple[int, int] | None
    """Time of its first and last event, in ns since 1970."""


class Companions:
    """The traces checked so far."""

    def __init__(self) -> None:
        self._known: list[_Companion] = []

    def check(self, name: str, trace: Trace) -> tuple[Finding, ...]:
        """List inconsistencies of a trace with earlier ones, and remember it.

        Examples
        --------
        >>> from longpole.testing import TraceBuilder
        >>> trace = TraceBuilder().header(distributedInfo={"rank": 3}).read()
        >>> companions = Companions()
        >>> [[finding.code for finding in companions.check(name, trace)] for name in "ab"]
        [[], ['repeated_rank']]
        """
        new = _Companion(name, trace.rank, trace.world_size, _span_ns(trace))
        found = tuple(self._against(new))
        self._known.append(new)
        return found

    def _against(self, new: _Companion) -> Iterator[Finding]:
        for old in self._known:
            if new.rank is not None and new.rank == old.rank:
                yield finding("repeated_rank", rank=str(new.rank), other=old.name)
                break
        for old in self._known:
            apart_ns = _apart_ns(new, old)
            if apart_ns > _FAR_NS:
                yield finding("clocks_far_apart", other=old.name, apart=duration(apart_ns))
                break


def _span_ns(trace: Trace) -> tuple[int, int] | None:
    window = trace.window
    if window is None:
        return None
    base_ns = trace.base_time_ns or 0
    return window[0] + base_ns, window[1] + base_ns


def _apart_ns(one: _Companion, other: _Companion) -> int:
    """Return the time between the recordings of two ranks of one run that do not overlap."""
    is_one_run = one.world_size == other.world_size and one.rank != other.rank
    if not is_one_run or None in {one.rank, other.rank}:
        return 0
    if one.span_ns is None or other.span_ns is None:
        return 0
    return max(one.span_ns[0] - other.span_ns[1], other.span_ns[0] - one.span_ns[1], 0)
