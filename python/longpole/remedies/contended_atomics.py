"""Index additions to few rows, far slower than the memory bandwidth: threads contend for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.remedies.model import Found, Remedy
from longpole.remedies.rooflines import (
    Sized,
    in_shape,
    most_often,
    replaced,
    sized_kernels,
)
from longpole.words.wording import count, number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.remedies.facts import Facts

_EMBEDDING: Final = "aten::embedding_dense_backward"
_ADDING: Final = frozenset(
    {
        "aten::index_add",
        "aten::index_add_",
        "aten::scatter_add",
        "aten::scatter_add_",
        "aten::scatter_reduce",
        "aten::scatter_reduce_",
        _EMBEDDING,
        "aten::bincount",
        "aten::histc",
    }
)

# Fraction of the memory bandwidth reached by sorting first, or by adding within a block first, and
# the upper and lower bound of the bytes read and written beyond one pass.
_OF_BANDWIDTH: Final = 0.8
_PASSES: Final = (2.0, 1.0)
_SHORTEST_NS: Final = 10_000

# Kernels that take less than this multiple of the bandwidth-limited time are not contended: an
# addition to many rows on an H100 took 1.8 times that, one to few rows 3.4 times.
_LEAST_RATIO: Final = 3.0


def _find(facts: Facts) -> Iterator[Found]:
    peaks = facts.peaks
    if peaks is None or peaks.bandwidth is None:
        return
    times = {
        row.operator: (row, _moved(row) / (_OF_BANDWIDTH * peaks.bandwidth))
        for row in sized_kernels(facts)
        if row.name in _ADDING
    }
    slow = [
        (row, once_ns)
        for row, once_ns in times.values()
        if once_ns > 0 and row.duration_ns >= _LEAST_RATIO * max(once_ns, _SHORTEST_NS)
    ]
    if not facts.is_worth(max(sum(row.duration_ns for row, _ in slow), 1)):
        return
    changes = [
        replaced({event: time for row, once in slow for event, time in _times(row, once * passes)})
        for passes in _PASSES
    ]
    rows = [row for row, _ in slow]
    longest = most_often(rows)
    slower = number(round(longest.duration_ns / times[longest.operator][1]))
    n_kernels = max(round(facts.per_window(len(rows))), 1)
    yield Found(
        careful=changes[0],
        hopeful=changes[1],
        advice=(
            "Add by index without contention (sort the indices first, or multiply by a one-hot "
            "matrix for few rows)"
        ),
        evidence=(
            f"{in_shape(longest)}, {count(n_kernels, 'time', 'times')} {facts.each}, "
            f"takes {slower} times what memory allows"
        ),
        name=longest.name,
        events=facts.longest(kernel for row in rows for kernel in row.kernels),
    )


def _moved(row: Sized) -> int:
    """Return the bytes of all inputs and of the target."""
    sizes = [tensor.stored * (tensor.item_bytes or 0) for tensor in row.tensors]
    if not sizes:
        return 0
    return sum(sizes) + max(sizes) + (_gradient(row) if row.name == _EMBEDDING else 0)


def _gradient(row: Sized) -> int:
    """Return the bytes of an embedding's gradient, which is zeroed first."""
    n_rows = None if row.call is None else row.call.value(2)
    first = row.tensors[0]
    width = first.shape[-1] if first.shape else 1
    return 2 * n_rows * width * (first.item_bytes or 0) if isinstance(n_rows, int) else 0


def _times(row: Sized, time_ns: float) -> list[tuple[int, float]]:
    """Return the time of each kernel of an operator for a given total."""
    time_ns = min(max(time_ns, _SHORTEST_NS), row.duration_ns)
    return [(it.event, time_ns * it.duration_ns / row.duration_ns) for it in row.kernels]


REMEDY: Final = Remedy(
    id="contended_atomics",
    side="kernels",
    effort="code",
    needs="recorded shapes, and the device in the table of peaks",
    seen_by=(
        "`index_add`, `scatter_add`, the gradient of an embedding and the like that take 3 times "
        "what memory allows, or more"
    ),
    change="one or two passes over memory at 80 % of its bandwidth",
    not_when="the additions reach a third of the bandwidth",
    find=_find,
)
