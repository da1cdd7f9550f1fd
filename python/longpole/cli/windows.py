"""The options of verbs that look at one window of a trace."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from longpole.cli import exit_codes
from longpole.cli.output import Document
from longpole.cli.traces import describe, title, warnings_of
from longpole.errors import WindowError

if TYPE_CHECKING:
    from collections.abc import Callable

    from longpole.critical_path import CriticalPath
    from longpole.trace import Trace

__all__ = ["Window", "abstained", "known_of", "window_options"]


@dataclass(frozen=True, slots=True)
class Window:
    """Which window was asked for; without any of it the whole trace."""

    step: str | None
    annotation: str | None
    instance: int
    between: tuple[int, int] | None
    end: str
    data_load: str | None

    @property
    def is_whole(self) -> bool:
        """Whether no part of the trace was named."""
        return self.step is None and self.annotation is None and self.between is None

    def path_of(self, trace: Trace) -> CriticalPath | None:
        """Find the critical path; None where the trace as a whole has no work."""
        choice: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__}
        try:
            return trace.critical_path(**choice)
        except WindowError as error:
            if self.is_whole:
                return None
            raise click.UsageError(str(error)) from error
        except ValueError as error:
            raise click.UsageError(str(error)) from error


def window_options(verb: Callable[..., int]) -> Callable[..., int]:
    """Give a verb the options that choose a window, as its argument `window`."""

    @click.option("--step", metavar="N", help="ProfilerStep to look at; default: the whole trace.")
    @click.option("--annotation", metavar="NAME", help="Annotation to look at.")
    @click.option(
        "--instance", type=int, default=0, metavar="I", help="Which of those with the name."
    )
    @click.option(
        "--between", type=(int, int), metavar="START END", help="Two times to look between, in ns."
    )
    @click.option(
        "--end",
        type=click.Choice(("period", "last", "cpu", "gpu")),
        default="period",
        show_default=True,
        help="What ends a step: `period` also begins where the step before ended.",
    )
    @click.option(
        "--data-load", metavar="PATTERN", help="Names of Python functions that load data."
    )
    @functools.wraps(verb)
    def with_window(**arguments: Any) -> int:
        choice = {name: arguments.pop(name) for name in Window.__slots__}
        return verb(window=Window(**choice), **arguments)

    return with_window


def known_of(path: str, trace: Trace, found: CriticalPath) -> dict[str, Any]:
    """Give what every document about a window says."""
    inconclusive = found.status == "inconclusive"
    start_ns, end_ns = found.window
    return {
        "input": describe(path, trace),
        "warnings": warnings_of(trace),
        "status": "partial" if inconclusive or trace.status == "recovered" else "ok",
        "scope": {"rank": trace.rank, "window_ns": [start_ns, end_ns]},
        "exit_code": exit_codes.INCONCLUSIVE if inconclusive else exit_codes.OK,
    }


def abstained(schema: str, path: str, trace: Trace) -> Document:
    """Answer that there is nothing to ask about."""
    return Document(
        schema=schema,
        input=describe(path, trace),
        warnings=warnings_of(trace),
        status="abstained",
        exit_code=exit_codes.INCONCLUSIVE,
        text=lambda _: f"{title(path)}: the trace has no work on a main thread or a device\n",
    )
