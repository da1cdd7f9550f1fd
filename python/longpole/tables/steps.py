"""Table `steps`: the steps of the program with their windows, and iterations of a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import polars as pl

from longpole.engine.question import Question
from longpole.rows.frames import frame_of
from longpole.rows.selection import matching
from longpole.tables.catalogue import ask_by, table, view
from longpole.tables.iterations import iterations
from longpole.tables.needs import STEPS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from longpole.engine.windows import Window
    from longpole.trace.trace import Trace

_MARKED: Final = (
    "period: from the end of the previous step, if there is one, to the end of this one, with its"
    " GPU activities; duration: of the annotation `ProfilerStep`, or of another one up to the next,"
    " so the last of these marks no step."
)
_REPEATED: Final = (
    "Nothing marks steps: these are repetitions of GPU activities; to see one, --window START..END"
    " with its times in this table."
)


def _lacks_numbers(rows: pl.DataFrame) -> bool:
    return rows["step"].null_count() == rows.height


def _has_numbers(rows: pl.DataFrame) -> bool:
    return not _lacks_numbers(rows)


@view(
    needs=(STEPS,),
    empty="No step overlaps it.",
    legend=((_has_numbers, _MARKED), (_lacks_numbers, _REPEATED)),
    is_of_host=True,
)
def _by_step(
    trace: Trace,
    window: Window | None = None,
    *,
    where: pl.Expr | str | None = None,
    step_name: str | None = None,
) -> pl.DataFrame:
    found = trace.steps if step_name is None else frame_of(trace.core.steps(step_name))
    found = matching(_repetitions(trace, found) if found.is_empty() else found, where)
    found = found if window is None else window.clip(found).drop("inside_ns")
    period = pl.col("window_end_ns") - pl.col("window_start_ns")
    first = ("step", "name", "period_ns", "duration_ns", "complete", "event")
    return found.with_columns(period_ns=period).select(*first, pl.exclude(first))


_BY: Final[Mapping[str, Callable[..., pl.DataFrame]]] = {
    "step": _by_step,
    "iteration": iterations,
}


@table(by=_BY)
def steps(
    trace: Trace,
    window: Window | None = None,
    *,
    by: Literal["step", "iteration"] = "step",
    where: pl.Expr | str | None = None,
    step_name: str | None = None,
) -> pl.DataFrame:
    """List the steps of a program, or the iterations of an inference server.

    If nothing marks steps, but GPU activities repeat, the repetitions that answers use are listed:
    `step` is null, `name` is `repetition`, and `between` of `choose_window` takes their window.

    Iterations are recognised by the annotations of vLLM, SGLang and TensorRT-LLM, else by Python
    functions of the server, else by repeated graph launches. An activity belongs to the iteration
    in which it was launched, up to the start of the next.

    Parameters
    ----------
    window
        From `choose_window`: only steps that overlap it, or iterations that start in it.
    by
        `"step"` has a row for each step with its window, `"iteration"` one for each decode step,
        prefill step or mixed batch of a server with its times.
    where
        A condition on the columns of the result.
    step_name
        A regular expression for the annotations that mark steps, for `by="step"`.

    Returns
    -------
    DataFrame
        By step the columns of `Trace.steps`, and `period_ns`: the length of the window of a step,
        from the end of the previous one.

    Raises
    ------
    ValueError
        `by` or the condition is invalid.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> steps(TraceBuilder().step(3, (0, 10)).read())["step"].to_list()
    [3]
    >>> builder = TraceBuilder().annotation("step[DECODE bs=8]", (0, 50))
    >>> builder = builder.launch("model", call=(20, 30), work=(32, 90), by="cudaGraphLaunch")
    >>> steps(builder.read(), by="iteration").select("kind", "requests", "replay_ns").row(0)
    ('decode', 8, 58000)
    """
    return ask_by(_BY, by, trace, window, where=where, step_name=step_name)


def _repetitions(trace: Trace, empty: pl.DataFrame) -> pl.DataFrame:
    """Return the repetitions of GPU activities, if these are the unit of answers."""
    if trace.window is None or trace.scope()[0] != "repetition":
        return empty
    window = Question().core_window()
    facts = trace.core.facts(window, step_name=None)
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
