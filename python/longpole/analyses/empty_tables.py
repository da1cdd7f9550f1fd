"""Explains why a table has no rows: what the trace lacks, or what the program did not do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import polars as pl

from longpole import sweeps
from longpole.allocations import Allocations, trace_allocations
from longpole.damage import record_hint
from longpole.recording import options_for
from longpole.selection.grammar import tokens_of
from longpole.wording import escape, short_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from longpole.trace import Trace

__all__ = ["why_empty", "why_unmatched"]


_LONGEST: Final = 120


class _Need(NamedTuple):
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


_ACTIVITIES: Final = _Need(
    lambda trace: not sweeps.activities(trace).is_empty(),
    "The trace has no GPU activities",
    "device",
)
_CALLS: Final = _Need(_has_kind("runtime", "driver"), "The trace has no runtime API calls", "calls")
_LAUNCHES: Final = _Need(
    _has_work(pl.col("call").is_not_null()),
    "The trace links no GPU activity to the call that launched it",
    "launches",
)
_OPERATORS: Final = _Need(_has_kind("operator"), "The trace has no operators", "operators")
_ANNOTATIONS: Final = _Need(
    _has_annotations, "The trace has no annotations besides those of steps", "ranges"
)
_COPIES: Final = _Need(
    _has_work(pl.col("work_class") == "copy"), "The trace has no memcpys or memsets"
)
_COLLECTIVES: Final = _Need(
    lambda trace: not trace.collectives.is_empty(),
    "The trace has no collectives; a program on one device runs none",
)
_GRAPHS: Final = _Need(
    lambda trace: not trace.graph_nodes.is_empty(), "The trace has no launch of a CUDA graph"
)
_COUNTERS: Final = _Need(
    lambda trace: not trace.counters_by_operator().is_empty(),
    "The trace has no performance counters of kernels",
    "counters",
)
_ALLOCATIONS: Final = _Need(
    lambda trace: not trace_allocations(trace).events.is_empty(),
    "The trace has no allocations",
    "allocations",
    ", or give a memory timeline or snapshot",
)
_STEPS: Final = _Need(
    lambda trace: not trace.steps.is_empty(),
    "Nothing marks steps, and no repetitions with recorded launches were found",
    "step",
    "; --step-name takes other annotations",
)

_RUN: Final = ((_ACTIVITIES,), "No GPU activity ran in it.")
_LAUNCHED: Final = (
    (_ACTIVITIES, _CALLS, _LAUNCHES),
    "No GPU activity of it was launched by a recorded call.",
)
_ONLY_ASCEND: Final = "Only profiles of Ascend devices record the tasks of collectives"
_TABLES: Final[Mapping[str, tuple[Sequence[_Need], str]]] = {
    **dict.fromkeys(
        ("activities", "activity_types", "breakdown", "concurrent_streams", "idle_time", "kernels"),
        _RUN,
    ),
    **dict.fromkeys(
        ("full_queue", "launch_summary", "launch_times", "queue_length", "queue_summary"),
        _LAUNCHED,
    ),
    "annotated_kernels": ((_ACTIVITIES, _LAUNCHES), "No GPU activity ran in it."),
    "annotation_times": ((_ANNOTATIONS,), "No annotation ran in it."),
    "ascend_overlap": (
        (),
        "The trace is not of an Ascend device, or its tool wrote no times to compare.",
    ),
    "collective_waits": (
        (),
        f"{_ONLY_ASCEND}; for other traces, `longpole ranks FOLDER` finds the awaited rank.",
    ),
    "communication": ((_COLLECTIVES,), "No collective ran in it."),
    "communication_links": ((), f"{_ONLY_ASCEND}."),
    "copy_bandwidth": ((_ACTIVITIES, _COPIES), "No memcpy or memset of known size ran in it."),
    "copy_summary": ((_ACTIVITIES, _COPIES), "No memcpy or memset ran in it."),
    "counters_by_operator": ((_COUNTERS,), "No kernel with counters was launched in it."),
    "events": ((), "No event lies in it."),
    "gaps": ((_ACTIVITIES,), "No device was idle in it."),
    "graph_kernels": ((_ACTIVITIES, _GRAPHS), "No CUDA graph ran in it."),
    "host_while_idle": (
        (_ACTIVITIES, _CALLS, _LAUNCHES),
        "No device waited for a launch in it; idle_time lists other causes.",
    ),
    "iterations": (
        (),
        "Nothing marks iterations of an inference server; the table steps lists steps.",
    ),
    "kernel_gains": (
        (),
        "No kernel lies on its critical path: faster kernels would save nothing.",
    ),
    "kernel_sequences": (
        (_ACTIVITIES, _LAUNCHES, _OPERATORS),
        "No operator launched three GPU activities in it.",
    ),
    "measured_work": ((_COUNTERS,), "No kernel with counters was launched in it."),
    "memory_churn": ((_ALLOCATIONS,), "No memory was allocated or freed in it."),
    "memory_curve": ((_ALLOCATIONS,), "No memory was allocated or freed in it."),
    "operator_kernels": (
        (_ACTIVITIES, _LAUNCHES, _OPERATORS),
        "No operator launched a GPU activity in it.",
    ),
    "segments": ((), "The critical path is empty."),
    "slack": ((), "No event leads to its end."),
    "steps": ((_STEPS,), "No step overlaps it."),
    "sync": ((_ACTIVITIES, _CALLS), "No wait of a call or stream was recorded in it."),
    "violations": ((), "No dependency would go back in time."),
}
"""Events that each table needs, and what it means if they were recorded but not in the window."""
_NOT_OF_WINDOWS: Final = frozenset(
    (
        *("ascend_overlap", "collective_waits", "communication_links", "iterations"),
        *("kernel_gains", "violations"),
    )
)


def why_unmatched(condition: str, recording: Trace | Allocations) -> str:
    """Return why no row matches a condition; names are compared as recorded, not as shown.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> trace = TraceBuilder().launch("nvjet_tst_64x8_TNT", call=(0, 1), work=(2, 9)).read()
    >>> why_unmatched("name LIKE '%gemm%'", trace)[30:]
    'Names are compared as recorded: gemm 64x8 bf16 (nvjet) is nvjet_tst_64x8_TNT.'
    """
    told = "No row matches the condition."
    if isinstance(recording, Allocations):
        return told
    texts = [str(token.value) for token in tokens_of(condition) if token.kind == "text"]
    asked = [text.strip("%^$.* ").casefold() for text in texts]
    names = sweeps.activities(recording)["name"].cast(pl.String).drop_nulls()
    for name in names.unique(maintain_order=True):
        shown = short_name(name)
        if any(text and text in shown.casefold() and text not in name.casefold() for text in asked):
            recorded = name if len(name) <= _LONGEST else f"{name[:_LONGEST]}…"
            return f"{told} Names are compared as recorded: {shown} is {escape(recorded)}."
    return told


def why_empty(name: str, recording: Trace | Allocations, *, is_part: bool = False) -> str:
    """Return a sentence on why a table has no rows; `is_part`: it covers part of a trace.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> trace = TraceBuilder().operator("aten::mm", (0, 9)).read()
    >>> why_empty("kernels", trace)[:46]
    'The trace has no GPU activities: record with a'
    """
    needs, none = _TABLES[name]
    if isinstance(recording, Allocations):
        return none
    lacking = next((need for need in needs if not need.is_recorded(recording)), None)
    if lacking is None:
        is_more = is_part and name not in _NOT_OF_WINDOWS
        return f"{none} `--whole` covers the whole trace." if is_more else none
    if lacking.option is None or not getattr(options_for(recording.core), lacking.option):
        return f"{lacking.missing}."
    return record_hint(recording, lacking.missing, lacking.option, lacking.otherwise)
