"""Phrases for ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["has_or_have", "listed"]


def listed(ranks: Sequence[int]) -> str:
    """Return ranks as a phrase.

    Examples
    --------
    >>> listed([3]), listed([1, 0]), listed([0, 1, 2, 6])
    ('rank 3', 'ranks 0 and 1', 'ranks 0-2, 6')
    """
    runs: list[list[int]] = []
    for rank in sorted(set(ranks)):
        if runs and rank == runs[-1][-1] + 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    words = [
        str(run[0]) if len(run) == 1 else f"{run[0]}{' and ' if len(run) == 2 else '-'}{run[-1]}"  # noqa: PLR2004
        for run in runs
    ]
    return f"{'rank' if len(set(ranks)) == 1 else 'ranks'} {', '.join(words)}"


def has_or_have(ranks: Sequence[int]) -> str:
    """Return `has` or `have`, to agree with the number of ranks."""
    return "has" if len(ranks) == 1 else "have"
