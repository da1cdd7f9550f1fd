"""The operators that captured the kernels of CUDA graphs, which no replay runs again.

Facts give them numbers of their own, beyond those of events: the same operator has another number
in each launch of its graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

FIRST: Final = 1 << 32
"""The smallest number of a captured operator; smaller ones are events."""

Around = tuple[int, str, str]
"""An event, its kind and its name."""


class CapturedOperator(NamedTuple):
    """An operator that ran while a graph was captured."""

    source: int
    """The trace that contains it: 0 for the analysed one, else the number of a capture trace."""
    event: int
    """Its event in that trace."""
    name: str
    start_ns: int
    end_ns: int
    texts: Mapping[str, str]
    """Its arguments with the inputs."""


class Run(NamedTuple):
    """The kernels of an operator in one launch of the graph."""

    launch: int
    """The call that launched the graph."""
    operator: CapturedOperator


@dataclass(frozen=True, eq=False)
class CapturedKernels:
    """The kernels of graphs whose capture is known."""

    runs: Sequence[Run]
    """Operators by their number, counted from `FIRST`."""
    of_kernel: Mapping[int, int]
    """The number of the operator of each kernel."""
    names_around: Callable[[CapturedOperator], Sequence[Around]]
    """Return an operator and the events that enclose it in its trace, innermost first."""

    def run(self, operator: int) -> Run | None:
        """Return the run that a number stands for; None for an event."""
        return self.runs[operator - FIRST] if operator >= FIRST else None

    @cached_property
    def launches(self) -> frozenset[int]:
        """The launches of graphs with at least one such kernel."""
        return frozenset(run.launch for run in self.runs)
