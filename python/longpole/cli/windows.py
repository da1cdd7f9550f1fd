"""The options of verbs that look at one window of a trace."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

from longpole.cli import exit_codes
from longpole.cli.doubts import doubts
from longpole.cli.output import DATA_FORMATS, Document
from longpole.cli.traces import NotInTraceError, describe, title, warnings_of
from longpole.critical_path import step_number
from longpole.errors import WindowError
from longpole.wording import escape

if TYPE_CHECKING:
    from collections.abc import Callable

    from longpole.critical_path import CriticalPath
    from longpole.trace import Trace

__all__ = ["Window", "abstained", "answer_of", "known_of", "window_options"]

_LAST_NS: Final = 2**63 - 1
_TIME_NS: Final = click.IntRange(-_LAST_NS, _LAST_NS)


@dataclass(frozen=True, slots=True)
class Window:
    """Which window was asked for; without any of it the whole trace."""

    step: str | None
    annotation: str | None
    instance: int | None
    between: tuple[int, int] | None
    end: str | None
    data_load: str | None

    def __post_init__(self) -> None:
        """Refuse options that have nothing to apply to."""
        if self.instance is not None and self.annotation is None:
            message = "--instance counts annotations; say which with --annotation"
            raise click.UsageError(message)
        if self.end is not None and self.step is None and self.annotation is None:
            message = (
                "--end is about a step or an annotation; say which with --step or --annotation"
            )
            raise click.UsageError(message)
        if self.between is not None and self.between[1] < self.between[0]:
            message = "--between: the end is before the start"
            raise click.UsageError(message)

    @property
    def is_whole(self) -> bool:
        """Whether no part of the trace was named."""
        return self.step is None and self.annotation is None and self.between is None

    @property
    def step_number(self) -> int | None:
        """The step asked for."""
        return None if self.step is None else step_number(self.step)

    @property
    def name(self) -> str:
        """The window in words."""
        until = f", --end {self.end}" if self.end else ""
        if self.step is not None:
            return f"step {self.step_number}{until}"
        if self.annotation is not None:
            return f"annotation {escape(self.annotation)} (instance {self.instance or 0}){until}"
        if self.between is not None:
            start_ns, end_ns = self.between
            return f"from {start_ns} to {end_ns} ns"
        return "the whole trace (work of main threads and devices)"

    def path_of(self, trace: Trace) -> CriticalPath | None:
        """Find the critical path; None where the trace as a whole has no work."""
        choice: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__}
        choice |= {"instance": self.instance or 0, "end": self.end or "period"}
        try:
            return trace.critical_path(**choice)
        except WindowError as error:
            if self.is_whole:
                return None
            raise NotInTraceError(str(error)) from error
        except ValueError as error:
            raise click.UsageError(str(error)) from error
        except OverflowError as error:
            message = f"the trace has no {self.name}"
            raise NotInTraceError(message) from error


def window_options(verb: Callable[..., int]) -> Callable[..., int]:
    """Give a verb the options that choose a window, as its argument `window`."""

    @click.option("--step", metavar="N", help="ProfilerStep to look at; default: the whole trace.")
    @click.option("--annotation", metavar="NAME", help="Annotation to look at.")
    @click.option(
        "--instance",
        type=click.IntRange(min=0),
        metavar="I",
        help="Which of those with the name, from 0.  [default: 0]",
    )
    @click.option(
        "--between",
        type=(_TIME_NS, _TIME_NS),
        metavar="START END",
        help="Two times to look between, in ns.",
    )
    @click.option(
        "--end",
        type=click.Choice(("period", "last", "cpu", "gpu")),
        help="What ends a step: `period` also begins where the step before ended."
        "  [default: period]",
    )
    @click.option(
        "--data-load",
        metavar="PATTERN",
        help="What frames and annotations that load data are called, instead of what loaders of"
        " torch are.",
    )
    @functools.wraps(verb)
    def with_window(**arguments: Any) -> int:
        choice = {name: arguments.pop(name) for name in Window.__slots__}
        return verb(window=Window(**choice), **arguments)

    return with_window


def answer_of(
    schema: str, window: Window, document: Callable[[str, Trace, CriticalPath], Document]
) -> Callable[[str, Trace], Document]:
    """Answer from the critical path of the window, where there is one to measure."""

    def answer(name: str, trace: Trace) -> Document:
        found = window.path_of(trace)
        if found is None:
            return abstained(schema, name, trace)
        if not found.length_ns:
            return abstained(schema, name, trace, window)
        return document(name, trace, found)

    return answer


def known_of(path: str, trace: Trace, window: Window, found: CriticalPath) -> dict[str, Any]:
    """Give what every document about a window says."""
    inconclusive = found.status == "inconclusive"
    start_ns, end_ns = found.window
    warnings = [*warnings_of(trace), *doubts(trace, found, window.name, window.data_load)]
    return {
        "input": describe(path, trace),
        "warnings": warnings,
        "forms_with_warnings": DATA_FORMATS,
        "status": "partial" if warnings else "ok",
        "scope": {
            "rank": trace.rank,
            "step": window.step_number,
            "window_ns": [start_ns, end_ns],
            "reason": "no part of it was asked for" if window.is_whole else "as asked",
            "window": window.name,
        },
        "exit_code": exit_codes.INCONCLUSIVE if inconclusive else exit_codes.OK,
    }


def abstained(schema: str, path: str, trace: Trace, window: Window | None = None) -> Document:
    """Answer that there is nothing to ask about: no work, or none in a window of no length."""
    why = "the trace has no work on a main thread or a device"
    if window is not None:
        why = f"{window.name}: it is 0 ns long, so that nothing can be measured"
    return Document(
        schema=schema,
        input=describe(path, trace),
        warnings=warnings_of(trace),
        forms_with_warnings=DATA_FORMATS,
        status="abstained",
        exit_code=exit_codes.INCONCLUSIVE,
        text=lambda _: f"{title(path)}: {why}\n",
    )
