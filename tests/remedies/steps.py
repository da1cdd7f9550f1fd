"""Steps of one kind, for the tests of remedies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longpole.testing import TraceBuilder

if TYPE_CHECKING:
    from collections.abc import Callable

    from longpole.answer.findings import Remedy


def steps(length_us: int, fill: Callable[[TraceBuilder, int], object], n: int = 4) -> TraceBuilder:
    """Build steps of a length, each filled from its start on."""
    builder = TraceBuilder()
    for number in range(n):
        begin = number * length_us
        builder.step(number, (begin, begin + length_us))
        fill(builder, begin)
    return builder


def remedy_of(name: str, builder: TraceBuilder) -> Remedy | None:
    """Return the first remedy of a name that a trace gets; None if it gets none."""
    rows = (row for row in builder.read().verdict().remedies if row.remedy == name)
    return next(rows, None)
