"""Shares on the command line (`3%` or `0.03`), and changes as they are printed."""

from __future__ import annotations

import click

__all__ = ["change_text", "share", "share_text"]


def share(text: str) -> float:
    """Read a share of one: `3%` and `0.03` are the same, and `3`, which may be either, is none.

    Examples
    --------
    >>> share("3%"), share("0.03")
    (0.03, 0.03)
    """
    try:
        value = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1:
        message = f"{text!r} is no share; write 3% or 0.03"
        raise click.BadParameter(message)
    return value


def share_text(share: float) -> str:
    """Write a share.

    Examples
    --------
    >>> share_text(0.03), share_text(0.005)
    ('3 %', '0.5 %')
    """
    return f"{100 * share:.3g} %"


def change_text(change: float) -> str:
    """Write a relative change with its sign.

    Examples
    --------
    >>> change_text(0.0512), change_text(-0.3)
    ('+5.1 %', '-30.0 %')
    """
    return f"{100 * change:+.1f} %"
