"""`longpole bench time`: measure Python functions."""

from __future__ import annotations

import math
import sys
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from itertools import product
from operator import attrgetter
from typing import TYPE_CHECKING, Final, TypeAlias

import click

from longpole.bench.records.store import Store, make_room
from longpole.bench.time.clocks import CpuClock, TorchClock
from longpole.bench.time.timing import Effort, measure_in_turns
from longpole.cli.answer import exit_codes
from longpole.cli.answer.emit import emit
from longpole.cli.ask.options import Options, shared_options
from longpole.cli.ask.shares import parse_share
from longpole.report.blocks import Headline, Notes
from longpole.report.document import Document
from longpole.report.terminal import Terminal
from longpole.wording import count, duration

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from longpole.bench.compare.stats import Summary
    from longpole.bench.time.clocks import Cache, Clock
    from longpole.bench.time.timing import Timing
    from longpole.cli.answer.emit import Answer
    from longpole.report.blocks import Block
    from longpole.report.document import Record

    Function: TypeAlias = Callable[..., object]
    Point: TypeAlias = dict[str, int | float | str]

__all__ = ["time"]

_SCHEMA: Final = "longpole.bench.time/1"
_DEFAULTS: Final = Effort()


def _finite(_context: click.Context, _parameter: click.Parameter, value: float) -> float:
    """Refuse nan, which every range lets pass, and a budget that is never spent."""
    if not math.isfinite(value):
        message = f"{value} is no number of seconds"
        raise click.BadParameter(message)
    return value


@click.command()
@click.argument("functions", metavar="MODULE:FUNC...", nargs=-1, required=True)
@click.option("--axis", "axes", multiple=True, metavar="NAME=VALUE,...", help="Arguments to try.")
@click.option("--factory", is_flag=True, help="FUNC makes the function to time.")
@click.option(
    "--clock",
    "clock_name",
    type=click.Choice(["cpu", "torch"]),
    default="cpu",
    show_default=True,
    help="Wall time, or the time of a CUDA or HIP device.",
)
@click.option(
    "--cache", type=click.Choice(["cold", "hot"]), help="What a device's caches hold (torch only)."
)
@click.option(
    "--precision",
    type=parse_share,
    metavar="SHARE",
    default=str(_DEFAULTS.precision),
    show_default=True,
    help="How narrow the interval of the median has to get.",
)
@click.option(
    "--budget-s",
    type=click.FloatRange(min=0, min_open=True),
    callback=_finite,
    default=_DEFAULTS.budget_s,
    show_default=True,
    help="Seconds for each point of the axes.",
)
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="Write every sample here.")
@click.option("-f", "--force", is_flag=True, help="Replace records of an earlier run.")
@shared_options
def time(
    *,
    functions: tuple[str, ...],
    axes: tuple[str, ...],
    factory: bool,
    clock_name: str,
    cache: Cache | None,
    precision: float,
    budget_s: float,
    output: str | None,
    force: bool,
    options: Options,
) -> int:
    """Time Python functions; several take turns, so that they can be compared.

    Each function is called with the arguments of every point of the axes. With --factory it
    is called once a point, and what it gives back is timed: that leaves out its preparations.
    Exits with 1 where a function raised.

    \b
    Examples:
      longpole bench time kernels:gemm --axis n=1024,2048 -o gemm.jsonl
      longpole bench time kernels:old kernels:new --axis n=1024
    """
    found = {name: _found(name) for name in functions}
    points = _points(axes)
    clock = _clock(clock_name, cache)
    effort = Effort(precision=precision, budget_s=budget_s)
    terminal = Terminal.of(sys.stdout, options.color)
    with _opened(output, force=force) as store:
        timings = _timings(found, points, clock, effort, factory=factory)
        answers = (_answer(timing) for timing in _written(timings, store))
        return emit(answers, options.form, terminal)


def _found(name: str) -> Function:
    """Find a function as `python -m` would find its module."""
    module_name, _, function_name = name.partition(":")
    if not (module_name and function_name):
        message = f"{name!r} is not of the form MODULE:FUNC"
        raise click.UsageError(message)
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        function: Function = attrgetter(function_name)(import_module(module_name))
    except (ImportError, AttributeError) as error:
        message = f"{name} cannot be found: {error}"
        raise click.UsageError(message) from error
    except (Exception, SystemExit) as error:
        message = f"{module_name} cannot be imported: {type(error).__name__}: {error}"
        raise click.UsageError(message) from error
    if not callable(function):
        message = f"{name} is no function"
        raise click.UsageError(message)
    return function


def _points(axes: tuple[str, ...]) -> list[Point]:
    """Give every choice of one value from each axis, the last axis changing fastest."""
    names, values = [], []
    for axis in axes:
        name, is_axis, choices = axis.partition("=")
        if not (is_axis and name.isidentifier() and choices):
            message = f"{axis!r} is not of the form NAME=VALUE,..."
            raise click.UsageError(message)
        names.append(name)
        values.append([_value(choice) for choice in choices.split(",")])
    return [dict(zip(names, choice, strict=True)) for choice in product(*values)]


def _value(text: str) -> int | float | str:
    for number in (int, float):
        with suppress(ValueError):
            return number(text)
    return text


def _clock(name: str, cache: Cache | None) -> Clock:
    if name == "cpu":
        if cache is not None:
            message = "--cache needs --clock torch: nobody sees to the processor's caches"
            raise click.UsageError(message)
        return CpuClock()
    if cache is None:
        message = "--clock torch needs --cache cold or --cache hot: the times differ much"
        raise click.UsageError(message)
    return TorchClock(cache)


@contextmanager
def _opened(output: str | None, *, force: bool) -> Iterator[Store | None]:
    if output is None:
        yield None
        return
    make_room(output, force=force)
    with Store(output) as store:
        yield store


def _timings(
    found: Mapping[str, Function],
    points: Sequence[Point],
    clock: Clock,
    effort: Effort,
    *,
    factory: bool,
) -> Iterator[Timing]:
    for point in points:
        subjects = {
            _key(name, point): _bound(function, point, factory=factory)
            for name, function in found.items()
        }
        yield from measure_in_turns(subjects, clock=clock, effort=effort).values()


def _key(name: str, point: Point) -> str:
    return " ".join([name, *(f"{axis}={value}" for axis, value in point.items())])


def _bound(function: Function, point: Point, *, factory: bool) -> Function:
    """Give a function without arguments; one that cannot be made fails as it is timed."""
    if not factory:
        return partial(function, **point)
    try:
        made = function(**point)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - it is the user's own
        return partial(_fail, error)
    if not callable(made):
        return partial(_fail, TypeError("with --factory, FUNC has to give back a function"))
    return made


def _fail(error: BaseException) -> None:
    raise error


def _written(timings: Iterator[Timing], store: Store | None) -> Iterator[Timing]:
    """Write each record and see it to the disk before the next is begun."""
    for timing in timings:
        if store is not None:
            store.append(timing)
        yield timing


def _answer(timing: Timing) -> Answer:
    summary = timing.summarise()
    document = Document(
        schema=_SCHEMA,
        input={"key": timing.key},
        status="abstained" if summary is None else "ok",
        data=timing.to_dict(),
        blocks=lambda: _blocks(timing, summary),
        records=lambda: [_record(timing, summary)],
    )
    return document, exit_codes.FINDINGS if summary is None else exit_codes.OK


def _blocks(timing: Timing, summary: Summary | None) -> list[Block]:
    if summary is None:
        return [Headline(f"{timing.key}: {timing.message} ({timing.outcome})")]
    low, high = (duration(round(end)) for end in summary.interval_ns)
    calls = "" if timing.n_calls == 1 else f" of {count(timing.n_calls, 'call')} each"
    notes = [f"{count(summary.n_samples, 'sample')}{calls}, stopped by {timing.stopped_by}"]
    if not timing.is_settled:
        notes.append("the time had not settled when the samples were taken")
    return [
        Headline(f"{timing.key}: {duration(round(summary.median_ns))}, from {low} to {high}"),
        Notes([*notes, *summary.warnings]),
    ]


def _record(timing: Timing, summary: Summary | None) -> Record:
    low, high = summary.interval_ns if summary else (None, None)
    return {
        "key": timing.key,
        "outcome": timing.outcome,
        "message": timing.message,
        "median_ns": None if summary is None else summary.median_ns,
        "low_ns": low,
        "high_ns": high,
        "samples": len(timing.samples_ns),
        "stopped_by": timing.stopped_by,
    }
