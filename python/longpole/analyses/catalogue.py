"""The tables of a trace: their list, the decorator that declares one, and how to compute one.

A table is a file of this folder with a function of the same name, which takes a trace and a window
and returns a frame, or data with `blocks()` and `records()`. The names of its other parameters are
those of command-line options. A docstring describes them if their meaning differs from that in
`_SHARED`.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, is_typeddict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import polars as pl

    from longpole.report.blocks import Block
    from longpole.trace import Trace
    from longpole.windows import Window

__all__ = [
    "PATH_TABLES",
    "TABLES",
    "answer_blocks",
    "answer_type",
    "arguments_of",
    "choices_of",
    "gives_frame",
    "question",
    "questions",
    "reads_memory_files",
    "shared_parameters",
    "table",
]

TABLES: Final[Mapping[str, Mapping[str, str]]] = {
    "Where did the step go": {
        "breakdown": "Compute, communication, copies and idle time of devices and streams",
        "operators": "Time of each operator on its thread and on devices",
        "modules": "Time of each module of the model, forward and backward",
        "functions": "Time of each Python function on its thread and on devices",
        "annotation_times": "The time of annotations in a window, by name",
        "segments": "The critical path, segment by segment",
        "slack": "How much later each event can end without moving the end of the window",
        "steps": "The steps of the program, with their windows",
        "iterations": "The iterations of an inference server, with their times",
    },
    "Kernels": {
        "kernels": "GPU activities of a window by name: count and time",
        "kernel_gains": "Kernels worth tuning, by what twice their speed would save",
        "roofline": "How close kernels come to the limits of their device, and the lost time",
        "mfu": "Model FLOPs utilisation of a step",
        "operator_kernels": "Kernels that each operator launches, with their launch delays",
        "annotated_kernels": "The GPU activities of a window by annotation and name",
        "concurrent_streams": "How many streams of each device were busy at once, and how long",
        "kernel_sequences": "Frequent sequences of GPU activities below the same operator",
        "measured_work": "FLOPs and bytes of operators, from counters and from formulas",
        "counters_by_operator": "Performance counters of kernels, with their operators",
    },
    "Host": {
        "idle_time": "Idle time of devices and streams by cause",
        "gaps": "The idle gaps of devices, longest first: when, why, and what the host did",
        "host_while_idle": "What the host did while each device waited for it",
        "sync": "Which call or stream waited for which",
        "launch_summary": "Launch times of a window, by runtime API call",
        "launch_times": "Each launch of a window with its call, delay and activity",
        "queue_summary": "Length of the launch queue of each stream in a window",
        "queue_length": "Number of launched activities that have not started, over time",
        "full_queue": "How long the launch queue of each stream was full",
    },
    "Communication": {
        "communication": "Size, bandwidth and hidden share of each collective of a window",
        "overlap": "How much communication and copying is hidden behind kernels",
        "collective_waits": "Waiting and transfer time of collectives of an Ascend profile",
        "communication_links": "Data that collectives of an Ascend profile moved between ranks",
        "activity_types": "How long compute, communication and copies overlapped on each device",
        "ascend_overlap": "Computing and communication time of an Ascend profile, recomputed",
    },
    "Memory and copies": {
        "memory": "Peak memory and its contents",
        "memory_churn": "Number and size of allocations and frees by operator",
        "memory_curve": "Allocated and reserved memory over time",
        "copy_summary": "Bytes, time and bandwidth of memcpys and memsets in a window",
        "copy_bandwidth": "Memcpy and memset bandwidth over time",
    },
    "CUDA graphs": {
        "graph_kernels": "Kernels of CUDA graphs, by the captured operator",
    },
    "The trace itself": {
        "activities": "The GPU activities of a window, each with its launch and operator",
        "events": "All events of the trace that have a start time",
        "violations": "Dependencies that would go back in time",
    },
}
"""The tables, grouped by the question that they answer, with a description of each."""
PATH_TABLES: Final = frozenset(("segments", "slack", "sync", "violations"))
"""Tables about the critical path, which are not computed in this folder."""
_MOST_ROWS: Final = 20
_SHARED: Final = {
    "trace": "The trace.",
    "recording": "A trace with `profile_memory=True`, or what `longpole.read_memory` read.",
    "window": "From `choose_window`; by default the window that it chooses without more.",
    "where": "A condition on the columns of `activities`: an expression of polars, or a text as"
    " in\n    SQL, such as `\"name LIKE '%gemm%' AND stream = 7\"` (its grammar is in the guide)."
    " An invalid\n    one raises `ValueError`.",
    "sort": "The column of the rows to order them by: the largest numbers first, else ascending.\n"
    "    An unknown one raises `ValueError`.",
    "top": "How many rows to show; the rows hold all.",
}
_HEADER: Final = "Parameters\n----------\n"
_FIRST_SECTION: Final = re.compile(rf"{_HEADER}|(?=^\w+\n---)", re.MULTILINE)

Question = TypeVar("Question", bound="Callable[..., Any]")


@dataclass(frozen=True, slots=True)
class _Declared:
    answer: type | None
    needs_arguments: bool


def table(
    answer: type | None = None, *, needs_arguments: bool = False
) -> Callable[[Question], Question]:
    """Declare the function of a table.

    Parameters
    ----------
    answer
        The `Row` of its frame, or the class of its data; by default a frame whose columns are not
        declared.
    needs_arguments
        Whether the table needs event arguments other than those that link events.
    """
    describe = shared_parameters(needs_arguments=needs_arguments)

    def declare(question: Question) -> Question:
        vars(question)["declared"] = _Declared(answer, needs_arguments)
        return describe(question)

    return declare


def shared_parameters(*, needs_arguments: bool = False) -> Callable[[Question], Question]:
    """Add the shared parameters to a docstring that does not describe them.

    Parameters
    ----------
    needs_arguments
        Whether the table needs event arguments other than those that link events.

    Examples
    --------
    >>> from longpole.analyses.kernels import kernels
    >>> print(kernels.__doc__.splitlines()[4])
    trace
    """
    read = {"trace": "The trace, read with the default `args`."} if needs_arguments else {}

    def describe(question: Question) -> Question:
        doc = inspect.getdoc(question) or ""
        missing = set(inspect.signature(question).parameters) - set(doc.splitlines())
        added = [
            f"{name}\n    {text}\n" for name, text in (_SHARED | read).items() if name in missing
        ]
        question.__doc__ = _FIRST_SECTION.sub(
            lambda found: f"{_HEADER}{''.join(added)}{'' if found[0] else chr(10)}", doc, count=1
        )
        return question

    return describe


def questions() -> dict[str, str]:
    """Return the name and description of each table that is computed in this folder."""
    found = {name: text for tables in TABLES.values() for name, text in tables.items()}
    return {name: found[name] for name in sorted(found.keys() - PATH_TABLES)}


def question(name: str) -> Callable[..., Any]:
    """Return the function that answers a question."""
    ask: Callable[..., Any] = getattr(import_module(f"longpole.analyses.{name}"), name)
    return ask


def answer_type(name: str) -> type | None:
    """Return the declared type of a question's answer: of its rows, if the answer is a frame."""
    return _declared(name).answer


def gives_frame(name: str) -> bool:
    """Whether the answer to a question is a frame rather than data with its own fields."""
    answer = answer_type(name)
    return answer is None or is_typeddict(answer)


def choices_of(name: str) -> frozenset[str]:
    """Return the options of a question in addition to a trace and a window."""
    _, *others = inspect.signature(question(name)).parameters
    return frozenset(others) - {"window"}


def reads_memory_files(name: str) -> bool:
    """Whether a table also accepts memory timelines and snapshots."""
    return name not in PATH_TABLES and "recording" in inspect.signature(question(name)).parameters


def arguments_of(name: str) -> Literal["ids", "default"]:
    """Return which event arguments must be read for a question."""
    return "default" if _declared(name).needs_arguments else "ids"


def answer_blocks(
    name: str, trace: Trace, window: Window | None = None, *, most: int = _MOST_ROWS
) -> Sequence[Block]:
    """Return the answer about a window as blocks, with at most `most` rows of a frame."""
    from longpole.analyses.empty_tables import why_empty
    from longpole.analyses.impossible_values import impossible_values
    from longpole.analyses.legends import legend
    from longpole.report.blocks import Sentence

    answer = question(name)(trace, window)
    if hasattr(answer, "blocks"):
        return [*answer.blocks(), *map(Sentence, impossible_values(name, trace))]
    if answer.is_empty():
        return [Sentence(why_empty(name, trace))]
    notes = [*legend(name, answer.head(most)), *impossible_values(name, trace, answer)]
    return [*_frame_blocks(answer, most), *map(Sentence, notes)]


def _declared(name: str) -> _Declared:
    found: _Declared = vars(question(name))["declared"]
    return found


def _frame_blocks(frame: pl.DataFrame, most: int) -> list[Block]:
    """Show some rows of a frame."""
    from longpole.report.blocks import Notes
    from longpole.report.document import table_of

    shown, more = _shown(frame, most)
    return [table_of(shown), *([Notes([more])] if more else [])]


def _shown(frame: pl.DataFrame, most: int) -> tuple[pl.DataFrame, str | None]:
    """Return the first rows, or the longest for single events, and a note on the total number."""
    from longpole.wording import count

    more = frame.height - most
    if more <= 0:
        return frame, None
    if frame.columns[0] == "event" and "duration_ns" in frame.columns:
        longest = frame.sort("duration_ns", "event", descending=[True, False], nulls_last=True)
        return longest.head(most), f"The {most} longest of {frame.height:,}."
    return frame.head(most), f"{count(more, 'more row')}."
