"""Options of commands that analyse one window of a trace."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from longpole.cli.answer.problems import usage_errors
from longpole.cli.answer.windows import Found
from longpole.cli.ask.numbers import nanoseconds
from longpole.cli.ask.options import gather
from longpole.engine.question import Question, step_number
from longpole.errors import WindowError

if TYPE_CHECKING:
    from collections.abc import Callable

    from longpole.answer.answer import Answer
    from longpole.engine.critical_path.path import CriticalPath
    from longpole.engine.question import End
    from longpole.engine.windows import Window
    from longpole.trace.trace import Trace

_LAST_NS: Final = 2**63 - 1
_ABSOLUTE: Final = click.IntRange(-_LAST_NS, _LAST_NS)
_INTEGER: Final = re.compile(r"-?\d+")
_MOST_DIGITS: Final = 9
NO_WORK: Final = "the trace has no annotation, and no work on a main thread or a device"


class _Step(click.ParamType[int]):
    """Number of a step."""

    name = "step"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return step_number(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


_TIME: Final = re.compile(r"[+-]?[\d.]+ *(?:[nuµm]?s)?")


class Chosen(NamedTuple):
    """What `--window` names."""

    step: int | None = None
    annotation: str | None = None
    instance: int = 0
    between: tuple[int, int] | None = None
    """Two times in ns from the first event of the file; on its clock if beyond its length."""
    whole: bool = False


class _Window(click.ParamType[Chosen]):
    """A window as text: `step:3`, `all`, `NAME#1`, or `12.3ms..12.8ms`."""

    name = "window"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Chosen:
        text = str(value).strip()
        start, dots, end = text.partition("..")
        if text == "all":
            return Chosen(whole=True)
        if text.startswith(("step:", "ProfilerStep#")) and text.count("#") < 2:  # noqa: PLR2004
            return Chosen(step=_Step().convert(text.removeprefix("step:"), param, ctx))
        if dots and _TIME.fullmatch(start.strip()):
            start_ns, end_ns = (self._time(it.strip(), param, ctx) for it in (start, end))
            if end_ns < start_ns:
                self.fail(f"{text!r} ends before it starts", param, ctx)
            return Chosen(between=(start_ns, end_ns))
        name, _, instance = text.rpartition("#")
        if name and instance.isdecimal() and len(instance) <= _MOST_DIGITS:
            return Chosen(annotation=name, instance=int(instance))
        if not text:
            self.fail("a window is step:N, all, NAME, NAME#1 or START..END", param, ctx)
        return Chosen(annotation=text)

    def _time(self, text: str, param: click.Parameter | None, ctx: click.Context | None) -> int:
        since_ns = nanoseconds(text.removeprefix("+").replace(" ", ""))
        if since_ns is not None:
            return since_ns
        if _INTEGER.fullmatch(text):
            return int(_ABSOLUTE(text, param, ctx))
        told = f"{text!r} is not a time; use for example 10ms, or a whole number of ns"
        raise click.BadParameter(told, ctx, param)


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


step_name_option: Final = click.option(
    "--step-name",
    metavar="PATTERN",
    help="Regex for annotations that mark steps.  [default: ProfilerStep, else known names]",
)


@dataclass(frozen=True, slots=True)
class Asked:
    """The requested window."""

    step: int | None = None
    chosen: Chosen | None = None
    step_name: str | None = None
    end: End | None = None
    data_load: str | None = None
    step_time_ns: int | None = None

    def __post_init__(self) -> None:
        """Raise for options without effect; a step given as a window is that step."""
        chosen = self.chosen
        if chosen is None:
            return
        if self.step is not None:
            message = "--step and --window exclude each other"
            raise click.UsageError(message)
        if self.end is not None and (chosen.whole or chosen.between):
            message = "--end applies to a step or an annotation, not to times or the whole trace"
            raise click.UsageError(message)
        if chosen.step is not None:
            object.__setattr__(self, "step", chosen.step)
            object.__setattr__(self, "chosen", None)

    @property
    def whole(self) -> bool:
        """Whether the whole trace is requested."""
        return self.chosen is not None and self.chosen.whole

    @property
    def between(self) -> tuple[int, int] | None:
        """The requested times."""
        return None if self.chosen is None else self.chosen.between

    @property
    def question(self) -> Question:
        """The question of these options."""
        chosen = (self.chosen or Chosen())._asdict()
        chosen["step"] = self.step
        return Question(
            **chosen,
            step_name=self.step_name,
            data_load=self.data_load,
            step_time_ns=self.step_time_ns,
        )

    def about(self, trace: Trace) -> Question:
        """Return the question, with two times on the clock of the file.

        Times count from the first event of the file. Times beyond its length are those of its
        clock, as in the table `events`.
        """
        asked = self.question
        between = self.between
        return asked if between is None else replace(asked, between=trace.times_on_clock(between))

    def of(self, trace: Trace) -> Answer:
        """Return the answer about the requested window, of the program without the profiler."""
        return trace.answer(self.about(trace))

    def as_recorded(self, trace: Trace) -> Answer:
        """Return the answer about the requested window as recorded."""
        return trace.answer_as_timed(self.about(trace))

    def find(self, trace: Trace, *, of_program: bool = False) -> Found | str:
        """Return the requested window with its critical path, or the reason why there is none.

        The path is as recorded, or with `of_program` that of the program without the profiler.
        """
        if trace.window is None:
            return NO_WORK
        with usage_errors():
            recorded = self.as_recorded(trace)
            window, about = recorded.window, self.of(trace) if of_program else recorded
            path = None if window is None else self._path(about, window)
        if window is None or path is None:
            return NO_WORK
        if not path.length_ns:
            return f"{window.name} is 0 ns long, so nothing can be measured"
        until = f", --end {self.end}" if self.end else ""
        is_part = window.is_part or self.end is not None
        times = recorded.question.core_window(self.end or "period")
        span = trace.core.window_times(times, step_name=self.step_name)
        return Found(self.of(trace), window, window.name + until, path, span, is_part)

    def _path(self, answer: Answer, window: Window) -> CriticalPath | None:
        """Return the path of a window; None for a whole trace that has no work."""
        try:
            return answer.path_until(self.end) if self.end else answer.path
        except WindowError:
            if window.kind == "trace":
                return None
            raise

    @property
    def is_any(self) -> bool:
        """Whether a window was requested."""
        return (self.step, self.chosen, self.step_name) != (None, None, None)

    def choose(self, trace: Trace) -> Window | str:
        """Return the window without its critical path, or the reason why there is none."""
        of_path = {"--end": self.end, "--data-load": self.data_load}
        given = [name for name, value in of_path.items() if value is not None]
        if given:
            message = (
                f"{given[0]} does not apply to this table, which does not use the critical path"
            )
            raise click.UsageError(message)
        with usage_errors():
            return self.as_recorded(trace).window or NO_WORK

    def window(self, trace: Trace) -> Window | None:
        """Return the window without its critical path; None if nothing has a duration."""
        found = self.as_recorded(trace).window
        return found if found is not None and found.duration_ns else None


class _Duration(click.ParamType[int]):
    """A duration with its unit, in ns."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        time_ns = nanoseconds(str(value).replace(" ", ""))
        if not time_ns:
            self.fail(f"{str(value)!r} is not a time with its unit, such as 43ms", param, ctx)
        return time_ns


def step_time_option(
    default: str = "estimated", name: str = "step_time_ns", *, multiple: bool = False
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Add the option of the time of a step to a command; `multiple` is one for each side."""
    told = "Time of a step without the profiler, such as 43ms."
    shown = f"{told}{' Repeatable.' if multiple else ''}  [default: {default}]"
    return click.option(
        "--step-time", name, type=_Duration(), multiple=multiple, metavar="TIME", help=shown
    )


_OPTIONS: Final[dict[str, Callable[[Any], Any]]] = {
    "step": step_option(),
    "step_name": step_name_option,
    "chosen": click.option(
        "--window",
        "chosen",
        type=_Window(),
        metavar="WINDOW",
        help="Part to analyse: step:3, all, forward#1 (the second annotation of that name), or"
        " times from the first event of the file, such as 12.3ms..12.8ms.",
    ),
    "end": click.option(
        "--end",
        type=click.Choice(("period", "last", "cpu", "gpu")),
        help="When a step ends: with its annotation (cpu), its last GPU activity (gpu) or both"
        " (last); with `period`, it also begins when the previous step ended."
        "  [default: period]",
    ),
    "data_load": data_load_option,
    "step_time_ns": step_time_option(),
}
OF_TIME: Final = ("step", "chosen", "step_name")
"""Options that select a time span, as for `window_options`; the others are of its critical path."""
OF_PATH: Final = (*OF_TIME, "end", "data_load")
"""Options that select a window and its critical path, as for `window_options`."""
OF_PROGRAM: Final = "step_time_ns"
"""The option of what is predicted for the program without the profiler."""


def window_options(*names: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Add options that select a window to a command, as its argument `window`."""
    return gather("window", {name: _OPTIONS[name] for name in names}, Asked)
