"""`longpole bench time`: time Python functions, also against one another."""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from itertools import product
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import click

from longpole.bench.clocks import CpuClock, TorchClock
from longpole.bench.timing import Effort, measure_in_turns
from longpole.cli import exit_codes
from longpole.cli.durations import duration_text
from longpole.cli.shares import share, share_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import TextIO

    from longpole.bench.clocks import Cache, Clock
    from longpole.bench.timing import Timing

    Function: TypeAlias = Callable[..., object]
    Point: TypeAlias = dict[str, int | float | str]

__all__ = ["time"]

_DEFAULTS: Final = Effort()


@click.command
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
    type=share,
    metavar="SHARE",
    default=share_text(_DEFAULTS.precision).replace(" ", ""),
    show_default=True,
    help="How narrow the interval of the median has to get.",
)
@click.option(
    "--budget-s",
    type=click.FloatRange(min=0, min_open=True),
    default=_DEFAULTS.budget_s,
    show_default=True,
    help="Seconds for each point of the axes.",
)
@click.option(
    "--format",
    "layout",
    type=click.Choice(["text", "jsonl"]),
    default="text",
    show_default=True,
    help="How to write the result.",
)
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="Write every sample here.")
@click.option("-f", "--force", is_flag=True, help="Write over an output that is there.")
def time(
    functions: tuple[str, ...],
    *,
    axes: tuple[str, ...],
    factory: bool,
    clock_name: str,
    cache: Cache | None,
    precision: float,
    budget_s: float,
    layout: str,
    output: str | None,
    force: bool,
) -> int:
    """Time Python functions; several take turns, so that they can be compared.

    Each function is called with the arguments of every point of the axes. With --factory it
    is called once a point, and what it gives back is timed: that leaves out its preparations.
    The exit code is 1 where a function raised.

    Example: longpole bench time kernels:gemm --axis n=1024,2048 -o gemm.jsonl
    """
    from longpole.errors import DeviceError, MissingDependencyError

    found = {name: _found(name) for name in functions}
    points = _points(axes)
    effort = Effort(precision=precision, budget_s=budget_s)
    try:
        clock = _clock(clock_name, cache)
    except (DeviceError, MissingDependencyError) as error:
        click.echo(f"error: {error}", err=True)
        return exit_codes.MISSING
    outcomes = set()
    with _opened(output, force=force) as records:
        for timing in _timings(found, points, clock, effort, factory=factory):
            outcomes.add(timing.outcome)
            _write(timing, records)
            click.echo(_as_text(timing) if layout == "text" else _as_json(timing))
    return exit_codes.OK if outcomes == {"ok"} else exit_codes.FINDINGS


def _found(name: str) -> Function:
    """Find a function as `python -m` would find its module."""
    module_name, _, function_name = name.partition(":")
    if not function_name:
        message = f"{name!r} is not of the form MODULE:FUNC"
        raise click.UsageError(message)
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        function: Function = attrgetter(function_name)(import_module(module_name))
    except (ImportError, AttributeError) as error:
        message = f"{name} cannot be found: {error}"
        raise click.UsageError(message) from error
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
def _opened(output: str | None, *, force: bool) -> Iterator[TextIO | None]:
    if output is None:
        yield None
        return
    try:
        file = Path(output).open("w" if force else "x", encoding="utf-8")  # noqa: SIM115
    except FileExistsError as error:
        message = f"{output} is there already; -f writes over it"
        raise click.UsageError(message) from error
    with file:
        yield file


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
    except Exception as error:  # noqa: BLE001 - it is the user's own
        return partial(_fail, error)
    if not callable(made):
        return partial(_fail, TypeError("with --factory, FUNC has to give back a function"))
    return made


def _fail(error: Exception) -> None:
    raise error


def _write(timing: Timing, records: TextIO | None) -> None:
    """Write a record, and see it to the disk before the next is begun."""
    if records is not None:
        records.write(_as_json(timing) + "\n")
        records.flush()
        os.fsync(records.fileno())


def _as_json(timing: Timing) -> str:
    return json.dumps(timing.to_dict())


def _as_text(timing: Timing) -> str:
    summary = timing.summarise()
    if summary is None:
        return f"{timing.key}: {timing.outcome}: {timing.message}"
    precision = f"+- {share_text(summary.precision)}"
    line = f"{timing.key}: {duration_text(summary.median_ns)} {precision}"
    notes = [f"{summary.n_samples} samples of {timing.n_calls} calls", *summary.warnings]
    if not timing.is_settled:
        notes.append("had not settled when the samples were taken")
    return f"{line} ({'; '.join(notes)})"
