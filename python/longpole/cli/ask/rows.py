"""The options of commands that answer with many rows."""

from __future__ import annotations

from typing import Final

import click

__all__ = ["top_option", "where_option"]

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
