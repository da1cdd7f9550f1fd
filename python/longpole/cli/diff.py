"""`longpole diff`: show what changed between two runs, and whether it matters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from longpole.cli.answer.usage import require
from longpole.cli.ask.options import Options, answers, shared_options, top_option
from longpole.cli.ask.profiler import DURATION, as_recorded_option
from longpole.cli.ask.shares import parse_share
from longpole.cli.ask.traces import named_traces
from longpole.cli.ask.windows import data_load_option, step_name_option, step_option

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["diff"]


@click.command()
@answers("longpole.analyses.diff:Diff")
@click.argument("base", type=click.Path(readable=False), metavar="BASE")
@click.argument("new", type=click.Path(readable=False), required=False, metavar="[NEW]")
@click.option("--base", "more_base", multiple=True, metavar="TRACE", help="Another trace of BASE.")
@click.option("--new", "more_new", multiple=True, metavar="TRACE", help="Another trace of NEW.")
@step_option("all steps")
@click.option(
    "--against",
    metavar="median|N",
    default="median",
    show_default=True,
    help="With --step: compare that step of BASE with all other steps and show the median one, or "
    "with step N.",
)
@click.option(
    "--gate",
    type=parse_share,
    metavar="SHARE",
    help="The smallest change that matters. If given, a regression exits with 1.  [default: 3%]",
)
@step_name_option
@data_load_option
@click.option(
    "--step-time",
    "step_times_ns",
    type=(DURATION, DURATION),
    metavar="BASE NEW",
    help="Times of a step without the profiler, such as 43ms 38ms.  [default: estimated]",
)
@as_recorded_option
@top_option(10, "changes")
@shared_options
def diff(
    *,
    base: str,
    new: str | None,
    more_base: Sequence[str],
    more_new: Sequence[str],
    step: int | None,
    against: str,
    gate: float | None,
    step_times_ns: tuple[int, int] | None,
    as_recorded: bool,
    top: int,
    options: Options,
    **window: Any,
) -> int:
    """Show what changed between BASE and NEW, and whether it matters.

    BASE and NEW are traces, directories, or quoted glob patterns. Traces of different ranks are
    one run; traces of the same rank are several runs. Steps are compared by length;
    operators and kernels are matched by stack, shape and name. With --step, one step of
    BASE is compared with the other steps of its run.

    The exit code is 4 if the comparison is inconclusive and, with --gate, 1 if there is a
    regression.

    \b
    Examples:
      longpole diff before.json.gz after.json.gz
      longpole diff main/ branch/ --gate 3% --format md
      longpole diff trace.json.gz --step 37 --against median
    """
    from longpole.cli.answer.diff import DIFF_ARGS, diff_answer, step_answer

    _check_sides(new, step, [*more_base, *more_new])
    require(step is None or step_times_ns is None, "--step-time is about two runs, not about steps")
    is_both = step_times_ns is not None and as_recorded
    require(not is_both, "--step-time and --as-recorded exclude each other")
    other = _other(against)
    old = named_traces([base, *more_base], options, args=DIFF_ARGS)
    if step is not None:
        shown: dict[str, Any] = {"gate": gate, "top": top, "as_recorded": as_recorded}
        answer = step_answer(old, step, other, window=window, **shown)
    else:
        now = named_traces([str(new), *more_new], options, args=DIFF_ARGS)
        answer = diff_answer(
            old,
            now,
            gate=gate,
            top=top,
            window=window,
            as_recorded=as_recorded,
            step_times_ns=step_times_ns or (None, None),
        )
    return options.emit(answer)


def _check_sides(new: str | None, step: int | None, more: Sequence[str]) -> None:
    require((new is None) != (step is None), "give NEW, or --step for a step of BASE")
    require(step is None or not more, "--step compares steps of one trace")


def _other(against: str) -> int | None:
    """Parse `median` or the number of a step."""
    if against == "median":
        return None
    try:
        return int(against)
    except ValueError:
        message = f"{against!r} is neither `median` nor the number of a step"
        raise click.BadParameter(message, param_hint="'--against'") from None
