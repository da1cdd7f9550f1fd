"""Fractions as arguments, `3%` or `0.03`, and the gate of a comparison."""

from __future__ import annotations

import click

__all__ = ["gate_option", "parse_share"]


def parse_share(text: str) -> float:
    """Parse a fraction: `3%` equals `0.03`; `3` is rejected as ambiguous.

    Examples
    --------
    >>> parse_share("3%"), parse_share("0.03")
    (0.03, 0.03)
    """
    try:
        value = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1:
        message = f"{text!r} is not a share; write 3% or 0.03"
        raise click.BadParameter(message)
    return value


gate_option = click.option(
    "--gate",
    type=parse_share,
    metavar="SHARE",
    default="3%",
    show_default=True,
    help="The smallest change that matters, such as 3% or 0.03.",
)
