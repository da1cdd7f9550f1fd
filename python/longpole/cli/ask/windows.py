"""Options of commands that analyse one window of a trace."""

from __future__ import annotations

import functools
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from longpole.cli.answer.usage import require, usage_errors
from longpole.cli.answer.windows import Found, abstained
from longpole.cli.ask.numbers import MOST, nanoseconds
from longpole.errors import WindowError
from longpole.windows import choose_window, step_number
from longpole.wording import escape

if TYPE_CHECKING:
    from collections.abc import Callable

    from longpole.cli.answer.emit import Answer
    from longpole.cli.ask.profiler import Recording
    from longpole.critical_path import CriticalPath
    from longpole.report.document import AbstentionCode
    from longpole.trace import Trace
    from longpole.verdict import Verdict
    from longpole.windows import Window

__all__ = [
    "Asked",
    "about_stretch",
    "about_window",
    "choice_options",
    "data_load_option",
    "step_name_option",
    "step_option",
    "stretch_options",
    "window_options",
]

_LAST_NS: Final = 2**63 - 1
_ABSOLUTE: Final = click.IntRange(-_LAST_NS, _LAST_NS)
_OF_TIME: Final = ("step", "whole", "annotation", "instance", "between", "step_name")
_NO_WORK: Final = "the trace has no work on a main thread or a device"


Part = TypeVar("Part", Found, "Window")


class _Step(click.ParamType[int]):
    """Number of a step."""

    name = "step"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return step_number(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class _SinceStart(int):
    """A time in ns from the start of the trace."""


class _Time(click.ParamType[int]):
    """A time of the trace: ns on its clock, or `+` and a time with a unit from its start."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value)
        if not text.startswith("+"):
            return int(_ABSOLUTE.convert(value, param, ctx))
        since_ns = nanoseconds(text.removeprefix("+"))
        if since_ns is None:
            self.fail(f"{text!r} is not an offset; use for example +10ms", param, ctx)
        return _SinceStart(since_ns)


data_load_option: Final = click.option(
    "--data-load",
    metavar="PATTERN",
    help="Regex for data-loading functions.  [default: torch's]",
)


def step_option(
    default: str = "the step of median length", name: str = "step", *, multiple: bool = False
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Add the option of one or more steps to analyse to a command, as the argument `name`."""
    told = "Step to analyse, such as 3 or ProfilerStep#3."
    shown = f"{told}{' Repeatable.' if multiple else ''}  [default: {default}]"
    return click.option("--step", name, type=_Step(), multiple=multiple, metavar="N", help=shown)


_STEP: Final = step_option()
_WHOLE: Final = click.option("--whole", is_flag=True, help="Analyse the whole trace.")


step_name_option: Final = click.option(
    "--step-name",
    metavar="PATTERN",
    help="Regex for annotations that mark steps.  [default: ProfilerStep, else known names]",
)


_ANNOTATION: Final = click.option("--annotation", metavar="NAME", help="Annotation to analyse.")
_INSTANCE: Final = click.option(
    "--instance",
    type=click.IntRange(0, MOST),
    metavar="I",
    help="Which occurrence of the annotation, counted from 0.  [default: 0]",
)
_BETWEEN: Final = click.option(
    "--between",
    type=(_Time(), _Time()),
    metavar="START END",
    help="Time span to analyse, in ns on the clock of the trace, as `start_ns` of a table, or"
    " from the start of the trace, such as +10ms +20ms.",
)


def choice_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add `--step`, `--step-name` and `--whole` to a command, as its argument `choice`."""

    @_STEP
    @step_name_option
    @_WHOLE
    @functools.wraps(command)
    def with_choice(
        *, step: int | None, step_name: str | None, whole: bool, **arguments: Any
    ) -> int:
        from longpole.cli.answer.report import Choice

        require(step is None or not whole, "--step and --whole exclude each other")
        return command(choice=Choice(step, whole, step_name), **arguments)

    return with_choice


@dataclass(frozen=True, slots=True)
class Asked:
    """The requested window."""

    step: int | None
    whole: bool
    annotation: str | None
    instance: int | None
    between: tuple[int, int] | None
    step_name: str | None
    end: str | None = None
    data_load: str | None = None

    def __post_init__(self) -> None:
        """Raise for options without effect."""
        names = ("--step", "--whole", "--annotation", "--between")
        values = (self.step is not None, self.whole, self.annotation, self.between)
        given = [name for name, value in zip(names, values, strict=True) if value]
        if len(given) > 1:
            message = f"{' and '.join(given)} exclude each other"
        elif self.instance is not None and self.annotation is None:
            message = "--instance counts annotations; name one with --annotation"
        elif self.end is not None and (self.whole or self.between):
            message = "--end is about a step or an annotation, not about --whole or --between"
        elif self.between is not None and len(set(map(type, self.between))) > 1:
            message = "--between: give both times on the clock of the trace, or both from its start"
        elif self.between is not None and self.between[1] < self.between[0]:
            message = "--between: the end is before the start"
        else:
            return
        raise click.UsageError(message)

    def on_clock(self, trace: Trace) -> Asked:
        """Return the requested window with times on the clock of the trace."""
        if self.between is None or not isinstance(self.between[0], _SinceStart):
            return self
        whole = choose_window(trace, whole=True)
        start_ns = whole.start_ns if whole else 0
        start, end = (min(start_ns + int(time_ns), _LAST_NS) for time_ns in self.between)
        return replace(self, between=(start, end))

    def find(self, trace: Trace) -> Found | str:
        """Return the critical path of the window, or the reason why there is none."""
        if trace.window is None:
            return _NO_WORK
        chosen, name, reason, clause = None, self._name, "as asked", ""
        if name is None:
            with usage_errors():
                chosen = choose_window(trace, self.step, whole=self.whole, step_name=self.step_name)
            if chosen is None:
                return _NO_WORK
            name, reason, clause = chosen.name, chosen.reason, chosen.clause
        path = self._path(trace, chosen)
        if path is None:
            return _NO_WORK
        if not path.length_ns:
            return f"{name} is 0 ns long, so nothing can be measured"
        until = f", --end {self.end}" if self.end else ""
        step = None if chosen is None else chosen.step
        asked = (self.data_load, self.step_name, self._verdict(trace))
        return Found(name + until, step, reason, clause, path, *asked)

    @property
    def is_any(self) -> bool:
        """Whether a window was requested."""
        named = (self.step, self.annotation, self.between, self.step_name, self.whole or None)
        return any(choice is not None for choice in named)

    def choose(self, trace: Trace) -> Window | str:
        """Return the window without its critical path, or the reason why there is none."""
        of_path = {"--end": self.end, "--data-load": self.data_load}
        given = [name for name, value in of_path.items() if value is not None]
        if given:
            message = f"{given[0]} is about the critical path, which this table is not"
            raise click.UsageError(message)
        with usage_errors():
            return choose_window(trace, **self.choice) or _NO_WORK

    @property
    def choice(self) -> dict[str, Any]:
        """Return the arguments for `choose_window` and `longpole.summary`."""
        return {
            "step": self.step,
            "annotation": self.annotation,
            "instance": self.instance or 0,
            "between": self.between,
            "whole": self.whole,
            "step_name": self.step_name,
        }

    @property
    def _name(self) -> str | None:
        if self.annotation is not None:
            return f"annotation {escape(self.annotation)} (instance {self.instance or 0})"
        if self.between is not None:
            start_ns, end_ns = self.between
            return f"from {start_ns} to {end_ns} ns"
        return None

    def _verdict(self, trace: Trace) -> Callable[[], Verdict]:
        return functools.partial(
            trace.verdict,
            **self.choice,
            data_load=self.data_load,
        )

    @usage_errors()
    def _path(self, trace: Trace, chosen: Window | None) -> CriticalPath | None:
        is_whole = chosen is not None and chosen.kind == "trace"
        try:
            step = None if chosen is None else chosen.step
            choice = {**self.choice, "step": step, "whole": is_whole}
            end: Any = self.end or "period"
            return trace.critical_path(**choice, end=end, data_load=self.data_load)
        except WindowError:
            if is_whole:
                return None
            raise
        except OverflowError as error:
            message = f"the trace has no {self._name or chosen}"
            raise WindowError(message) from error


def about_window(
    schema: str,
    window: Asked,
    answer: Callable[[str, Trace, Found], Answer],
    recording: Recording | None = None,
) -> Callable[[str, Trace], Answer]:
    """Answer from the critical path of the window, if it can be measured.

    With `recording`, at the times that it selects.
    """
    about = _about(schema, lambda trace: window.on_clock(trace).find(trace), answer)
    if recording is None:
        return about
    patterns = {"step_name": window.step_name, "data_load": window.data_load}
    return lambda path, trace: about(path, recording.of(trace, **patterns))


def about_stretch(
    schema: str, window: Asked, answer: Callable[[str, Trace, Window], Answer]
) -> Callable[[str, Trace], Answer]:
    """Answer about the time of the window, if it exists."""
    return _about(schema, lambda trace: window.on_clock(trace).choose(trace), answer)


def _about(
    schema: str,
    find: Callable[[Trace], Part | str],
    answer: Callable[[str, Trace, Part], Answer],
) -> Callable[[str, Trace], Answer]:
    def found_or_not(path: str, trace: Trace) -> Answer:
        found = find(trace)
        if isinstance(found, str):
            code: AbstentionCode = "no_work" if found == _NO_WORK else "empty_window"
            return abstained(schema, path, trace, found, code)
        return answer(path, trace, found)

    return found_or_not


def stretch_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options for a time span to a command, as its argument `window`."""

    @_of_time
    @functools.wraps(command)
    def with_window(**arguments: Any) -> int:
        choice = {name: arguments.pop(name) for name in _OF_TIME}
        return command(window=Asked(**choice), **arguments)

    return with_window


def window_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add those and the options of the critical path to a command, as its argument `window`."""

    @_of_time
    @click.option(
        "--end",
        type=click.Choice(("period", "last", "cpu", "gpu")),
        help="When a step ends; with `period`, it also begins when the previous step ended."
        "  [default: period]",
    )
    @data_load_option
    @functools.wraps(command)
    def with_window(**arguments: Any) -> int:
        choice = {field.name: arguments.pop(field.name) for field in fields(Asked)}
        return command(window=Asked(**choice), **arguments)

    return with_window


def _of_time(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options for a time span to a command, each as an argument."""
    for option in (_BETWEEN, _INSTANCE, _ANNOTATION, _WHOLE, step_name_option, _STEP):
        command = option(command)
    return command
