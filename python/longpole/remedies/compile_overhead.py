"""Functions that `torch.compile` recompiles in steps that should be steady."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final

from longpole.engine.critical_path.changes import Drop
from longpole.remedies.model import Found, Remedy
from longpole.words.wording import count, duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.remedies.facts import Facts
    from longpole.remedies.recorded import OnThread

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
    rows = facts.once(_compilations)
    total_ns = sum(row.duration_ns for row in rows)
    if not rows or compiled_once(facts) or not facts.is_worth(total_ns):
        return
    recurs = _recurs(facts, rows)
    n_each = max(round(facts.per_window(len(rows))), 1)
    with_dynamo = _outermost([*rows, *_around(facts, rows)])
    yield Found(
        careful=[Drop(time_ranges=[row.time_range for row in rows])],
        hopeful=[Drop(time_ranges=[row.time_range for row in with_dynamo])],
        advice=_advice(facts, rows, recurs=recurs),
        evidence=(
            f"{count(n_each, 'compilation')} {facts.in_each} "
            f"{'takes' if n_each == 1 else 'take'} {duration(facts.told_ns(rows))}"
            if recurs
            else f"{count(len(rows), 'function is', 'functions are')} compiled, in "
            f"{duration(total_ns)}"
        ),
        events=facts.longest(rows),
    )


def compiled_once(facts: Facts) -> list[OnThread]:
    """List the compilations in the windows, if there are none outside; empty if they recur."""
    rows = facts.once(_compilations)
    is_once = rows and not _recurs(facts, rows) and not _others(facts, rows[0])
    return rows if is_once else []


def _compilations(facts: Facts) -> list[OnThread]:
    return _outermost([*facts.operators(*COMPILING), *facts.annotations(*COMPILING)])


def _recurs(facts: Facts, rows: list[OnThread]) -> bool:
    compiling = {row.window for row in rows}
    return len(compiling) >= max(_STEADY * facts.n_windows, 2) or _compiles_later(facts, rows[0])


def _advice(facts: Facts, rows: list[OnThread], *, recurs: bool) -> str:
    if recurs and _shapes_differ(facts, {row.window for row in rows}):
        return (
            "Compile once for all shapes (`torch.compile(..., dynamic=True)`), which differ "
            f"between the {facts.unit}s; `TORCH_LOGS=recompiles` says whether they are the reason"
        )
    why = "find out why functions are compiled again (`TORCH_LOGS=recompiles`)"
    if recurs:
        return f"{why[0].upper()}{why[1:]}, and compile them once"
    later = f"record a later step, with {facts.options.schedule}"
    return f"If every {facts.unit} compiles, {why}; otherwise {later}"


def _others(facts: Facts, row: OnThread) -> list[int]:
    """Return when compilations outside the only window begin; empty if there are several."""
    if facts.n_windows > 1:
        return []
    [(start_ns, end_ns)] = facts.windows
    begins = (facts.place(event).start_ns for event in facts.named(facts.name(row.event)))
    return [begin_ns for begin_ns in begins if not start_ns <= begin_ns < end_ns]


def _compiles_later(facts: Facts, row: OnThread) -> bool:
    """Whether functions are compiled after the only window, too."""
    return any(begin_ns >= facts.windows[0][1] for begin_ns in _others(facts, row))


def _shapes_differ(facts: Facts, windows: set[int]) -> bool:
    """Whether an operator that each window calls equally often has other inputs in some.

    The number of calls may differ for other reasons, so such operators are left out.
    """
    shapes: dict[str, dict[int, list[str]]] = {}
    for row in facts.operators(""):
        dims = facts.text(row.event, "Input Dims") or facts.text(row.event, "Input dims")
        if dims and row.window in windows:
            of_name = shapes.setdefault(facts.name(row.event), {})
            of_name.setdefault(row.window, []).append(dims)
    return any(
        len(of_window) == len(windows) > 1
        and len({len(dims) for dims in of_window.values()}) == 1
        and len({tuple(sorted(dims)) for dims in of_window.values()}) > 1
        for of_window in shapes.values()
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
    not_when="everything is compiled before the recorded steps, or once in them (see `warm_up`)",
    find=_find,
)
