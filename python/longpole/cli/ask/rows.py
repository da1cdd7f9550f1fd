"""Options of tables, each with the name of a function parameter."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["CHOICES", "choice_options", "sort_option", "where_option"]


def _peaks(
    context: click.Context, option: click.Parameter, given: Sequence[str]
) -> dict[str, float]:
    """Parse `TYPE=TFLOPS`."""
    peaks: dict[str, float] = {}
    for text in given:
        dtype, _, number = text.partition("=")
        try:
            peaks[dtype.strip().lower()] = float(number)
        except ValueError as error:
            message = f"{text!r} is not TYPE=TFLOPS, such as bf16=800"
            raise click.BadParameter(message, context, option) from error
    return peaks


where_option: Final = click.option(
    "--where",
    metavar="CONDITION",
    help="Only what matches a condition, such as \"name LIKE '%gemm%' AND stream = 7\", with AND,"
    " OR, NOT, IN, BETWEEN, LIKE, ILIKE, REGEXP and IS NULL. In a table of totals, it chooses the"
    " events that are added up, not the rows.",
)

sort_option: Final = click.option(
    "--sort",
    metavar="COLUMN",
    help="Sort by a column, as printed or as in JSON: numbers descending, other values ascending.",
)

CHOICES: Final = {
    "shapes": "--shapes",
    "by": "--by",
    "annotations": "--annotations",
    "tflops": "--peak",
    "bandwidth": "--bandwidth",
}
"""Options that only some tables have, by function parameter."""

_OPTIONS: Final = (
    click.option(
        "--shapes",
        is_flag=True,
        default=None,
        help="operators: one row for each combination of input shapes.",
    ),
    click.option(
        "--by",
        type=click.Choice(("layer", "path")),
        help="modules: combine modules whose paths differ only in numbers (layer), or not "
        "(path).  [default: layer]",
    ),
    click.option(
        "--annotations",
        metavar="PATTERN",
        help="modules: regex for annotations that name modules.",
    ),
    click.option(
        "--peak",
        "tflops",
        multiple=True,
        callback=_peaks,
        metavar="TYPE=TFLOPS",
        help="mfu, roofline: peak of a data type to use instead of the published one. Repeatable.",
    ),
    click.option(
        "--bandwidth",
        type=click.FloatRange(min=0, min_open=True),
        metavar="GB/S",
        help="roofline: memory bandwidth to use instead of the published one.",
    ),
)


def choice_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options that only some tables have to a command; given ones are in `choices`."""

    @functools.wraps(command)
    def with_choices(**arguments: Any) -> int:
        asked = {name: arguments.pop(name) for name in CHOICES}
        choices = {name: value for name, value in asked.items() if value not in (None, {})}
        return command(choices=choices, **arguments)

    for option in reversed(_OPTIONS):
        with_choices = option(with_choices)
    return with_choices
