"""Events that tables are computed from: whether a trace has them, and which option records them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import polars as pl

from longpole.formats.xplane.memory import recorded_memory
from longpole.trace import sweeps
from longpole.trace.allocations import trace_allocations

if TYPE_CHECKING:
    from collections.abc import Callable

    from longpole.trace.trace import Trace


class Need(NamedTuple):
    """Events that a table is computed from."""

    is_recorded: Callable[[Trace], bool]
    missing: str
    option: str | None = None
    """The field of `Options` that records them; None if that depends on the program."""
    otherwise: str = ""


def _has_kind(*kinds: str) -> Callable[[Trace], bool]:
    return lambda trace: bool(trace.events["kind"].is_in(kinds).any())


def _has_work(condition: pl.Expr) -> Callable[[Trace], bool]:
    return lambda trace: bool(sweeps.activities(trace).select(condition.any()).item())


def _has_annotations(trace: Trace) -> bool:
    kinds = trace.events["kind"].is_in(["annotation", "device_annotation"])
    steps = trace.steps["name"].cast(pl.String)
    return not trace.events.filter(kinds, ~pl.col("name").cast(pl.String).is_in(steps)).is_empty()


def _has_counters(trace: Trace) -> bool:
    from longpole.tables.core_counters import counters_of

    return not counters_of(trace).is_empty()


ACTIVITIES: Final = Need(
    lambda trace: not sweeps.activities(trace).is_empty(),
    "The trace has no GPU activities",
    "device",
)
CALLS: Final = Need(_has_kind("runtime", "driver"), "The trace has no runtime API calls", "calls")
LAUNCHES: Final = Need(
    _has_work(pl.col("call").is_not_null()),
    "The trace links no GPU activity to the call that launched it",
    "launches",
)
OPERATORS: Final = Need(_has_kind("operator"), "The trace has no operators", "operators")
ANNOTATIONS: Final = Need(
    _has_annotations, "The trace has no annotations besides those of steps", "ranges"
)
COPIES: Final = Need(
    _has_work(pl.col("work_class") == "copy"), "The trace has no memcpys or memsets"
)
COLLECTIVES: Final = Need(
    lambda trace: not trace.collectives.is_empty(),
    "The trace has no collectives; a program on one device runs none",
)
GRAPHS: Final = Need(
    lambda trace: not trace.graph_nodes.is_empty(), "The trace has no launch of a CUDA graph"
)
COUNTERS: Final = Need(
    _has_counters,
    "The trace has no performance counters of kernels",
    "counters",
)
ALLOCATIONS: Final = Need(
    lambda trace: (
        not trace_allocations(trace).events.is_empty() or recorded_memory(trace) is not None
    ),
    "The trace has no allocations",
    "allocations",
    ", or give a memory timeline or snapshot",
)
STEPS: Final = Need(
    lambda trace: not trace.steps.is_empty(),
    "Nothing marks steps, and no repetitions with recorded launches were found",
    "step",
    "; --step-name takes other annotations",
)
