"""The options for the time added by the profiler."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

from longpole.cli.answer.usage import require, usage_errors
from longpole.cli.ask.numbers import nanoseconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from longpole.trace import Trace

__all__ = ["DURATION", "Recording", "as_recorded_option", "profiler_options"]


class _Duration(click.ParamType[int]):
    """A duration with its unit, in ns."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        time_ns = nanoseconds(str(value).replace(" ", ""))
        if not time_ns:
            self.fail(f"{str(value)!r} is not a time with its unit, such as 43ms", param, ctx)
        return time_ns


DURATION: Final = _Duration()

as_recorded_option: Final = click.option(
    "--as-recorded", is_flag=True, help="Keep the time that the profiler added to the host."
)


@dataclass(frozen=True, slots=True)
class Recording:
    """Whether an answer describes the program or its recording."""

    step_time_ns: int | None = None
    as_recorded: bool = False

    def __post_init__(self) -> None:
        """Raise for options that exclude each other."""
        is_both = self.step_time_ns is not None and self.as_recorded
        require(not is_both, "--step-time and --as-recorded exclude each other")

    def of(
        self, trace: Trace, *, step_name: str | None = None, data_load: str | None = None
    ) -> Trace:
        """Return the trace with the times that the answer is about."""
        if self.as_recorded:
            return trace
        with usage_errors():
            return trace.without_profiler(
                self.step_time_ns, step_name=step_name, data_load=data_load
            )


def profiler_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add `--step-time` and `--as-recorded` to a command, as its argument `recording`."""

    @click.option(
        "--step-time",
        "step_time_ns",
        type=DURATION,
        metavar="TIME",
        help="Time of a step without the profiler, such as 43ms.  [default: estimated]",
    )
    @as_recorded_option
    @functools.wraps(command)
    def with_recording(*, step_time_ns: int | None, as_recorded: bool, **others: Any) -> int:
        return command(recording=Recording(step_time_ns, as_recorded), **others)

    return with_recording
