"""Kernels that reach far less of the device's peak than others of their kind in the trace."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from longpole.remedies.model import Found, Remedy
from longpole.remedies.rooflines import Sized, in_shape, replaced, sized_kernels
from longpole.words.wording import share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.devices.peaks import Peaks
    from longpole.remedies.facts import Facts

# Shorter kernels have too little work to fill the device.
_LEAST_NS: Final = 50_000

# If the kernels of one shape take less than this share of the time, a custom kernel is not
# worthwhile.
_LEAST_SHARE: Final = 0.04

# Kernels are slow if they reach less than this fraction of the best of their kind, provided that
# this one is good.
_SLOW: Final = 0.4
_GOOD: Final = 0.5

# Minimum part of the difference from the best kernel that a better kernel gains.
_CLOSED: Final = 0.5

# If the compute and the memory limit are closer than this ratio, neither alone is the roofline.
_CLEARLY: Final = 2.0

# Operators with random or permuted access, which reach less with any kernel.
_ANY_ORDER: Final = frozenset({"aten::embedding", "aten::index_select", "aten::gather"})

_PRECISIONS: Final = {"c10::Half": "fp16", "c10::BFloat16": "bf16"}
_FLOPS_OF_NS: Final = 1e3


class _Rated(NamedTuple):
    """An operator with the fraction of the peak it reaches."""

    row: Sized
    part: float


def _find(facts: Facts) -> Iterator[Found]:
    for kind, rows in sorted(_kinds(facts).items()):
        best = max(rows, key=lambda it: it.part)
        if not _GOOD <= best.part <= 1:
            continue
        alike: dict[str, list[_Rated]] = defaultdict(list)
        for it in rows:
            if it.part < _SLOW * best.part:
                alike[in_shape(it.row)].append(it)
        for shape, slow in sorted(alike.items()):
            if facts.is_worth(sum(it.row.duration_ns for it in slow), _LEAST_SHARE):
                yield _found(facts, kind, shape, slow, best)


def _kinds(facts: Facts) -> dict[str, list[_Rated]]:
    """Return the operators that each peak limits."""
    kinds: dict[str, list[_Rated]] = defaultdict(list)
    for row in sized_kernels(facts):
        if row.duration_ns < _LEAST_NS:
            continue
        kind, part = _reached(facts.peaks, row)
        if kind:
            kinds[kind].append(_Rated(row, part))
    return kinds


def _reached(peaks: Peaks | None, row: Sized) -> tuple[str, float]:
    """Return the limiting peak of an operator and the fraction reached; empty for none."""
    work, none = row.work, ("", 0.0)
    if work is None or work.n_bytes is None or peaks is None or peaks.bandwidth is None:
        return none
    moved_ns = work.n_bytes / peaks.bandwidth
    if not work.is_matrix:
        is_ordered = row.name not in _ANY_ORDER and _is_in_one_order(row)
        return ("bandwidth of memory", moved_ns / row.duration_ns) if is_ordered else none
    precision = _PRECISIONS.get(work.dtype)
    peak = None if precision is None else peaks.matrix.get(precision)
    if peak is None:
        return none
    computed_ns = work.flops / (peak * _FLOPS_OF_NS)
    if computed_ns < _CLEARLY * moved_ns:
        return none
    return f"peak of {precision}", computed_ns / row.duration_ns


def _is_in_one_order(row: Sized) -> bool:
    sizes = max((tensor.numel for tensor in row.tensors), default=0)
    return len({it.strides for it in row.tensors if it.numel == sizes}) == 1


def _found(facts: Facts, kind: str, shape: str, slow: list[_Rated], best: _Rated) -> Found:
    careful: dict[int, float] = {}
    hopeful: dict[int, float] = {}
    for it in slow:
        faster = it.part / best.part
        for kernel in it.row.kernels:
            now_ns = kernel.duration_ns
            hopeful[kernel.event] = now_ns * faster
            careful[kernel.event] = now_ns - _CLOSED * (now_ns - now_ns * faster)
    reached = sum(it.part * it.row.duration_ns for it in slow) / sum(
        it.row.duration_ns for it in slow
    )
    return Found(
        careful=replaced(careful),
        hopeful=replaced(hopeful),
        advice=f"Find a faster kernel for {shape} (another layout or shape, or a tuned kernel)",
        evidence=(
            f"it reaches {share(reached)} of the {kind}, where {in_shape(best.row)} reaches "
            f"{share(best.part)}"
        ),
        name=slow[0].row.name,
        events=facts.longest(kernel for it in slow for kernel in it.row.kernels),
    )


REMEDY: Final = Remedy(
    id="slow_kernels",
    side="kernels",
    effort="kernel",
    needs="recorded shapes with strides, and the device in the table of peaks",
    seen_by=(
        "kernels of at least 50 us that reach less than 0.4 of what the best of their kind reaches "
        "in the trace, where that is at least half of the peak"
    ),
    change="the kernels become as fast as the best of their kind; at least half of the way",
    not_when="nothing of their kind in the trace does better, or memory is read in another order",
    is_upper_bound=True,
    shortens=("kernel",),
    find=_find,
)
