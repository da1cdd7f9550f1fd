"""How often a running comparison may be evaluated, and the significance level of each look.

Stopping as soon as a look after any run shows a difference finds one in one of five comparisons
without a difference. Three looks, after 7, 14 and 28 runs, at levels that sum to the requested one,
keep the error rate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["LOOKS", "level_at"]

LOOKS: Final = (7, 14, 28)
"""Runs of each side after which a comparison is evaluated."""

# For 5 % in all. Seven runs can reach 2 / 2**7; the others share the rest.
_LEVELS: Final = (0.0157, 0.0171, 0.0171)
_WHOLE: Final = 0.05


def level_at(n_runs: int, plans: Collection[tuple[int, ...]], level: float) -> float:
    """Return the significance level of a look after `n_runs` runs.

    Parameters
    ----------
    n_runs
        Runs of each side.
    plans
        The planned looks; `(10,)` or none is one look.
    level
        Level of all looks together.

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
    # Stopped by hand: this is an additional look and gets the strictest level.
    return shares.get(n_runs, min(_LEVELS)) / _WHOLE * level
