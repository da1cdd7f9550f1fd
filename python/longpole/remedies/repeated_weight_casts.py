"""Weights that autocast converts to 16 bit again each time their module is called.

Only a module with one weight shows that it is the same weight: without Python functions in the
trace, the casts of many layers of one shape look alike.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from longpole.engine.critical_path.changes import Drop, Scale
from longpole.remedies.model import Found, Remedy
from longpole.words.wording import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.engine.critical_path.changes import TimeRange
    from longpole.remedies.facts import Facts
    from longpole.remedies.recorded import Activity

# Modules with one weight, with the numbers that torch gives them, and the operators that they call.
_MODULE: Final = re.compile(r"nn\.Module: (Linear|Conv[123]d)_\d+")
_ANY_MODULE: Final = "nn.Module: "
_OPERATORS: Final = {"aten::linear", "aten::conv1d", "aten::conv2d", "aten::conv3d"}

# The operators of a cast, innermost first.
_CAST: Final = ("aten::copy_", "aten::_to_copy", "aten::to")

_FLOAT: Final = "float"
_HALF: Final = {"c10::Half", "c10::BFloat16"}

# After a backward pass, a weight may have changed and the cache of autocast is cleared. One node of
# the pass converts the gradient of a cast.
_BACKWARD: Final = "autograd::engine::evaluate_function"
_CAST_BACKWARD: Final = f"{_BACKWARD}: ToCopyBackward"


class _Cast(NamedTuple):
    """A cast of an operand for an operator of a module."""

    kernel: Activity
    time_range: TimeRange
    module: int
    """The call of the module: the event of its Python function."""
    modules: tuple[str, ...]
    """This module, and those that enclose it."""
    shape: tuple[int, ...]


def _find(facts: Facts) -> Iterator[Found]:
    if not facts.core.on_threads(["python"], 0, [_ANY_MODULE]):
        return
    casts = [cast for row in _copies(facts, to_half=True) if (cast := _cast(facts, row))]
    if not casts:
        return
    backward = sorted(
        facts.place(row.outermost).start_ns
        for row in facts.kernels
        if row.outermost is not None and facts.name(row.outermost).startswith(_BACKWARD)
    )
    of_weight: dict[tuple[object, ...], list[_Cast]] = defaultdict(list)
    for cast in sorted(casts, key=lambda cast: cast.time_range):
        lane, start_ns, _ = cast.time_range
        period = (cast.kernel.window, bisect_left(backward, start_ns))
        of_weight[lane, period, cast.modules, cast.shape].append(cast)
    again = [cast for casts in of_weight.values() for cast in _again(casts)]
    if facts.is_worth(sum(cast.kernel.duration_ns + _host_ns(cast) for cast in again)):
        yield _found(facts, again)


def _copies(facts: Facts, *, to_half: bool) -> Iterator[Activity]:
    """List the kernels that copy from float32 to 16 bit, or from 16 bit to float32."""
    for row in facts.kernels:
        call = facts.called(row.operator) if facts.name(row.operator) == _CAST[0] else None
        target, source = (None, None) if call is None else (call.tensor(0), call.tensor(1))
        if target is None or source is None or target.shape != source.shape:
            continue
        float_, half = (source, target) if to_half else (target, source)
        if float_.dtype == _FLOAT and half.dtype in _HALF:
            yield row


def _shape(facts: Facts, row: Activity) -> tuple[int, ...] | None:
    call = facts.called(row.operator)
    copied = None if call is None else call.tensor(0)
    return None if copied is None else copied.shape


def _cast(facts: Facts, row: Activity) -> _Cast | None:
    """Return a copy as a cast of a weight or a bias by a module that has one of each."""
    around = facts.around(row.operator or 0)
    names = tuple(name for _, _, name in around)
    is_nested = names[: len(_CAST)] == _CAST and len(names) > len(_CAST)
    # In a backward pass, a forward pass that runs again is in its own autocast region.
    if not is_nested or any(name.startswith(_BACKWARD) for name in names):
        return None
    modules = [(event, name) for event, _, name in around if name.startswith(_ANY_MODULE)]
    if not modules or not _MODULE.fullmatch(modules[0][1]):
        return None
    (cast, _, _), (operator, _, operator_name) = around[len(_CAST) - 1 : len(_CAST) + 1]
    call, shape = facts.called(operator), _shape(facts, row)
    if operator_name not in _OPERATORS or call is None or shape is None:
        return None
    data, *weights = (call.tensor(place) for place in range(3))
    shapes = {it.shape for it in weights if it is not None and it.dtype == _FLOAT}
    if data is None or data.shape == shape or shape not in shapes:
        return None
    if _computes(facts, modules[0][0], operator):
        return None
    return _Cast(
        row, facts.place(cast).time_range, modules[0][0], tuple(name for _, name in modules), shape
    )


def _computes(facts: Facts, module: int, operator: int) -> bool:
    """Whether a module calls other operators first, which may compute its weight."""
    begin, end = facts.place(module), facts.place(operator)
    named = facts.names_in([(end.lane, begin.start_ns, end.start_ns)])
    return any(row.kind == "operator" for row in named)


def _host_ns(cast: _Cast) -> int:
    _, start_ns, end_ns = cast.time_range
    return end_ns - start_ns


def _again(casts: list[_Cast]) -> list[_Cast]:
    """Return all but the first cast of a weight; none if a call of the module has several."""
    is_one_each = all(first.module != second.module for first, second in pairwise(casts))
    return casts[1:] if is_one_each else []


def _found(facts: Facts, casts: list[_Cast]) -> Found:
    time_ranges = [cast.time_range for cast in casts]
    kernels = [cast.kernel.event for cast in casts]
    gone = [
        Drop(time_ranges=time_ranges),
        Drop(kind="kernel", events=kernels),
        Drop(kind="kernel_delay", events=kernels),
    ]
    module = max(casts, key=lambda cast: cast.kernel.duration_ns).modules[0]
    n_casts = max(round(facts.per_window(len(casts))), 1)
    return Found(
        careful=gone,
        hopeful=[*gone, *_backward(facts, casts)],
        advice=(
            "Cast each weight once: with the cache of autocast, in one region around all uses, or "
            "by keeping it in 16 bit"
        ),
        evidence=(
            f"{count(n_casts, 'cast')} {facts.each} "
            f"{'repeats' if n_casts == 1 else 'repeat'} that of the same weight or bias, such as "
            f"in {module.removeprefix(_ANY_MODULE)}"
        ),
        name=module,
        events=facts.longest(cast.kernel for cast in casts),
    )


def _backward(facts: Facts, casts: list[_Cast]) -> list[Scale]:
    """Return the time saved if the gradients of one weight are converted once."""
    shapes = {cast.shape for cast in casts}
    rows = [
        row
        for row in _copies(facts, to_half=False)
        if facts.name(row.outermost).startswith(_CAST_BACKWARD) and _shape(facts, row) in shapes
    ]
    nodes = [facts.place(row.outermost).time_range for row in rows if row.outermost is not None]
    kept = max(1 - len(casts) / max(len(rows), 1), 0.0)
    kernels = [row.event for row in rows]
    return [Scale(by=kept, time_ranges=nodes), Scale(by=kept, kind="kernel", events=kernels)]


REMEDY: Final = Remedy(
    id="repeated_weight_casts",
    side="kernels",
    effort="one_line",
    needs="recorded shapes, and Python functions with their modules (`with_stack`)",
    seen_by=(
        "one `Linear` or `Conv` that casts its float32 weight or bias to 16 bit in several calls, "
        "with no backward pass between them"
    ),
    change="the casts after the first, with their host time; at most also those of the gradients "
    "of as many casts",
    not_when=(
        "each module is called once, as most are; or a weight is computed before each use, or the "
        "same shape as the input, which the trace cannot tell apart"
    ),
    is_measured=False,
    find=_find,
)
