"""Consecutive elementwise kernels that each read and write the same elements."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from longpole.engine.critical_path.changes import Drop
from longpole.remedies.model import Found, Remedy
from longpole.remedies.rooflines import (
    Sized,
    form_of,
    in_launch_order,
    in_shape,
    replaced,
    sized_kernels,
)
from longpole.words.wording import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from longpole.devices.peaks import Peaks
    from longpole.remedies.facts import Facts
    from longpole.remedies.model import Form

# With fewer consecutive kernels, or smaller tensors, there is little to gain.
_LEAST_IN_ROW: Final = 3
_LEAST_BYTES: Final = 1 << 20

# Fraction of the row's best bandwidth that a fused kernel reaches.
_OF_BEST: Final = 0.85

# Kernels that reach less of the memory bandwidth are limited by something else.
_MEMORY_BOUND: Final = 0.3

# Operators that a compiler fuses with the elementwise operators around them: reductions, whose
# results it uses in a second pass over memory, and `cat`.
_REDUCTIONS: Final = frozenset(
    f"aten::{name}"
    for name in (
        "mean",
        "sum",
        "amax",
        "amin",
        "var",
        "var_mean",
        "linalg_vector_norm",
        "_softmax",
        "_log_softmax",
        "native_layer_norm",
    )
)
_CAT: Final = "aten::cat"

_OPTIMIZER: Final = "Optimizer.step#"

# Maximum ratio between the numbers of elements of operators that are fused, such as those of halves
# of a tensor. Operators with one value for each row, such as a mean, have at least this many times
# fewer elements.
_ALIKE: Final = 4
_OF_ROWS: Final = 64


class _Row(NamedTuple):
    """Operators of one size, each of which can use the result of the previous one."""

    operators: list[Sized]
    n_elements: int
    first: int
    """Index of the first operator among those of its thread."""

    @property
    def duration_ns(self) -> int:
        return sum(it.duration_ns for it in self.operators)

    @property
    def window(self) -> int:
        return self.operators[0].kernels[0].window

    @property
    def rate(self) -> float:
        """The best bandwidth of its kernels, in bytes per ns."""
        return max(_bytes(it) / max(it.duration_ns, 1) for it in self.operators)


def _find(facts: Facts) -> Iterator[Found]:
    steps = [step.time_range for step in facts.annotations(_OPTIMIZER)]
    of_optimizer = {work.event for work in facts.launched_in(steps)}
    captured = (it for it in sized_kernels(facts) if it.was_captured_in(_OPTIMIZER))
    of_optimizer.update(event for it in captured for event in it.events)
    rows: list[_Row] = []
    wide: list[_Row] = []
    for operators in in_launch_order(facts):
        found = [
            row for row in _rows(operators, of_optimizer) if _is_memory_bound(facts.peaks, row)
        ]
        rows += found
        wide += _with_neighbours(operators, found, of_optimizer)
    if not facts.is_worth(max(sum(row.duration_ns for row in rows), 1)):
        return
    careful = _times((row, _most_ns(facts.peaks, row)) for row in rows)
    hopeful = _times((row, _least_ns(row)) for row in wide)
    time_ranges = [it for row in wide for one in row.operators[1:] for it in one.time_ranges]
    launches = [Drop(time_ranges=time_ranges)] if time_ranges else []
    longest = max(rows, key=lambda row: (row.window == facts.shown, row.duration_ns))
    n_kernels = round(facts.per_window(sum(len(row.operators) for row in rows)))
    names = [it.name.removeprefix("aten::") for it in longest.operators]
    dots = ", ..." if len(names) > 4 else ""  # noqa: PLR2004 - more would be hard to read
    yield Found(
        careful=replaced(careful),
        hopeful=[*replaced(hopeful), *launches],
        advice="Fuse elementwise operators in a row (`torch.compile` of the function around them)",
        evidence=(
            f"{count(max(n_kernels, 1), 'kernel')} {facts.each} pass over the same "
            f"elements one after another, such as {', '.join(names[:4])}{dots} of "
            f"{list(longest.operators[0].tensors[0].shape)}"
        ),
        name=longest.operators[0].name,
        events=facts.longest(kernel for it in longest.operators for kernel in it.kernels),
        forms=_forms(wide),
    )


def _forms(rows: list[_Row]) -> list[Form]:
    """Return the rows that a script can time: those of the same operators and shapes together."""
    alike: dict[tuple[str, ...], list[_Row]] = defaultdict(list)
    for row in rows:
        alike[tuple(in_shape(it) for it in row.operators)].append(row)
    forms = []
    for _, same in sorted(alike.items()):
        events = [event for row in same for it in row.operators for event in it.events]
        forms += form_of("compiled", same[0].operators, events)
    return forms


def _times(fused: Iterable[tuple[_Row, float]]) -> dict[int, float]:
    """Return the time of each kernel if one kernel of each row does the work of all, in ns."""
    times: dict[int, float] = {}
    for row, fused_ns in fused:
        events = [event for it in row.operators for event in it.events]
        times.update(dict.fromkeys(events, 0.0))
        times[events[0]] = fused_ns
    return times


def _rows(operators: list[Sized], left_out: set[int]) -> Iterator[_Row]:
    row: list[Sized] = []
    first = 0
    for place, it in enumerate(operators):
        is_one = _is_elementwise(it) and it.kernels[0].event not in left_out
        if row and not (is_one and _continues(row, it)):
            if len(row) >= _LEAST_IN_ROW:
                yield _Row(row, row[0].n_elements, first)
            row = []
        if is_one:
            first = place if not row else first
            row.append(it)
    if len(row) >= _LEAST_IN_ROW:
        yield _Row(row, row[0].n_elements, first)


def _with_neighbours(
    operators: list[Sized], rows: list[_Row], left_out: set[int]
) -> Iterator[_Row]:
    """Yield rows with all operators that a compiler may fuse with them; join adjoining rows."""
    end = 0
    for row in rows:
        if row.first < end:
            continue
        first, last = row.first, row.first + len(row.operators)
        while first > end and _is_fused_with(row, operators[first - 1], left_out):
            first -= 1
        while last < len(operators) and _is_fused_with(row, operators[last], left_out):
            last += 1
        yield _Row(operators[first:last], row.n_elements, first)
        end = last


def _is_fused_with(row: _Row, it: Sized, left_out: set[int]) -> bool:
    """Whether a compiler may fuse an operator with a row next to it."""
    if it.kernels[0].event in left_out or not it.tensors:
        return False
    from longpole.flops import is_pointwise

    if not (is_pointwise(it.name) or it.name in _REDUCTIONS or it.name == _CAT):
        return False
    ratio = it.n_elements / max(row.n_elements, 1)
    return 1 / _ALIKE <= ratio <= _ALIKE or ratio <= 1 / _OF_ROWS


def _is_elementwise(it: Sized) -> bool:
    """Whether an operator computes elements in their memory order."""
    if _bytes(it) < _LEAST_BYTES:
        return False
    from longpole.flops import is_pointwise

    if not is_pointwise(it.name):
        return False
    n_elements = it.n_elements
    strides = {one.strides for one in it.tensors if one.numel == n_elements}
    return len(strides) == 1 and len(it.kernels) == 1


def _continues(row: list[Sized], it: Sized) -> bool:
    """Whether an operator can use the last result of a row.

    A repeated in-place operator or copy works on another tensor, as in a loop over parameters of
    one size.
    """
    is_again = it.name.endswith("_") and any(one.name == it.name for one in row)
    return it.n_elements == row[0].n_elements and not is_again


def _bytes(it: Sized) -> int:
    return 0 if it.work is None or it.work.n_bytes is None else it.work.n_bytes


def _is_memory_bound(peaks: Peaks | None, row: _Row) -> bool:
    if peaks is None or peaks.bandwidth is None:
        return False
    return row.rate >= _MEMORY_BOUND * peaks.bandwidth


def _most_ns(peaks: Peaks | None, row: _Row) -> float:
    """Return the upper bound of the time of one kernel for a row, which reads all other tensors."""
    n_bytes = float(_bytes(row.operators[0]))
    further = sum(_further(it, row.n_elements) for it in row.operators[1:])
    most = row.rate if peaks is None or peaks.bandwidth is None else peaks.bandwidth
    return min((n_bytes + further) / (_OF_BEST * min(row.rate, most)), row.duration_ns)


def _least_ns(row: _Row) -> float:
    """Return the lower bound: a pass like that of the first operator, and one per reduction."""
    n_passes = 1 + sum(it.name in _REDUCTIONS for it in row.operators[:-1])
    n_bytes = _bytes(row.operators[0]) or max(map(_bytes, row.operators))  # 0 if unknown
    return min(n_passes * n_bytes / max(row.rate, 1e-9), row.duration_ns)


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
        "every further tensor is a separate input; at most reductions and `cat` next to the row "
        "are part of it, and the host time of all operators but the first is gone"
    ),
    not_when=(
        "the kernels are those of an optimizer, or one operator changes one tensor after the other"
    ),
    signature="fused_kernels",
    find=_find,
)
