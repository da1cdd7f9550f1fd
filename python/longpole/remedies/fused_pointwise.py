"""Consecutive elementwise kernels that each read and write the same elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from longpole.critical_path.changes import Drop
from longpole.flops import is_pointwise
from longpole.remedies.model import Found, Remedy
from longpole.remedies.rooflines import Sized, in_launch_order, replaced
from longpole.wording import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.peaks import Peaks
    from longpole.remedies.facts import Facts

__all__ = ["REMEDY"]

# With fewer consecutive kernels, or smaller tensors, there is little to gain.
_LEAST_IN_ROW: Final = 3
_LEAST_BYTES: Final = 1 << 20

# Fraction of the row's best bandwidth that a fused kernel reaches.
_OF_BEST: Final = 0.85

# Kernels that reach less of the memory bandwidth are limited by something else.
_MEMORY_BOUND: Final = 0.3


class _Row(NamedTuple):
    """Operators of one size, each of which can use the result of the previous one."""

    operators: list[Sized]
    n_elements: int

    @property
    def duration_ns(self) -> int:
        return sum(it.duration_ns for it in self.operators)

    @property
    def rate(self) -> float:
        """The best bandwidth of its kernels, in bytes per ns."""
        return max(_bytes(it) / max(it.duration_ns, 1) for it in self.operators)


def _find(facts: Facts) -> Iterator[Found]:
    steps = [step.time_range for step in facts.annotations("Optimizer.step#")]
    of_optimizer = {work.event for work in facts.launched_in(steps)}
    rows = [
        row
        for operators in in_launch_order(facts)
        for row in _rows(operators, of_optimizer)
        if _is_memory_bound(facts.peaks, row)
    ]
    if not facts.is_worth(max(sum(row.duration_ns for row in rows), 1)):
        return
    careful: dict[int, float] = {}
    hopeful: dict[int, float] = {}
    for row in rows:
        events = [event for it in row.operators for event in it.events]
        for part, fused_ns in zip((careful, hopeful), _fused_ns(facts.peaks, row), strict=True):
            part.update(dict.fromkeys(events, 0.0))
            part[events[0]] = fused_ns
    launches = [facts.place(it.operator) for row in rows for it in row.operators[1:]]
    time_ranges = [it.time_range for it in launches]
    longest = max(rows, key=lambda row: row.duration_ns)
    n_kernels = round(facts.per_window(sum(len(row.operators) for row in rows)))
    names = [it.name.removeprefix("aten::") for it in longest.operators]
    dots = ", ..." if len(names) > 4 else ""  # noqa: PLR2004 - as many are read at a glance
    yield Found(
        careful=replaced(careful),
        hopeful=[*replaced(hopeful), Drop(time_ranges=time_ranges)],
        advice="Fuse elementwise operators in a row (`torch.compile` of the function around them)",
        evidence=(
            f"{count(max(n_kernels, 1), 'kernel')} a {facts.parts['unit']} pass over the same "
            f"elements one after another, such as {', '.join(names[:4])}{dots} of "
            f"{list(longest.operators[0].tensors[0].shape)}"
        ),
        name=longest.operators[0].name,
        events=facts.longest(kernel for it in longest.operators for kernel in it.kernels),
    )


def _rows(operators: list[Sized], left_out: set[int]) -> Iterator[_Row]:
    row: list[Sized] = []
    for it in operators:
        is_one = _is_elementwise(it) and it.kernels[0].event not in left_out
        if row and not (is_one and _continues(row, it)):
            if len(row) >= _LEAST_IN_ROW:
                yield _Row(row, _elements(row[0]))
            row = []
        if is_one:
            row.append(it)
    if len(row) >= _LEAST_IN_ROW:
        yield _Row(row, _elements(row[0]))


def _is_elementwise(it: Sized) -> bool:
    """Whether an operator computes elements in their memory order."""
    if not is_pointwise(it.name) or _bytes(it) < _LEAST_BYTES:
        return False
    n_elements = _elements(it)
    strides = {one.strides for one in it.tensors if one.numel == n_elements}
    return len(strides) == 1 and len(it.kernels) == 1


def _continues(row: list[Sized], it: Sized) -> bool:
    """Whether an operator can use the last result of a row.

    A repeated in-place operator or copy works on another tensor, as in a loop over parameters of
    one size.
    """
    is_again = it.name.endswith("_") and any(one.name == it.name for one in row)
    return _elements(it) == _elements(row[0]) and not is_again


def _elements(it: Sized) -> int:
    return max((tensor.numel for tensor in it.tensors), default=0)


def _bytes(it: Sized) -> int:
    return 0 if it.work is None or it.work.n_bytes is None else it.work.n_bytes


def _is_memory_bound(peaks: Peaks | None, row: _Row) -> bool:
    if peaks is None or peaks.bandwidth is None:
        return False
    return row.rate >= _MEMORY_BOUND * peaks.bandwidth


def _fused_ns(peaks: Peaks | None, row: _Row) -> tuple[float, float]:
    """Return the upper and lower bound of the time of one kernel for a row.

    The upper bound reads every further tensor, the lower bound only those of the first operator.
    """
    n_bytes = float(_bytes(row.operators[0]))
    further = sum(_further(it, row.n_elements) for it in row.operators[1:])
    most = row.rate if peaks is None or peaks.bandwidth is None else peaks.bandwidth
    most_ns = (n_bytes + further) / (_OF_BEST * min(row.rate, most))
    least_ns = n_bytes / max(row.rate, 1e-9)
    return min(most_ns, row.duration_ns), min(least_ns, row.duration_ns)


def _further(it: Sized, n_elements: int) -> int:
    """Return the bytes of an operator's inputs other than the previous result."""
    full = [tensor for tensor in it.tensors if tensor.numel == n_elements]
    return sum(tensor.stored * (tensor.item_bytes or 0) for tensor in full[1:])


REMEDY: Final = Remedy(
    id="fused_pointwise",
    side="kernels",
    effort="one_line",
    needs="recorded shapes with strides, and the device in the table of peaks",
    seen_by=(
        "three elementwise kernels or more in a row over tensors of one size and layout, of at "
        "least 1 MB, that memory limits"
    ),
    change=(
        "one kernel instead of a row: it reads the inputs once and writes one result; at least "
        "every further tensor is a separate input; at most the host time of all operators but the "
        "first is gone"
    ),
    not_when=(
        "the kernels are those of an optimizer, or one operator changes one tensor after the other"
    ),
    find=_find,
)
