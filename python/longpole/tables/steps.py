"""Table `steps`: the steps of the program, with their windows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from longpole.engine.critical_path.windows import core_window
from longpole.rows.frames import frame_of
from longpole.rows.selection import matching
from longpole.tables.catalogue import table
from longpole.tables.needs import STEPS

if TYPE_CHECKING:
    from longpole.engine.windows import Window
    from longpole.trace.trace import Trace

__all__ = ["steps"]

_MARKED: Final = (
    "period: from the end of the previous step, if there is one, to the end of this one, with its"
    " GPU activities; duration: of the annotation `ProfilerStep`, or of another one up to the next,"
    " so the last of these marks no step."
)
_REPEATED: Final = (
    "Nothing marks steps: these are repetitions of GPU activities; to see one, --between START END"
    " with its times in this table --as-recorded."
)


def _lacks_numbers(rows: pl.DataFrame) -> bool:
    return rows["step"].null_count() == rows.height


def _has_numbers(rows: pl.DataFrame) -> bool:
    return not _lacks_numbers(rows)


@table(
    needs=(STEPS,),
    empty="No step overlaps it.",
    legend=((_has_numbers, _MARKED), (_lacks_numbers, _REPEATED)),
    is_of_host=True,
)
def steps(
    trace: Trace,
    window: Window | None = None,
    *,
    where: pl.Expr | str | None = None,
    step_name: str | None = None,
) -> pl.DataFrame:
    """List the steps of a window, or of the whole trace.

    If nothing marks steps, but GPU activities repeat, the repetitions that answers use are listed:
    `step` is null, `name` is `repetition`, and `between` of `choose_window` takes their window.

    Parameters
    ----------
    window
        From `choose_window`: only steps that overlap it.
    where
        A condition on the columns of `Trace.steps`.
    step_name
        A regular expression for the annotations that mark steps.

    Returns
    -------
    DataFrame
        The columns of `Trace.steps`, and `period_ns`: the length of the window of a step, from the
        end of the previous one.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> steps(TraceBuilder().step(3, (0, 10)).read())["step"].to_list()
    [3]
    """
    found = trace.steps if step_name is None else frame_of(trace.core.steps(step_name))
    found = matching(_repetitions(trace, found) if found.is_empty() else found, where)
    found = found if window is None else window.clip(found).drop("inside_ns")
    period = pl.col("window_end_ns") - pl.col("window_start_ns")
    first = ("step", "name", "period_ns", "duration_ns", "complete", "event")
    return found.with_columns(period_ns=period).select(*first, pl.exclude(first))


def _repetitions(trace: Trace, empty: pl.DataFrame) -> pl.DataFrame:
    """Return the repetitions of GPU activities, if these are the unit of answers."""
    if trace.window is None or trace.scope()[0] != "repetition":
        return empty
    window = core_window(None, None, 0, None, "period", whole=False)
    _, facts = trace.core.verdict(window, data_load=None, step_name=None, every_window=True)
    rows = [
        {
            "step": None,
            "name": "repetition",
            "start_ns": start_ns,
            "duration_ns": end_ns - start_ns,
            "event": None,
            "window_start_ns": start_ns,
            "window_end_ns": end_ns,
            "complete": True,
        }
        for start_ns, end_ns in facts.windows
    ]
    return pl.DataFrame(rows, schema=empty.schema)
