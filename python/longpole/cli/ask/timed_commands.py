"""The commands to time, and how to execute them."""

from __future__ import annotations

import shlex
from functools import wraps
from typing import TYPE_CHECKING, Any, Final

import click

from longpole.bench.time.commands import CommandPlan
from longpole.cli.answer.usage import require
from longpole.cli.ask.dashes import behind_dashes
from longpole.cli.ask.numbers import MOST

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["command_options"]


_OPTIONS: Final = (
    click.option(
        "-c",
        "--command",
        "commands",
        multiple=True,
        metavar="COMMAND",
        help="A command to time; several alternate and are compared with the first.",
    ),
    click.option(
        "--warm-up",
        "n_warm_up",
        type=click.IntRange(0, MOST),
        default=1,
        show_default=True,
        help="Untimed executions of each command in a run.",
    ),
    click.option(
        "--prepare", metavar="COMMAND", help="Command to run before each execution, untimed."
    ),
    click.option("--cleanup", metavar="COMMAND", help="Command to run after each run, untimed."),
    click.option(
        "--shell",
        metavar="SHELL",
        help="Start commands with `SHELL -c`, and subtract the time of an empty command.",
    ),
    click.option(
        "--timeout",
        "timeout_s",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        default=600.0,
        show_default=True,
        help="Time limit of an execution.",
    ),
    click.option(
        "--ignore-failure",
        "allows_failure",
        is_flag=True,
        help="Time commands regardless of their exit status.",
    ),
)


def command_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options for executing commands to a command, as `commands` and `plan`."""

    @wraps(command)
    def with_commands(
        *,
        commands: tuple[str, ...],
        n_warm_up: int,
        prepare: str | None,
        cleanup: str | None,
        shell: str | None,
        timeout_s: float,
        allows_failure: bool,
        **rest: Any,
    ) -> int:
        started_by = None if shell is None else (*shlex.split(shell), "-c")
        plan = CommandPlan(started_by, n_warm_up, prepare, cleanup, timeout_s, allows_failure)
        return command(commands=_names(commands, plan), plan=plan, **rest)

    decorated: Callable[..., int] = with_commands
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


def _names(commands: Sequence[str], plan: CommandPlan) -> list[str]:
    """Return the distinct commands to time, including the one after `--`.

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
    return list(dict.fromkeys(commands))
