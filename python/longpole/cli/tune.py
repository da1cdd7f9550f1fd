"""`longpole tune`: search for the best variant of a program or function."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from longpole.cli.answer import exit_codes
from longpole.cli.answer.problems import require, usage_errors
from longpole.cli.ask.files import OutputPath
from longpole.cli.ask.numbers import COUNT, NUMBER, SECONDS, gate_option
from longpole.cli.ask.options import (
    Options,
    answer_options,
    answers,
    force_option,
    resume_option,
    reuse_option,
)
from longpole.cli.ask.runner import runner_options
from longpole.files.writing import inputs_protected
from longpole.report.blocks import Column, Headline, Notes, Sentence, Table
from longpole.report.document import Abstention, Document, Warned
from longpole.words.wording import count, duration, share

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from longpole.bench import Record
    from longpole.bench.run.cluster import Cluster
    from longpole.bench.tune import Effort, Task
    from longpole.bench.tune.finals import Finalist
    from longpole.bench.tune.search import Tuning
    from longpole.cli.answer.emit import Answer
    from longpole.cli.bench.session import Session
    from longpole.devices import Found
    from longpole.report.blocks import Block, Cell

_SCHEMA: Final = "longpole.tune/1"
_SHOWN_FAILURES: Final = 5
_NOISY: Final = {
    "halving": "; candidates that it could not tell apart from the better ones ran again before "
    "they were dropped"
}
_COLUMNS: Final = (
    Column("candidate", "name"),
    Column("value", "number"),
    Column("worse by", "change"),
    Column("interval", "number"),
    Column("runs", "number"),
    Column("verdict"),
)


@click.command()
@answers("longpole.bench.tune.search:Tuning")
@click.argument("task", metavar="TASK", type=click.Path(dir_okay=False, readable=False))
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
    type=COUNT,
    metavar="N",
    help="Number of candidates to try.  [default: 1000 for halving, else 100]",
)
@click.option(
    "--runs",
    "n_runs",
    type=COUNT,
    metavar="N",
    default=7,
    show_default=True,
    help="Number of runs of a candidate that is measured in full.",
)
@click.option(
    "--finalists",
    "n_finalists",
    type=click.IntRange(min=1, max=100),
    metavar="N",
    default=4,
    show_default=True,
    help="Number of candidates to measure in turns at the end.",
)
@click.option(
    "--seed",
    type=NUMBER,
    metavar="N",
    default=0,
    show_default=True,
    help="Seed of random choices.",
)
@click.option(
    "--budget",
    "budget_s",
    metavar="SECONDS",
    type=SECONDS,
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
@resume_option
@reuse_option
@runner_options
@answer_options
def tune(
    *,
    task: str,
    strategy: str,
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
    from longpole.bench.tune import Effort, find_strategy, read_task

    effort = Effort(**{name: others.pop(name) for name in Effort.__dataclass_fields__})
    with usage_errors():
        declared = read_task(task)
        _ = declared.start  # raises for a space without an allowed point
        find_strategy(strategy)
    asked = _Asked(task, declared, strategy, effort, gate)
    with inputs_protected(declared.files):
        return _searched(asked, options, **others)


@dataclass(frozen=True, slots=True)
class _Asked:
    """The requested search."""

    path: str
    task: Task
    strategy: str
    effort: Effort
    gate: float


def _searched(
    asked: _Asked,
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
    from longpole.cli.bench.session import Session, changes_since, continued_by, stopped_by_signals

    path = Path(results or f"{Path(asked.path).stem}.results.jsonl")
    session = Session(path, (), given)
    devices = _devices(asked.task, session)
    warnings = changes_since(path) if resume else []
    with (
        usage_errors(TaskError),
        stopped_by_signals(),
        continued_by(f"tune {asked.path} --resume"),
        _progress() as on_record,
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
    return options.emit(_tuning_answer(asked.path, str(path), found, warnings))


def _devices(task: Task, session: Session) -> Found | Cluster | None:
    """Find the devices of the candidates; a function's clock determines its device."""
    from longpole.bench.tune import Function

    if not isinstance(task.candidate, Function):
        return session.devices()
    require(
        not session.given["devices"],
        "the clock of a function determines its device: --devices does not apply",
    )
    return None


@contextmanager
def _progress() -> Iterator[Callable[[Record], object]]:
    """Show the number of runs on a terminal."""
    from longpole.cli.answer.live import Live, is_watched

    if not is_watched():
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


def _tuning_answer(
    task: str, results: str, found: Tuning, warnings: Sequence[Warned] = ()
) -> Answer:
    """Report the winner; exit code 4 without one."""
    document = Document(
        schema=_SCHEMA,
        input={"task": task, "results": results},
        status="ok" if found.winner else "abstained",
        abstains_because=[] if found.winner else [Abstention("no_result")],
        scope={"gate": found.gate, "confidence": found.confidence},
        warnings=warnings,
        data=found,
        blocks=lambda: list(_blocks(task, results, found)),
        records=lambda: [
            {"label": each.label, "outcome": each.outcome, "value": each.value, "runs": each.n_runs}
            for each in found.candidates
        ],
        columns=("label", "outcome", "value", "runs"),
    )
    return document, exit_codes.OK if found.winner else exit_codes.INCONCLUSIVE


def _blocks(task: str, results: str, found: Tuning) -> Iterator[Block]:
    yield Headline(f"{task}: {_headline(found)}")
    if found.winner is not None:
        yield Sentence(_tied(found))
        yield Table(_COLUMNS, [_cells(found, each) for each in found.finalists])
    yield Notes([*_notes(found), f"results: {results}"])


def _headline(found: Tuning) -> str:
    winner = found.winner
    if winner is None:
        return (
            "no finalist worked when they were measured in turns"
            if found.outcomes.get("ok")
            else "no candidate worked"
        )
    said = f"{winner.label}: {_value(found, winner.value)}"
    if winner.is_baseline:
        return f"{said}, which is the baseline: no candidate is shown to be faster"
    if found.baseline is None or found.speedup is None:
        return f"{said}; the baseline failed"
    how = "fast" if found.metric == "time" else "good"
    said += f", {found.speedup:.2f} times as {how} as the baseline"
    ends = found.speedup_interval
    interval = (
        "too few runs for an interval" if ends is None else f"{ends.low:.2f} to {ends.high:.2f}"
    )
    said += f" ({interval})"
    if found.baseline.is_tied:
        better = "faster" if found.metric == "time" else "better"
        return f"no candidate is shown to be {better} than the baseline; the best is {said}"
    return said


def _tied(found: Tuning) -> str:
    """Describe the candidates tied with the winner."""
    if len(found.finalists) == 1:
        return "No other candidate was left to compare it with."
    if not found.tied:
        return f"It is better than every other finalist, with {share(found.confidence)} confidence."
    labels = "; ".join(each.label for each in found.tied)
    return f"It is tied with {count(len(found.tied), 'other finalist')}: {labels}."


def _cells(found: Tuning, each: Finalist) -> tuple[Cell, ...]:
    ends = each.worse_interval
    interval = None if ends is None else " to ".join(f"{100 * end:+.1f} %" for end in ends)
    verdict = "winner" if each is found.winner else "tied" if each.is_tied else "worse"
    verdict += ", baseline" if each.is_baseline else ""
    value = _value(found, each.value)
    return each.label, value, each.worse_by, interval, each.n_runs, verdict


def _value(found: Tuning, value: float) -> str:
    if found.unit == "ns":
        return duration(value)
    return f"{value:.4g} {found.unit}".strip()


def _notes(found: Tuning) -> Iterator[str]:
    if len(found.finalists) > 1:
        yield (
            f"with {share(found.confidence)} confidence, the best finalist is the winner or tied "
            f"with it; tied: not shown to be worse, or by no more than {share(found.gate)}"
        )
    n_tried = len(found.candidates)
    outcomes = ", ".join(f"{number:,} {name}" for name, number in found.outcomes.items())
    yield (
        f"tried {n_tried:,} of {count(found.n_points, 'combination')} of the parameters; "
        f"{_left_out(found)}outcomes: {outcomes}"
    )
    if found.n_outdated:
        yield (
            f"{count(found.n_outdated, 'run')} of an earlier search repeated: the program, a file "
            "that it names or imports, or the environment has changed since"
        )
    times = f"{found.screening_s:.1f} s of screening and {found.finals_s:.1f} s of finals"
    known = f"; {count(found.n_known, 'run')} came from an earlier search" if found.n_known else ""
    yield f"measured for {times}{known}"
    if found.screening_noise is not None and found.screening_noise > found.gate:
        yield (
            f"the screening is noisy: two runs of a candidate differ by "
            f"{share(found.screening_noise)}{_NOISY.get(found.strategy, '')}"
        )
    if found.outcomes.get("timeout"):
        yield "`timeout_s` in the table `candidate` of the task gives runs more time"
    failed = [each for each in found.candidates if each.outcome != "ok"]
    for each in failed[:_SHOWN_FAILURES]:
        yield f"{each.label}: {each.outcome}, {each.message}"
    if len(failed) > _SHOWN_FAILURES:
        yield f"{count(len(failed) - _SHOWN_FAILURES, 'more candidate')} failed; see --format json"


def _left_out(found: Tuning) -> str:
    """Return how many combinations were not tried, and why."""
    n_tried, n_allowed = len(found.candidates), found.n_allowed
    if n_tried == found.n_points:
        return ""
    if n_allowed is None:
        return f"constraints or the strategy {found.strategy} left out the others; "
    parts = [
        f"constraints exclude {found.n_points - n_allowed:,}" if n_allowed < found.n_points else "",
        f"the strategy {found.strategy} left out {n_allowed - n_tried:,} that are allowed"
        if n_tried < n_allowed
        else "",
    ]
    return "".join(f"{part}; " for part in parts if part)
