"""Which commands to time, and how to execute them."""

from __future__ import annotations

import shlex
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from longpole.cli.ask.usage import behind_dashes, require

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from longpole.bench.time import CommandPlan

__all__ = ["command_names", "command_options", "command_plan"]


def command_options(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command the options about executing others, as its argument `executed`."""

    @click.option(
        "-c",
        "--command",
        "commands",
        multiple=True,
        metavar="COMMAND",
        help="A command to time; several take turns and are compared with the first.",
    )
    @click.option(
        "--warm-up",
        type=click.IntRange(min=0),
        default=1,
        show_default=True,
        help="Executions of a command in each run that are not timed.",
    )
    @click.option("--prepare", metavar="COMMAND", help="Runs before each execution, not timed.")
    @click.option("--cleanup", metavar="COMMAND", help="Runs after each run, not timed.")
    @click.option(
        "--shell",
        metavar="SHELL",
        help="Start commands with `SHELL -c`, and take off what an empty one takes.",
    )
    @click.option(
        "--timeout-s",
        type=click.FloatRange(min=0, min_open=True),
        default=600.0,
        show_default=True,
        help="Seconds that an execution may take.",
    )
    @click.option(
        "--ignore-failure", is_flag=True, help="Time commands whatever their exit status is."
    )
    @wraps(command)
    def with_commands(
        *,
        commands: tuple[str, ...],
        warm_up: int,
        prepare: str | None,
        cleanup: str | None,
        shell: str | None,
        timeout_s: float,
        ignore_failure: bool,
        **rest: Any,
    ) -> int:
        plan = {
            "shell": None if shell is None else (*shlex.split(shell), "-c"),
            "n_warm_up": warm_up,
            "prepare": prepare,
            "cleanup": cleanup,
            "timeout_s": timeout_s,
            "allows_failure": ignore_failure,
        }
        return command(executed=(commands, plan), **rest)

    return with_commands


def command_names(commands: Sequence[str], fields: dict[str, Any]) -> list[str]:
    """Give the commands to time, each once; what stands behind `--` is one.

    A single word behind `--` is a script where there is a shell to read it.
    """
    behind = behind_dashes()
    require(behind != [], "no command behind --")
    if not behind:
        return list(dict.fromkeys(commands))
    is_script = len(behind) == 1 and fields["shell"] is not None
    return list(dict.fromkeys([*commands, behind[0] if is_script else shlex.join(behind)]))


def command_plan(names: Sequence[str], fields: dict[str, Any]) -> CommandPlan:
    """Make the plan, and refuse commands that cannot be started."""
    from longpole.bench.time import CommandPlan

    plan = CommandPlan(**fields)
    for name in names:
        try:
            plan.argv_of(name)
        except ValueError as error:
            message = str(error).partition("\n")[0]
            hint = "" if plan.shell else ": --shell sh starts it with one"
            raise click.UsageError(message + hint) from error
    return plan
