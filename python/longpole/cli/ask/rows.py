"""The options of commands about operators and kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["peak_option", "sort_option", "top_option", "where_changes_option", "where_option"]


def _peaks(
    context: click.Context, option: click.Parameter, given: Sequence[str]
) -> dict[str, float]:
    """Read `TYPE=TFLOPS`."""
    peaks: dict[str, float] = {}
    for text in given:
        dtype, _, number = text.partition("=")
        try:
            peaks[dtype.strip().lower()] = float(number)
        except ValueError as error:
            message = f"{text!r} is not TYPE=TFLOPS, such as bf16=800"
            raise click.BadParameter(message, context, option) from error
    return peaks


peak_option: Final = click.option(
    "--peak",
    "tflops",
    multiple=True,
    callback=_peaks,
    metavar="TYPE=TFLOPS",
    help="Peak of a type, instead of the published one, as bf16=800. Repeatable.",
)
sort_option: Final = click.option(
    "--sort",
    metavar="COLUMN",
    help="Sort by a column, as JSON names it: numbers from the largest, all else ascending.",
)
top_option: Final = click.option(
    "--top",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    metavar="N",
    help="How many rows to show; machine formats have all.",
)
where_option: Final = click.option(
    "--where",
    metavar="CONDITION",
    help="SQL condition for the GPU activities that count, as \"name LIKE '%gemm%'\".",
)
where_changes_option: Final = click.option(
    "--where",
    metavar="CONDITION",
    help="SQL condition for the changes of memory that count, as \"device = 'cuda:0'\".",
)
