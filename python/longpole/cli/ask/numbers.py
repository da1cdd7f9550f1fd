"""Numbers on the command line: their limits, times with a unit, and fractions."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Final

import click

from longpole.words import wording

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST: Final = 1_000_000_000
"""Maximum number of items to list, run or skip."""
MOST_DEVICES: Final = 1_024
MOST_THREADS: Final = 1_024
_MOST_I64: Final = 2**63 - 1
_TIME: Final = re.compile(r"(\d{1,18}(?:\.\d+)?)(ns|us|µs|ms|s)")
_UNITS_NS: Final = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9}


def nanoseconds(text: str) -> int | None:
    """Return a time with its unit in ns; None for any other text.

    Examples
    --------
    >>> nanoseconds("43ms"), nanoseconds("1.5us"), nanoseconds("43")
    (43000000, 1500, None)
    """
    from decimal import Decimal

    found = _TIME.fullmatch(text)
    return None if found is None else int(Decimal(found[1]) * _UNITS_NS[found[2]])


class _Number(click.IntRange):
    """An integer whose limits only an error mentions, since few values are beyond them."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        number = int(click.INT.convert(value, param, ctx))
        if not (self.min or 0) <= number <= (self.max or 0):
            self.fail(f"{number} is not in the range {super()._describe_range()}", param, ctx)
        return number

    def _describe_range(self) -> str:
        return ""


NUMBER: Final = _Number(-_MOST_I64, _MOST_I64)
"""A 64-bit integer, such as the number of a step."""
COUNT: Final = _Number(1, _MOST)
"""A number of items, at least 1."""
COUNT_OR_ZERO: Final = _Number(0, _MOST)


class _Real(click.FloatRange):
    """A number within limits; never nan or infinite, which ranges of click let through."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number = float(click.FLOAT.convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a number", param, ctx)
        least, most = self.min or 0.0, self.max or 0.0
        if number > most or number < least or (self.min_open and number == least):
            limit = f"above {least:g}" if self.min_open else f"at least {least:g}"
            self.fail(f"{number:g} is not {limit} and at most {most:g}", param, ctx)
        return number

    def _describe_range(self) -> str:
        return ""


_MOST_REAL: Final = 1e9
"""Maximum of a time in seconds (32 years) and of a rate."""
SECONDS: Final = _Real(0, _MOST_REAL, min_open=True)
SECONDS_OR_ZERO: Final = _Real(0, _MOST_REAL)
GIGABYTES: Final = _Real(0.5, 1_000_000)
RATE: Final = _Real(0, _MOST_REAL, min_open=True)
"""A rate, such as GB/s or TFLOP/s."""


def parse_share(text: str) -> float:
    """Parse a fraction, as `wording.parse_share` does, for the command line."""
    try:
        return wording.parse_share(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


gate_option = click.option(
    "--gate",
    type=parse_share,
    metavar="SHARE",
    default="3%",
    show_default=True,
    help="Smallest change that matters, such as 3% or 0.03.",
)


def timeout_option(
    limited: str, default: float, *, is_set: bool = True
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the time limit of a part of the command to it, as the argument `timeout_s`.

    Without `is_set`, the argument is None unless the option is given.
    """
    return click.option(
        "--timeout",
        "timeout_s",
        type=SECONDS,
        metavar="SECONDS",
        default=default if is_set else None,
        help=f"Time limit of {limited}.  [default: {default:g}]",
    )
