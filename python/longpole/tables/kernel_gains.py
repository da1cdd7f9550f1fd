"""Kernels worth tuning, by the time saved if they were twice as fast."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import polars as pl

from longpole.engine.critical_path import Drop, Scale
from longpole.engine.critical_path.changes import name_pattern
from longpole.engine.windows import window_of
from longpole.errors import WindowError
from longpole.flops.inputs import shapes_in_words
from longpole.formats.convert.flame import path_of, question_of
from longpole.rows.frames import typed
from longpole.tables.activities import own_activities
from longpole.tables.operators import operators
from longpole.tables.roofline import roofline_shares

if TYPE_CHECKING:
    from longpole.engine.critical_path import Change, CriticalPath
    from longpole.engine.windows import Window
    from longpole.report.paths import NameTotal
    from longpole.trace.trace import Trace

Kind: TypeAlias = Literal["kernel", "operator"]

MOST_KERNELS: Final = 20
"""Number of names that are evaluated."""
_HALF: Final = 0.5


def kernel_gains(trace: Trace, window: Window | None = None) -> pl.DataFrame:
    """Rank kernels by the gain of the window if they ran twice as fast.

    Gains are those of `CriticalPath.what_if` for the program without the profiler, one kernel
    name at a time: a kernel that runs concurrently with something longer gains nothing, regardless
    of its duration. The other times are as recorded. No kernel is
    assumed to exceed the roofline. The 20 names with most time on the path are evaluated. Without
    kernels in the window, operators are ranked.

    Returns
    -------
    DataFrame
        A row for each name, the largest gain first.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> builder = TraceBuilder().launch("gemm", call=(0, 10), work=(10, 90))
    >>> builder = builder.launch("beside", call=(10, 12), work=(12, 50), stream=20)
    >>> kernel_gains(builder.read()).select("name", "path_ns", "gain_ns", "bound_ns").rows()
    [('gemm', 80000, 40000, 40000)]
    """
    window = window_of(trace, window)
    if window is None:
        return _typed([])
    launched = own_activities(trace, window).filter(pl.col("kind") == "kernel")
    kind: Kind = "operator" if launched.is_empty() else "kernel"
    figures = _of_operators(trace, window) if kind == "operator" else _of_kernels(launched)
    try:
        path = path_of(trace, window)
        asked = question_of(trace, window)
        program = trace.without_profiler().path_of(asked, "period", "binding")
    except WindowError:  # no work in the window
        return _typed([])
    roofs = {} if kind == "operator" else roofline_shares(trace, window)
    names = trace.events["name"]
    owners = dict(launched.select("event", "operator").iter_rows())
    totals = _on_path(path, kind)
    gains = _gains(program, kind, {str(it["name"]): roofs.get(str(it["name"])) for it in totals})
    rows: list[dict[str, Any]] = []
    for total in totals:
        name, longest = str(total["name"]), total["longest_event"]
        operator = longest if kind == "operator" else owners.get(longest)
        rows.append(
            {
                "kind": kind,
                "name": name,
                **figures.get(name, {"count": 0, "duration_ns": 0}),
                "path_ns": total["duration_ns"],
                **gains[name],
                "of_roof": roofs.get(name),
                "operator": operator,
                "operator_name": None if operator is None else names[operator],
            }
        )
    rows.sort(key=lambda row: (-row["gain_ns"], -row["bound_ns"], row["name"]))
    return _typed(rows, _shapes(trace, [row["operator"] for row in rows]))


def _of_kernels(launched: pl.DataFrame) -> dict[str, Any]:
    """Count the kernels of a window by name."""
    name = pl.col("name").cast(pl.String)
    found = launched.group_by(name).agg(count=pl.len(), duration_ns=pl.col("inside_ns").sum())
    return found.rows_by_key("name", named=True, unique=True)


def _of_operators(trace: Trace, window: Window) -> dict[str, Any]:
    """Count the operators of a window by name, with their self time."""
    rows = operators(trace, window).rows.filter(pl.col("name").is_not_null())
    found = rows.group_by("name").agg(pl.col("count").sum(), duration_ns=pl.col("self_ns").sum())
    return found.rows_by_key("name", named=True, unique=True)


def _on_path(path: CriticalPath, kind: Kind) -> list[NameTotal]:
    """Return the names of a kind with the most time on the path."""
    totals = [each for each in path.name_totals if each["kind"] == kind and each["name"]]
    totals.sort(key=lambda each: (-each["duration_ns"], str(each["name"])))
    return totals[:MOST_KERNELS]


def _gains(
    path: CriticalPath, kind: Kind, roofs: dict[str, float | None]
) -> dict[str, dict[str, Any]]:
    """Return the gain of the window if all kernels of a name were faster, or took no time.

    `roofs` has the share of the roofline that each name reaches, if known. Shortening one event
    never lengthens another, so no gain is negative.
    """
    sets: list[list[Change]] = []
    for name, of_roof in roofs.items():
        only = f"^(?:{name_pattern(name)})$"
        factor = min(1.0, max(_HALF, of_roof or 0.0))
        sets.append([Scale(by=factor, kind=kind, matching=only)])
        sets.append([Drop(kind=kind, matching=only)])
    gains = iter([max(0, gain_ns) for gain_ns in path.gains_ns(sets)])
    found = {}
    for name, faster, none in zip(roofs, gains, gains, strict=True):
        share = faster / max(1, path.length_ns)
        found[name] = {"gain_ns": faster, "gain_share": share, "bound_ns": none}
    return found


def _shapes(trace: Trace, operators: list[int | None]) -> dict[int, str]:
    """Return the input shapes of operators as text, if recorded."""
    inputs = trace.inputs.filter(pl.col("event").is_in([it for it in operators if it is not None]))
    return dict(inputs.select("event", shapes_in_words()).iter_rows())


def _typed(rows: list[dict[str, Any]], shapes: dict[int, str] | None = None) -> pl.DataFrame:
    schema = {
        **dict.fromkeys(("kind", "name"), pl.String),
        **dict.fromkeys(("path_ns", "gain_ns"), pl.Int64),
        **dict.fromkeys(("gain_share", "of_roof"), pl.Float64),
        "operator": pl.UInt32,
        **dict.fromkeys(("count", "duration_ns", "bound_ns"), pl.Int64),
        "operator_name": pl.String,
        "shapes": pl.String,
    }
    known = shapes or {}
    told = [
        {**row, "shapes": None if row["operator"] is None else known.get(row["operator"])}
        for row in rows
    ]
    return typed(pl.DataFrame(told, schema=schema))
