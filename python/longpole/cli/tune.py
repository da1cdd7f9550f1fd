"""`longpole tune`: search for the fastest variant of a program or function."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from longpole.cli.answer.usage import usage_errors
from longpole.cli.ask.options import Options, answer_options, answers
from longpole.cli.ask.runner import runner_options
from longpole.cli.ask.shares import gate_option

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from longpole.bench import Record

__all__ = ["tune"]


@click.command()
@answers("longpole.bench.tune.search:Tuning")
@click.argument("task", metavar="TASK", type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--strategy",
    type=click.Choice(["halving", "exhaustive", "random"]),
    default="halving",
    show_default=True,
    help="How to search.",
)
@click.option(
    "--trials",
    "n_trials",
    type=click.IntRange(min=1),
    metavar="N",
    help="Number of candidates to try.  [default: 1000 for halving, 100 for random]",
)
@click.option(
    "--runs",
    "n_runs",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Runs of a candidate that is measured in full.",
)
@click.option(
    "--finalists",
    "n_finalists",
    type=click.IntRange(min=1, max=100),
    default=4,
    show_default=True,
    help="Candidates to measure in turns at the end.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of random choices.")
@click.option(
    "--budget-s",
    type=click.FloatRange(min=0, min_open=True),
    default=5.0,
    show_default=True,
    help="Seconds for seven runs of the finalists.",
)
@gate_option
@click.option(
    "-o",
    "--results",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Results file to write.  [default: TASK.results.jsonl]",
)
@click.option("-f", "--force", is_flag=True, help="Replace results of an earlier search.")
@click.option("--resume", is_flag=True, help="Continue an earlier search: no run is repeated.")
@runner_options
@answer_options
def tune(
    *,
    task: str,
    strategy: str,
    results: str | None,
    force: bool,
    resume: bool,
    budget_s: float,
    gate: float,
    options: Options,
    **others: Any,
) -> int:
    """Search for the best candidate of a space of parameters.

    TASK is a TOML or JSON file with the parameters, the command or Python function to run and
    how to build and check it. Candidates are screened cheaply. The finalists and the
    baseline are then measured in turns, as `longpole bench time` does, and compared. A
    candidate whose output is wrong, or that fails, never wins. The exit code is 4 if every
    candidate failed.

    \b
    Examples:
      longpole tune matmul.toml
      longpole tune matmul.toml --strategy random --trials 50 --seed 1
      longpole tune matmul.toml --resume
    """
    from longpole.bench.tune import Effort, read_task
    from longpole.bench.tune import tune as search
    from longpole.cli.answer.tune import tuning_answer
    from longpole.cli.ask.session import Session, stopped_by_signals
    from longpole.devices import select

    effort = Effort(**{name: others.pop(name) for name in Effort.__dataclass_fields__})
    with usage_errors():
        declared = read_task(task)
    path = Path(results or f"{Path(task).stem}.results.jsonl")
    devices = others["devices"]
    with stopped_by_signals(), _told_how_to_go_on(task), _progress(options) as on_record:
        found = search(
            declared,
            strategy,
            devices=select(devices.split(",") if devices else None),
            results=path,
            resume=resume,
            force=force,
            effort=effort,
            gate=gate,
            budget_s=budget_s,
            policy=Session(path, (), others).policy(),
            on_record=on_record,
        )
    return options.emit(tuning_answer(task, str(path), found))


@contextmanager
def _told_how_to_go_on(task: str) -> Iterator[None]:
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        sys.stderr.write(f"interrupted\nhint: continue with `longpole tune {task} --resume`\n")
        raise


@contextmanager
def _progress(options: Options) -> Iterator[Callable[[Record], object]]:
    """Show how many runs were made, where somebody watches."""
    from longpole.cli.answer.live import Live, is_watched

    if not (options.progress and is_watched()):
        yield lambda _record: None
        return
    live, n_runs = Live(), 0

    def show(record: Record) -> None:
        nonlocal n_runs
        n_runs += 1
        live.show([f"screening, run {n_runs}: {record.key}, {record.outcome}"])

    try:
        yield show
    finally:
        live.clear()
