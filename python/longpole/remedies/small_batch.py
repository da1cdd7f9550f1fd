"""A larger batch that costs hardly more: kernels do not fill the device, or the batch has one item.

With a batch of one, the launches of a step compute a single result; with several, one each.
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Final

from longpole.flops.inputs import json_list
from longpole.remedies.model import Found, Remedy
from longpole.words.wording import count, share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.remedies.facts import Facts
    from longpole.remedies.recorded import Activity

# A small kernel has blocks for less than this share of the multiprocessors, and is short. A long
# kernel with few blocks is slow for another reason.
_FILLED: Final = 0.5
_LONGEST_NS: Final = 30_000

# Minimum share of the windows with small kernels on one stream. Otherwise the host is the limit.
_LEAST_SHARE: Final = 0.5
_OF_STREAM: Final = 0.95
_MOST_OF_HOST: Final = 0.1

# Layers, whose first input has the batch as its first dimension, and which of their inputs it is.
# A batch of one is reported if nearly all of them have it, and launches take long enough.
_LAYERS: Final = {"aten::linear": 0, "aten::conv1d": 0, "aten::conv2d": 0, "aten::conv3d": 0}
_LEAST_LAYERS: Final = 4
_OF_LAYERS: Final = 0.95
_LEAST_OF_HOST: Final = 0.3


def _find(facts: Facts) -> Iterator[Found]:
    if facts.gains_less("host", _MOST_OF_HOST):
        yield from _find_small(facts)
    elif not facts.gains_less("host", _LEAST_OF_HOST):
        yield from _find_single(facts)


def _find_single(facts: Facts) -> Iterator[Found]:
    """Find layers that compute one item at a time, while the host limits."""
    if facts.annotations("Optimizer.step#") or facts.parts["loader"] is not None:
        return
    rows = facts.operators(*_LAYERS)
    shapes = [(row, _batch(facts, row.event)) for row in rows if facts.name(row.event) in _LAYERS]
    single = [row for row, size in shapes if size == 1]
    known = [row for row, size in shapes if size is not None]
    n_each = round(facts.per_window(len(single)))
    if n_each < _LEAST_LAYERS or len(single) < _OF_LAYERS * len(known):
        return
    yield Found(
        careful=[],
        advice="Compute several inputs together, in one batch",
        evidence=(
            f"the batch has 1 item in {count(n_each, 'layer')} {facts.each}, and the host launches "
            "one for several items as fast"
        ),
        events=facts.longest(single),
    )


def _batch(facts: Facts, layer: int) -> int | None:
    """Return the size of the batch of a layer; None if it is not recorded or has no batch."""
    call = facts.called(layer)
    tensor = None if call is None else call.tensor(_LAYERS[facts.name(layer)])
    is_batch = tensor is not None and len(tensor.shape) > 1
    return tensor.shape[0] if is_batch and tensor is not None else None


def _find_small(facts: Facts) -> Iterator[Found]:
    """Find kernels too small to fill the device."""
    n_processors = facts.n_processors
    if n_processors is None or not _is_on_one_stream(facts):
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
    needs="the grid of kernels and the number of multiprocessors, or the shapes of layers",
    seen_by=(
        "kernels shorter than 30 us with blocks for less than half of the multiprocessors, for "
        "half of the time or more, on one stream; or layers with a batch of 1, if the host limits "
        "and nothing is trained"
    ),
    change="nothing: what a larger batch would save for each sample is not in the trace",
    not_when="kernels run on several streams, or most of the time is in others",
    is_computed=False,
    find=_find,
)
