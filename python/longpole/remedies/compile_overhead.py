"""Functions that `torch.compile` recompiles in steps that should be steady."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final

from longpole.critical_path.changes import Drop
from longpole.remedies.model import Found, Remedy
from longpole.wording import count, duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.remedies.facts import Facts, OnThread

__all__ = ["COMPILING", "DYNAMO", "REMEDY"]

# torch's names for the compilation of a function, from its bytecode to its kernels.
COMPILING: Final = (
    "_compile.compile_inner",
    "entire_frame_compile",
    "entire_backward_compile",
    "backward._backward_impl",
)

# Name of the event that dynamo records around everything that a compilation needs.
DYNAMO: Final = "dynamo"

# Compilations in this share of several windows are recurring.
_STEADY: Final = 0.6


def _find(facts: Facts) -> Iterator[Found]:
    rows = _outermost([*facts.operators(*COMPILING), *facts.annotations(*COMPILING)])
    total_ns = sum(row.duration_ns for row in rows)
    if not rows or not facts.is_worth(total_ns):
        return
    recurs = len({row.window for row in rows}) >= max(_STEADY * facts.n_windows, 2)
    n_each = max(round(facts.per_window(len(rows))), 1)
    mean_ns = round(facts.per_window(total_ns))
    with_dynamo = _outermost([*rows, *_around(facts, rows)])
    yield Found(
        careful=[Drop(time_ranges=[row.time_range for row in rows])],
        hopeful=[Drop(time_ranges=[row.time_range for row in with_dynamo])],
        advice=(
            "Compile once for all shapes (`torch.compile(..., dynamic=True)`); "
            "`TORCH_LOGS=recompiles` says what changes"
            if recurs
            else f"Record a later step, with {facts.options.schedule}"
        ),
        evidence=(
            f"{count(n_each, 'compilation')} {facts.in_each} "
            f"{'takes' if n_each == 1 else 'take'} {duration(mean_ns)}"
            if recurs
            else f"{count(len(rows), 'function is', 'functions are')} compiled, in "
            f"{duration(total_ns)}"
        ),
        events=facts.longest(rows),
    )


def _around(facts: Facts, rows: list[OnThread]) -> list[OnThread]:
    """List what dynamo does around compilations."""
    starts = sorted((row.lane, row.start_ns) for row in rows)
    return [
        it
        for it in facts.operators(DYNAMO)
        if facts.name(it.event) == DYNAMO
        and bisect_left(starts, (it.lane, it.start_ns)) < bisect_left(starts, (it.lane, it.end_ns))
    ]


def _outermost(rows: list[OnThread]) -> list[OnThread]:
    """Leave out rows inside another row."""
    outermost: list[OnThread] = []
    for row in sorted(rows, key=lambda row: (row.lane, row.start_ns, -row.end_ns)):
        last = outermost[-1] if outermost else None
        if last is None or last.lane != row.lane or row.start_ns >= last.end_ns:
            outermost.append(row)
    return outermost


REMEDY: Final = Remedy(
    id="compile_overhead",
    side="host",
    effort="one_line",
    needs="operators or annotations of torch",
    seen_by="`_compile.compile_inner` or `entire_frame_compile` in the steps",
    change="the compilations; at most all that dynamo does around them",
    not_when="everything is compiled before the recorded steps",
    find=_find,
)
