"""`longpole bench time`: time Python functions and commands."""

from __future__ import annotations

import shlex
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import click

from longpole.bench.records.store import Store, make_room
from longpole.bench.time.commands import CommandPlan, failure_of
from longpole.bench.time.processes import (
    Campaign,
    TargetError,
    compare_points,
    configurations,
    time_in_processes,
)
from longpole.bench.time.timing import WorkPlan
from longpole.bench.time.worker import CLOCKS
from longpole.cli.answer.problems import require, usage_errors
from longpole.cli.ask.files import CommandBehindDashes, OutputPath, behind_dashes
from longpole.cli.ask.numbers import COUNT_OR_ZERO, SECONDS, parse_share, timeout_option
from longpole.cli.ask.options import Options, answer_options, answers, force_option, gather
from longpole.cli.ask.runner import device_options
from longpole.cli.bench.timings import timings_answer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from longpole.bench import Record
    from longpole.cli.answer.emit import Answer

    Point: TypeAlias = dict[str, int | float | str]

_DTYPES: Final = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "int8")
_COMMANDS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "keys": click.option(
        "-n",
        "--key",
        "keys",
        multiple=True,
        metavar="KEY",
        help="Key of the results of a command. Repeatable, in the order of the commands.",
    ),
    "commands": click.option(
        "-c",
        "--command",
        "commands",
        multiple=True,
        metavar="COMMAND",
        help="Command to time. Repeatable: several alternate and are compared with the first.",
    ),
    "n_warm_up": click.option(
        "--warm-up",
        "n_warm_up",
        type=COUNT_OR_ZERO,
        metavar="N",
        default=1,
        show_default=True,
        help="Number of untimed executions of each command in a run.",
    ),
    "setup": click.option(
        "--setup", metavar="COMMAND", help="Command to run once, before the first execution."
    ),
    "prepare": click.option(
        "--prepare", metavar="COMMAND", help="Command to run before each execution, untimed."
    ),
    "cleanup": click.option(
        "--cleanup", metavar="COMMAND", help="Command to run once, after the last execution."
    ),
    "shell": click.option(
        "--shell",
        metavar="SHELL",
        help="Start commands with `SHELL -c`, and subtract the time of an empty command.",
    ),
    "timeout_s": timeout_option("an execution", 600),
    "allows_failure": click.option(
        "--ignore-failure",
        "allows_failure",
        is_flag=True,
        help="Time commands regardless of their exit status.",
    ),
}
"""Options for the commands to time."""


def _timed_commands(
    *,
    keys: Sequence[str],
    commands: Sequence[str],
    shell: str | None,
    n_warm_up: int,
    setup: str | None,
    prepare: str | None,
    cleanup: str | None,
    timeout_s: float,
    allows_failure: bool,
) -> tuple[list[str], CommandPlan]:
    """Return the commands to time, and how to execute them."""
    started_by = None if shell is None else (*shlex.split(shell), "-c")
    plan = CommandPlan(started_by, n_warm_up, setup, prepare, cleanup, timeout_s, allows_failure)
    texts = _texts(commands, plan)
    require(not keys or len(keys) == len(texts), "give --key once for each command, or not at all")
    require(len(set(keys)) == len(keys), "--key was given twice with the same name")
    named = dict(zip(keys or _unique(texts), texts, strict=True))
    return list(named), replace(plan, texts=named)


def _unique(texts: Sequence[str]) -> list[str]:
    """Return names of commands: their texts, with a number if a command is given twice.

    Examples
    --------
    >>> len(set(_unique(["a", "b", "a"])))
    3
    """
    seen: Counter[str] = Counter()
    names = []
    for text in texts:
        seen[text] += 1
        names.append(text if seen[text] == 1 else f"{text} #{seen[text]}")
    return names


@click.command(cls=CommandBehindDashes)
@answers("longpole.cli.bench.timings:Timings")
@click.argument("functions", metavar="[MODULE:FUNC... | -- COMMAND...]", nargs=-1)
@click.option(
    "--axis",
    "axes",
    multiple=True,
    metavar="NAME=VALUE,...",
    help="Values of an argument. Repeatable.",
)
@click.option("--factory", is_flag=True, help="FUNC returns the function to time.")
@click.option(
    "--clock",
    metavar="cpu|torch|cupti|MODULE:FUNC",
    default="cpu",
    show_default=True,
    help="Clock: `cpu` for wall time, `torch` or `cupti` for the time of a device, or a clock that "
    "FUNC returns.",
)
@click.option(
    "--cache",
    type=click.Choice(["cold", "hot", "graph"]),
    help="State of the device caches; `graph` replays captured calls.  [default: graph if a "
    "call is shorter than 100 us and can be captured, else hot]",
)
@click.option(
    "--copies",
    type=click.IntRange(min=1, max=10_000),
    default=1,
    show_default=True,
    metavar="N",
    help="Call the factory N times and rotate through what it returns.",
)
@click.option(
    "--configs",
    metavar="MODULE:KERNEL",
    help="Time FUNC with each configuration of an autotuned Triton kernel.",
)
@click.option("--bytes", "moved", metavar="EXPR", help="Bytes that a call moves, such as 3*n*n*2.")
@click.option(
    "--flops",
    "computed",
    metavar="EXPR[:DTYPE]",
    help="Floating-point operations of a call, such as 2*n**3, and their data type for the share of"
    " the peak: fp64, fp32, tf32, bf16, fp16, fp8 or int8.",
)
@device_options
@click.option(
    "--runs",
    "n_processes",
    type=click.IntRange(min=1, max=10_000),
    metavar="N",
    help="Number of runs, each in a fresh process.  [default: 7, 14 or 28, until the "
    "verdict is clear; 7 for one function]",
)
@click.option(
    "--gate",
    type=parse_share,
    metavar="SHARE",
    help="Smallest change that matters, such as 3% or 0.03; exit with 1 if one is slower than"
    " the first by more.  [default: 3%, without an effect on the exit code]",
)
@click.option(
    "--budget",
    "budget_s",
    metavar="SECONDS",
    type=SECONDS,
    default=5,
    show_default=True,
    help="Time of seven runs with one set of arguments.",
)
@click.option(
    "-o",
    "--output",
    type=OutputPath(),
    help="File to write a record of each run to.",
)
@force_option
@gather("timed", _COMMANDS, _timed_commands)
@answer_options
def time(
    *,
    functions: tuple[str, ...],
    timed: tuple[list[str], CommandPlan],
    axes: tuple[str, ...],
    moved: str | None,
    computed: str | None,
    output: str | None,
    force: bool,
    options: Options,
    **how: Any,
) -> int:
    """Time Python functions or commands, and compare several with the first.

    Each run is a fresh process, in which all functions alternate. Each function is called with
    every combination of the arguments of --axis. With --factory, FUNC is called once for
    each combination and returns the function to time, which excludes the setup. For a
    command, the whole process is timed, up to 100 times in a run. No shell is used unless
    --shell is given. The exit code is 1 if a function raised an exception or a command
    failed. With --gate, it is also 1 if one is slower than the first by more than that, with
    its whole interval, and 4 if the interval contains the gate.

    \b
    Examples:
      longpole bench time kernels:gemm --axis n=1024,2048 -o gemm.jsonl
      longpole bench time kernels:old kernels:new --axis n=1024
      longpole bench time -- ./gemm_profiler 1024 1024 1024
      longpole bench time -c './old 1024' -c './new 1024' --gate 3%
    """
    commands, plan = timed
    require(
        bool(functions) != bool(commands),
        "give functions as MODULE:FUNC, or a command after -- or with -c",
    )
    require(
        bool(commands) or plan == CommandPlan(),
        "--warm-up, --setup, --prepare, --cleanup, --shell, --timeout and --ignore-failure are for"
        " commands",
    )
    _check_clock(how["clock"], how["cache"], has_commands=bool(commands))
    _check_preparations(how)
    with usage_errors():
        names = commands or _under_configs(functions, how["configs"])
    campaign = Campaign(
        names,
        _points(axes),
        commands=plan if commands else None,
        work=_work(moved, computed),
        **{name: value for name, value in how.items() if value is not None},
    )
    with usage_errors():
        for point in campaign.points:
            campaign.work.at(point)
    require(
        not commands or not (axes or campaign.factory), "--axis and --factory are for functions"
    )
    is_gated = how["gate"] is not None
    require(not is_gated or len(names) > 1, "--gate needs two functions or commands to compare")
    answer = _timed(campaign, output, force=force, is_gated=is_gated)
    return options.emit(answer)


def _work(moved: str | None, computed: str | None) -> WorkPlan:
    """Return the work of a call, whose operations may have a data type after a colon."""
    flops, is_typed, dtype = (computed or "").partition(":")
    require(
        not is_typed or (flops and dtype in _DTYPES),
        f"--flops {computed}: give EXPR or EXPR:DTYPE, with one of {', '.join(_DTYPES)}",
    )
    return WorkPlan(moved, flops or None, dtype or None)


def _timed(campaign: Campaign, output: str | None, *, force: bool, is_gated: bool) -> Answer:
    """Run a campaign, write its records, and compare the results."""
    with usage_errors(TargetError), _opened(output, force=force) as store:
        records, trouble = _set_up_and_timed(campaign, store)
    comparisons = compare_points(campaign, records) if len(campaign.names) > 1 else []
    found = [comparison for _, comparison in comparisons]
    return timings_answer(campaign, records, found, is_gated=is_gated, trouble=trouble)


def _set_up_and_timed(campaign: Campaign, store: Store | None) -> tuple[list[Record], str]:
    """Time after --setup and before --cleanup; return the records, and why --cleanup failed."""
    plan = campaign.commands or CommandPlan()
    if trouble := failure_of("--setup", plan.setup):
        raise TargetError(trouble)
    try:
        records = list(_written(time_in_processes(campaign), store))
    finally:
        trouble = failure_of("--cleanup", plan.cleanup)
    return records, trouble


def _under_configs(functions: tuple[str, ...], configs: str | None) -> list[str]:
    """Return the functions to time: one per configuration of a kernel, if it has some."""
    if configs is None:
        return list(dict.fromkeys(functions))
    require(len(functions) == 1, "--configs is for one function, which launches the kernel")
    return [f"{functions[0]}@{label}" for label in configurations(configs)]


def _check_preparations(how: Mapping[str, Any]) -> None:
    require(
        how["copies"] == 1 or how["factory"],
        "--copies needs --factory: each copy is the function that one call of the factory returns",
    )


def _points(axes: tuple[str, ...]) -> list[Point]:
    """Return every combination of axis values, with the last axis changing fastest."""
    names, values = [], []
    for axis in axes:
        name, is_axis, choices = axis.partition("=")
        is_sound = is_axis and name.isidentifier() and choices
        require(is_sound, f"{axis!r} is not of the form NAME=VALUE,...")
        names.append(name)
        values.append([_value(choice) for choice in choices.split(",")])
    return [dict(zip(names, choice, strict=True)) for choice in product(*values)]


def _value(text: str) -> int | float | str:
    for number in (int, float):
        with suppress(ValueError):
            return number(text)
    return text


def _check_clock(name: str, cache: str | None, *, has_commands: bool) -> None:
    is_known = name == "cpu" or ":" in name or name in CLOCKS
    require(is_known, f"--clock {name}: there are cpu, {', '.join(CLOCKS)}, and MODULE:FUNC")
    require(
        name == "cpu" or not has_commands,
        f"--clock {name} is for functions; commands are timed as whole processes",
    )
    require(
        name != "cpu" or cache is None,
        "--cache needs --clock torch: longpole does not control CPU caches",
    )


@contextmanager
def _opened(output: str | None, *, force: bool) -> Iterator[Store | None]:
    if output is None:
        yield None
        return
    make_room(output, force=force)
    with Store(output) as store:
        yield store


def _written(records: Iterator[Record], store: Store | None) -> Iterator[Record]:
    """Write each record and sync it to disk before the next run begins."""
    for record in records:
        if store is not None:
            store.append(record)
        yield record


def _texts(commands: Sequence[str], plan: CommandPlan) -> list[str]:
    """Return the commands to time, including the one after `--`.

    A single word after `--` is a script if a shell is used. Raises for commands that cannot be
    started.
    """
    behind = behind_dashes()
    require(behind != [], "no command after --")
    if behind:
        is_script = len(behind) == 1 and plan.shell is not None
        commands = [*commands, behind[0] if is_script else shlex.join(behind)]
    for name in commands:
        try:
            plan.argv_of(name)
        except ValueError as error:
            message = str(error).partition("\n")[0]
            hint = "" if plan.shell else ": --shell sh starts it with one"
            raise click.UsageError(message + hint) from error
    return list(commands)
