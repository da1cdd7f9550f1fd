"""`longpole bench time`: measure Python functions."""

from __future__ import annotations

import math
import sys
from contextlib import contextmanager, suppress
from dataclasses import asdict
from itertools import product
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import click

from longpole.bench.records.samples import gather
from longpole.bench.records.store import Store, make_room
from longpole.bench.time.processes import (
    Campaign,
    TargetError,
    compare_points,
    time_in_processes,
)
from longpole.cli.answer import exit_codes
from longpole.cli.answer.comparison import comparison_blocks, plain_difference
from longpole.cli.answer.emit import emit
from longpole.cli.ask.options import Options, shared_options
from longpole.cli.ask.shares import parse_share
from longpole.report.blocks import Headline, Notes
from longpole.report.document import Document
from longpole.report.terminal import Terminal
from longpole.wording import count, duration, share

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from longpole.bench import Comparison, Record
    from longpole.bench.compare.evidence import Side
    from longpole.cli.answer.emit import Answer
    from longpole.devices import Busy
    from longpole.report.blocks import Block

    Row: TypeAlias = dict[str, Any]
    Point: TypeAlias = dict[str, int | float | str]

__all__ = ["time"]

_SCHEMA: Final = "longpole.bench.time/1"


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
    "--cache",
    type=click.Choice(["cold", "hot", "graph"]),
    help="What a device's caches hold; `graph` replays captured calls (torch only).",
)
@click.option(
    "--busy",
    type=click.Choice(["refuse", "wait", "allow"]),
    default="refuse",
    show_default=True,
    help="What to do with a device that somebody else uses (torch only).",
)
@click.option(
    "--processes",
    type=click.IntRange(min=1, max=10_000),
    metavar="N",
    help="Runs, each a fresh process.  [default: 7, 14 or 28, until the verdict is clear; "
    "7 for one function]",
)
@click.option(
    "--gate",
    type=parse_share,
    metavar="SHARE",
    default="3%",
    show_default=True,
    help="The smallest change that matters, as 3% or 0.03.",
)
@click.option(
    "--budget-s",
    type=click.FloatRange(min=0, min_open=True),
    callback=_finite,
    default=5.0,
    show_default=True,
    help="Seconds for seven runs of one point of the axes.",
)
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False), help="Write the record of each run here."
)
@click.option("-f", "--force", is_flag=True, help="Replace records of an earlier call.")
@click.option("--append", is_flag=True, help="Add to the records of an earlier call.")
@shared_options
def time(
    *,
    functions: tuple[str, ...],
    axes: tuple[str, ...],
    factory: bool,
    clock_name: str,
    cache: str | None,
    busy: Busy,
    processes: int | None,
    gate: float,
    budget_s: float,
    output: str | None,
    force: bool,
    append: bool,
    options: Options,
) -> int:
    """Time Python functions; several take turns and are compared with the first.

    Each run is a fresh process, in which all functions take turns. Each function is called
    with the arguments of every point of the axes. With --factory it is called once a point,
    and what it gives back is timed: that leaves out its preparations. Exits with 1 where a
    function raised.

    \b
    Examples:
      longpole bench time kernels:gemm --axis n=1024,2048 -o gemm.jsonl
      longpole bench time kernels:old kernels:new --axis n=1024
    """
    _check_clock(clock_name, cache)
    campaign = Campaign(
        names=list(dict.fromkeys(functions)),
        points=_points(axes),
        factory=factory,
        clock=clock_name,
        cache=cache,
        n_processes=processes,
        budget_s=budget_s,
        gate=gate,
        busy=busy,
    )
    try:
        with _opened(output, force=force, append=append) as store:
            records = list(_written(time_in_processes(campaign), store))
    except TargetError as error:
        raise click.UsageError(str(error)) from error
    comparisons = compare_points(campaign, records) if len(campaign.names) > 1 else []
    answer = _answer(campaign, records, [comparison for _, comparison in comparisons])
    return emit([answer], options.form, Terminal.of(sys.stdout, options.color))


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


def _check_clock(name: str, cache: str | None) -> None:
    if name == "cpu" and cache is not None:
        message = "--cache needs --clock torch: nobody sees to the processor's caches"
        raise click.UsageError(message)
    if name == "torch" and cache is None:
        message = "--clock torch needs --cache cold or --cache hot: the times differ much"
        raise click.UsageError(message)


@contextmanager
def _opened(output: str | None, *, force: bool, append: bool) -> Iterator[Store | None]:
    if output is None:
        yield None
        return
    if not append:
        make_room(output, force=force)
    with Store(output, resume=append) as store:
        yield store


def _written(records: Iterator[Record], store: Store | None) -> Iterator[Record]:
    """Write each record and see it to the disk before the next run begins."""
    for record in records:
        if store is not None:
            store.append(record)
        yield record


def _answer(
    campaign: Campaign, records: Sequence[Record], comparisons: Sequence[Comparison]
) -> Answer:
    rows = _rows(records)
    differences = [each for comparison in comparisons for each in comparison.differences]
    has_failed = any(row["median_ns"] is None for row in rows)
    document = Document(
        schema=_SCHEMA,
        input={"functions": list(campaign.names)},
        status="abstained" if has_failed else "ok",
        scope={"gate": campaign.gate, "confidence": campaign.confidence},
        data={"functions": rows, "differences": [plain_difference(each) for each in differences]},
        blocks=lambda: _blocks(rows, comparisons),
        records=lambda: rows,
    )
    return document, exit_codes.FINDINGS if has_failed else exit_codes.OK


def _rows(records: Sequence[Record]) -> list[Row]:
    """Sum up the runs of each key."""
    from longpole.bench.compare.evidence import side_of

    measurements = gather(record.to_dict() for record in records)
    messages = {record.key: record.message for record in records if record.message}
    return [
        _row(key, side_of(runs), messages.get(key, ""), runs.n_failed)
        for key, runs in measurements.runs.items()
    ]


def _row(key: str, side: Side | None, message: str, n_failed: int) -> Row:
    fields: dict[str, Any] = {
        "key": key,
        "median_ns": None,
        "spread": None,
        "n_runs": 0,
        "n_samples": 0,
        "n_failed": n_failed,
        "n_dropped": 0,
    }
    if side is not None:
        fields |= {name: value for name, value in asdict(side).items() if name in fields}
    return {**fields, "message": message}


def _blocks(rows: Sequence[Row], comparisons: Sequence[Comparison]) -> list[Block]:
    blocks: list[Block] = []
    for row in rows:
        blocks.append(Headline(_headline(row)))
        if notes := list(_notes(row)):
            blocks.append(Notes(notes))
    return [*blocks, *(block for each in comparisons for block in comparison_blocks(each))]


def _headline(row: Row) -> str:
    if row["median_ns"] is None:
        return f"{row['key']}: {row['message']}"
    said = f"{row['key']}: {duration(round(row['median_ns']))}, the median of "
    said += f"{count(row['n_runs'], 'run')} ({count(row['n_samples'], 'sample')})"
    return said if row["spread"] is None else f"{said}; runs lie {share(row['spread'])} apart"


def _notes(row: Row) -> Iterator[str]:
    if row["median_ns"] is None:
        return
    if row["n_failed"]:
        yield f"{count(row['n_failed'], 'run')} failed: {row['message']}"
    elif row["message"]:
        yield row["message"]
