"""`longpole tune`: search for the best variant of a program or function."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from longpole.cli.answer.usage import require, usage_errors
from longpole.cli.ask.files import OutputPath
from longpole.cli.ask.numbers import MOST, NUMBER
from longpole.cli.ask.options import Options, answer_options, answers, force_option
from longpole.cli.ask.runner import runner_options
from longpole.cli.ask.shares import gate_option
from longpole.files import check_free, inputs_protected
from longpole.wording import escape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from longpole.bench import Record
    from longpole.bench.run.cluster import Cluster
    from longpole.bench.tune import Effort, Task, Tuning
    from longpole.cli.ask.session import Session
    from longpole.devices import Found

__all__ = ["tune"]


@click.command()
@answers("longpole.cli.answer.tune:TuneData")
@click.argument(
    "task", metavar="[TASK]", required=False, type=click.Path(dir_okay=False, readable=False)
)
@click.option(
    "--strategy",
    default="halving",
    show_default=True,
    metavar="NAME",
    help="How to search: halving, exhaustive, random, optuna, or kernel-tuner:NAME.",
)
@click.option(
    "--trials",
    "n_trials",
    type=click.IntRange(1, MOST),
    metavar="N",
    help="Number of candidates to try.  [default: 1000 for halving, else 100]",
)
@click.option(
    "--runs",
    "n_runs",
    type=click.IntRange(1, MOST),
    metavar="N",
    default=7,
    show_default=True,
    help="Number of runs of a candidate that is measured in full.",
)
@click.option(
    "--finalists",
    "n_finalists",
    type=click.IntRange(min=1, max=100),
    default=4,
    show_default=True,
    help="Candidates to measure in turns at the end.",
)
@click.option("--seed", type=NUMBER, default=0, show_default=True, help="Seed of random choices.")
@click.option(
    "--budget",
    "budget_s",
    metavar="SECONDS",
    type=click.FloatRange(min=0, min_open=True),
    help="Time of seven runs of the finalists.  [default: 28 runs take a tenth of the time"
    " of the screening]",
)
@gate_option
@click.option(
    "-o",
    "--output",
    "results",
    type=OutputPath(),
    metavar="FILE",
    help="Results file to write.  [default: TASK.results.jsonl]",
)
@force_option
@click.option("--resume", is_flag=True, help="Continue an earlier search: no run is repeated.")
@click.option(
    "--reuse",
    multiple=True,
    metavar="RESULTS",
    type=click.Path(dir_okay=False, readable=False),
    help="Take runs from this file that have the same command, sources, device and libraries.",
)
@click.option(
    "--simulate",
    metavar="RESULTS",
    type=click.Path(dir_okay=False, readable=False),
    help="Run nothing: compare strategies on the runs in this file.",
)
@click.option(
    "--write-cache",
    type=OutputPath(),
    metavar="FILE",
    help="Write a cache file of Kernel Tuner with all candidates.",
)
@click.option(
    "--write-t4", type=OutputPath(), metavar="FILE", help="Write all candidates in the format T4."
)
@click.option(
    "--write-configs",
    type=OutputPath(),
    metavar="FILE",
    help="Write the winner and what is tied with it as Triton configurations, JSON or source.",
)
@click.option(
    "--from-trace",
    metavar="TRACE",
    help="Run nothing: list the kernels of a trace that are worth tuning.",
)
@runner_options
@answer_options
def tune(
    *,
    task: str | None,
    from_trace: str | None,
    simulate: str | None,
    strategy: str,
    gate: float,
    write_cache: str | None,
    write_t4: str | None,
    write_configs: str | None,
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
      longpole tune matmul.toml --simulate matmul.results.jsonl
      longpole tune --from-trace trace.json.gz
    """
    require(bool(task) != bool(from_trace), "give TASK, or --from-trace with a trace")
    if from_trace:
        return _from_trace(from_trace, options)
    from longpole.bench.tune import Effort, find_strategy, read_task

    effort = Effort(**{name: others.pop(name) for name in Effort.__dataclass_fields__})
    with usage_errors():
        declared = read_task(str(task))
        _ = declared.start  # raises for a space without an allowed point
        find_strategy(strategy)
    asked = _Asked(str(task), declared, strategy, effort, gate)
    if simulate:
        return _simulated(asked, simulate, options)
    exports = _Exports(write_cache, write_t4, write_configs)
    with inputs_protected(declared.files):
        exports.check(force=others["force"])
        return _searched(asked, exports, options, **others)


@dataclass(frozen=True, slots=True)
class _Asked:
    """The requested search."""

    path: str
    task: Task
    strategy: str
    effort: Effort
    gate: float


@dataclass(frozen=True, slots=True)
class _Exports:
    """The files to write for other programs."""

    cache: str | None
    t4: str | None
    configs: str | None

    def check(self, *, force: bool) -> None:
        """Raise for existing files that must not be replaced, before anything is run."""
        for path in filter(None, (self.cache, self.t4, self.configs)):
            check_free(Path(path), force=force)

    def write(self, asked: _Asked, found: Tuning, *, force: bool) -> None:
        from longpole.bench.tune import write_cache, write_t4

        if self.cache:
            with usage_errors():
                write_cache(self.cache, found, kernel=Path(asked.path).stem, force=force)
        if self.configs:
            _write_configs(asked.task, found, self.configs, force=force)
        if self.t4:
            write_t4(self.t4, found, force=force)


def _searched(
    asked: _Asked,
    exports: _Exports,
    options: Options,
    *,
    results: str | None,
    force: bool,
    resume: bool,
    reuse: tuple[str, ...],
    budget_s: float | None,
    record_env: list[str] | None,
    **given: Any,
) -> int:
    from longpole.bench.tune import TaskError, tune
    from longpole.cli.answer.tune import tuning_answer
    from longpole.cli.ask.session import Session, changes_since, stopped_by_signals

    path = Path(results or f"{Path(asked.path).stem}.results.jsonl")
    session = Session(path, (), given)
    devices = _devices(asked.task, session)
    warnings = changes_since(path) if resume else []
    for warned in warnings:
        sys.stderr.write(f"warning: {escape(warned.message)}\n")
    with (
        usage_errors(TaskError),
        stopped_by_signals(),
        _told_how_to_go_on(asked.path),
        _progress(options) as on_record,
    ):
        found = tune(
            asked.task,
            asked.strategy,
            devices=devices,
            results=path,
            resume=resume,
            force=force,
            reuse=reuse,
            effort=asked.effort,
            gate=asked.gate,
            budget_s=budget_s,
            policy=session.policy(),
            record_env=record_env or (),
            on_record=on_record,
        )
    exports.write(asked, found, force=force)
    return options.emit(tuning_answer(asked.path, str(path), found, warnings))


def _devices(task: Task, session: Session) -> Found | Cluster | None:
    """Find the devices of the candidates; a function's clock determines its device."""
    from longpole.bench.tune import Function

    if not isinstance(task.candidate, Function):
        return session.devices()
    require(
        not (session.given["devices"] or session.given["engine"]),
        "the clock of a function determines its device: --devices and --engine do not apply",
    )
    return None


def _write_configs(task: Task, found: Tuning, path: str, *, force: bool) -> None:
    """Write the best configurations into their source, or as JSON."""
    from longpole.bench.tune import write_triton

    best = [each.point for each in (found.winner, *found.tied) if each is not None]
    name, _, kernel = (task.origin or "").partition(":")
    is_source = name.endswith(".py") and not path.endswith(".json")
    source = task.folder / name if is_source else None
    with usage_errors():
        write_triton(path, best, source=source, kernel=kernel or None, force=force)


def _simulated(asked: _Asked, results: str, options: Options) -> int:
    from longpole.bench.tune import STRATEGIES, recorded_runs, simulate
    from longpole.cli.answer.tune import simulation_answer

    names = list(dict.fromkeys([*STRATEGIES, asked.strategy]))
    with usage_errors():
        records = recorded_runs(results)
        found = simulate(records, asked.task.objective, names, asked.effort, gate=asked.gate)
    return options.emit(simulation_answer(results, found))


def _from_trace(trace: str, options: Options) -> int:
    """Answer with the table of kernels by gain."""
    from longpole.cli.answer.table import TABLE, worth_tuning
    from longpole.cli.ask.traces import answer_each
    from longpole.cli.ask.windows import Asked, about_stretch

    usual = Asked(
        step=None, whole=False, annotation=None, instance=None, between=None, step_name=None
    )
    answer = about_stretch(TABLE, usual, worth_tuning)
    return answer_each([trace], options, TABLE, answer, arguments="default")


@contextmanager
def _told_how_to_go_on(task: str) -> Iterator[None]:
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        sys.stderr.write(f"interrupted\nhint: continue with `longpole tune {task} --resume`\n")
        raise


@contextmanager
def _progress(options: Options) -> Iterator[Callable[[Record], object]]:
    """Show the number of runs on a terminal."""
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
