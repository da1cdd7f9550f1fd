"""What is asked about a trace: the only key of an answer."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from operator import index
from typing import TYPE_CHECKING, Any, Literal, TypedDict, get_args

from longpole.errors import WindowError
from longpole.words.wording import escape

if TYPE_CHECKING:
    from collections.abc import Sequence

_LARGEST = 2**63

End = Literal["period", "last", "cpu", "gpu"]
"""The time at which a step or an annotation ends."""


class WindowParts(TypedDict, total=False):
    """The parameters of a `Question` that choose its window, besides the step."""

    annotation: str | None
    instance: int
    between: tuple[int, int] | None
    whole: bool
    step_name: str | None


class QuestionParts(WindowParts, total=False):
    """The parameters of a `Question` about one trace, besides the step."""

    data_load: str | None


class _Parts(QuestionParts, total=False):
    step: int | str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked about a trace. Equal questions have one answer: see `Trace.answer`.

    Without `step`, `annotation`, `between` or `whole`, the window is the step that
    `longpole.choose_window` selects, or the whole trace if it marks no steps.

    Parameters
    ----------
    step
        Number of a step, as `3`, `"3"` or `"ProfilerStep#3"`.
    annotation, instance
        Name of an annotation, and its index among those with the name, in time order. The window
        ends when the annotation and the GPU activities launched in it have ended.
    between
        Two times in ns.
    whole
        Use the whole trace, from the first to the last event of a main thread or device.
    step_name
        A regular expression for the annotations that mark iterations.
    data_load
        A regular expression for names of Python functions and annotations that load
        data; by default those that contain `dataloader`.
    step_time_ns
        The time of a step without the profiler, if known.
    as_recorded
        Keep the time that the profiler added to the host.

    Raises
    ------
    ValueError
        `step` is not the number of a step, `between` ends before it starts, or arguments exclude
        each other.
    TypeError
        A number or a time is not an integer.

    Examples
    --------
    >>> Question(step="ProfilerStep#3").number
    3
    """

    step: int | str | None = None
    annotation: str | None = None
    instance: int = 0
    between: tuple[int, int] | None = None
    whole: bool = False
    step_name: str | None = None
    data_load: str | None = None
    step_time_ns: int | None = None
    as_recorded: bool = False

    def __post_init__(self) -> None:
        """Raise for arguments that are invalid or exclude each other."""
        choices = (self.step, self.annotation, self.between, self.whole or None)
        if sum(choice is not None for choice in choices) > 1:
            message = "step, annotation, between and whole exclude each other"
            raise ValueError(message)
        known: dict[str, object] = {"instance": _whole(self.instance)}
        known |= {} if self.step is None else {"step": step_number(self.step)}
        known |= {} if self.between is None else {"between": two_times(self.between)}
        for name, value in known.items():
            object.__setattr__(self, name, value)
        if self.instance and self.annotation is None:
            message = "instance needs annotation"
            raise ValueError(message)
        if self.instance < 0:
            message = f"instance must be at least 0, not {self.instance}"
            raise ValueError(message)
        if self.as_recorded and self.step_time_ns is not None:
            message = "step_time_ns and as_recorded exclude each other"
            raise ValueError(message)

    @property
    def number(self) -> int | None:
        """The number of the requested step; None without one."""
        return None if self.step is None else step_number(self.step)

    @property
    def is_default(self) -> bool:
        """Whether no part of the trace is requested, so that the window is chosen."""
        chosen = (self.step, self.annotation, self.between)
        return chosen == (None, None, None) and not self.whole

    @property
    def parts(self) -> _Parts:
        """The window and what loads data, as the arguments of functions."""
        return {
            "step": self.step,
            "annotation": self.annotation,
            "instance": self.instance,
            "between": self.between,
            "whole": self.whole,
            "step_name": self.step_name,
            "data_load": self.data_load,
        }

    def about(self, step: int | None = None, *, between: tuple[int, int] | None = None) -> Question:
        """Return the same question about another window."""
        return replace(self, step=step, annotation=None, instance=0, between=between, whole=False)

    @property
    def named(self) -> str:
        """The requested annotation as a phrase; empty without one."""
        if self.annotation is None:
            return ""
        return f"annotation {escape(self.annotation)} (instance {self.instance})"

    def core_window(self, end: str = "period") -> tuple[Any, ...]:
        """Return the window in the core's format, with the time at which a step ends.

        Raises
        ------
        WindowError
            The number of the step or annotation is too large for any trace.
        """
        if end not in get_args(End):
            message = f"end is one of {', '.join(get_args(End))}, not {end!r}"
            raise ValueError(message)
        number = self.number
        if abs(number or 0) >= _LARGEST or self.instance >= _LARGEST:
            message = f"the trace has no {self.named or f'step {number}'}"
            raise WindowError(message)
        if number is not None:
            return ("step", number, end)
        if self.annotation is not None:
            last = "last" if end == "period" else end
            return ("annotation", self.annotation, self.instance, last)
        if self.between is not None:
            return ("between", *self.between)
        return ("whole",) if self.whole else ("usual",)


def two_times(between: Sequence[int]) -> tuple[int, int]:
    """Return the two times as integers; raise unless they are in order."""
    try:
        start_ns, end_ns = map(index, between)
    except (TypeError, ValueError):
        message = f"between is two times in whole ns, not {between!r}"
        raise TypeError(message) from None
    if end_ns < start_ns:
        message = f"between ends before it starts: {between!r}"
        raise ValueError(message)
    return start_ns, end_ns


def step_number(step: int | str) -> int:
    """Parse the number of a step, given as `6`, `"6"` or `"ProfilerStep#6"`.

    Examples
    --------
    >>> step_number("ProfilerStep#6")
    6
    """
    number = re.fullmatch(r"(?:ProfilerStep\s*#\s*)?(-?\d+)", str(step).strip())
    if number is None:
        message = f"a step is a number or ProfilerStep#N, not {step!r}"
        raise ValueError(message)
    return int(number[1])


def _whole(instance: int) -> int:
    try:
        return index(instance)
    except TypeError:
        message = f"instance must be an integer, not {instance!r}"
        raise TypeError(message) from None
