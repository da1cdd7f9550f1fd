"""How often one may look at a comparison that goes on, and how sure each look has to be.

Whoever looks after every run and stops as soon as something seems different finds a difference
in one of five comparisons where there is none. Three looks, after 7, 14 and 28 runs, at levels
that sum to the one wanted, keep to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["LOOKS", "level_at"]

LOOKS: Final = (7, 14, 28)
"""Runs of each side after which a comparison is looked at."""

# For 5 % in all. 2 / 2**7 is what seven runs can reach; the rest is shared by the others.
_LEVELS: Final = (0.0157, 0.0171, 0.0171)
_WHOLE: Final = 0.05


def level_at(n_runs: int, plans: Collection[tuple[int, ...]], level: float) -> float:
    """Give the level of a look at so many runs.

    Parameters
    ----------
    n_runs
        Of each side.
    plans
        The looks that the runs were planned with; `(10,)` or none is one look.
    level
        Of all looks together.

    Examples
    --------
    >>> [level_at(n, [LOOKS], 0.05) for n in (7, 14, 28)]
    [0.0157, 0.0171, 0.0171]
    >>> level_at(10, [(10,)], 0.05)
    0.05
    """
    if all(len(plan) <= 1 for plan in plans):
        return level
    shares = dict(zip(LOOKS, _LEVELS, strict=True))
    # Where it was stopped by hand, the look is one more: it gets the strictest level.
    return shares.get(n_runs, min(_LEVELS)) / _WHOLE * level
