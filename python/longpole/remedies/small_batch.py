"""Kernels too small to fill the device, one after another: a larger batch costs hardly more."""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Final

from longpole.flops.inputs import json_list
from longpole.remedies.model import Found, Remedy
from longpole.words.wording import share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.remedies.facts import Activity, Facts

# A small kernel has blocks for less than this share of the multiprocessors, and is short. A long
# kernel with few blocks is slow for another reason.
_FILLED: Final = 0.5
_LONGEST_NS: Final = 30_000

# Minimum share of the windows with small kernels on one stream. Otherwise the host is the limit.
_LEAST_SHARE: Final = 0.5
_OF_STREAM: Final = 0.95
_MOST_OF_HOST: Final = 0.1


def _find(facts: Facts) -> Iterator[Found]:
    n_processors = facts.n_processors
    if n_processors is None or not facts.gains_less("host", _MOST_OF_HOST):
        return
    if not _is_on_one_stream(facts):
        return
    # All windows run similar kernels, so the kernels of one window are examined.
    usual = max(facts.shown, 0)
    kernels = [work for work in facts.kernels if work.window == usual]
    small = [work for work in kernels if _is_small(facts, work, n_processors)]
    total_ns = sum(work.duration_ns for work in small)
    if total_ns < _LEAST_SHARE * facts.mean_ns:
        return
    blocks = sorted(_blocks(facts, work) or 0 for work in small)
    yield Found(
        careful=[],
        advice="Give the GPU more work at once, such as a larger batch",
        evidence=(
            f"for {share(total_ns / facts.mean_ns)} of the time kernels have "
            f"about {blocks[len(blocks) // 2]} blocks for {n_processors} multiprocessors"
        ),
        events=facts.longest(small),
    )


def _is_small(facts: Facts, work: Activity, n_processors: int) -> bool:
    blocks = _blocks(facts, work)
    return (
        work.kind == "kernel"
        and work.duration_ns < _LONGEST_NS
        and blocks is not None
        and blocks < _FILLED * n_processors
    )


def _blocks(facts: Facts, work: Activity) -> int | None:
    """Return the number of blocks of a kernel; None if it is not recorded."""
    grid = facts.text(work.event, "grid")
    return None if not grid else _number(grid)


@lru_cache(maxsize=1024)
def _number(grid: str) -> int | None:
    sizes = json_list(grid)
    return prod(sizes) if sizes and all(type(size) is int for size in sizes) else None


def _is_on_one_stream(facts: Facts) -> bool:
    """Whether kernels run one after another: together, small ones fill a device."""
    of_lane: dict[int, int] = defaultdict(int)
    for work in facts.kernels:
        of_lane[work.lane] += work.duration_ns
    return max(of_lane.values(), default=0) >= _OF_STREAM * max(sum(of_lane.values()), 1)


REMEDY: Final = Remedy(
    id="small_batch",
    side="kernels",
    effort="configuration",
    needs="the grid of kernels and the number of multiprocessors",
    seen_by=(
        "kernels shorter than 30 us with blocks for less than half of the multiprocessors, for "
        "half of the time or more, on one stream"
    ),
    change="nothing: what a larger batch would save for each sample is not in the trace",
    not_when="the host limits, kernels run on several streams, or most of the time is in others",
    is_computed=False,
    find=_find,
)
