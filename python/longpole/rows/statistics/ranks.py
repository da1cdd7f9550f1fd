"""Exact rank intervals: for a median, and for the shift between two sets of runs.

Both are based on counting alone. If nothing changed, a difference is positive as often as negative,
and every order of two sets of runs is equally likely, for any distribution of the noise. The
intervals are therefore valid for any number of runs and robust against outliers, without assuming a
normal distribution or resampling.
"""

from __future__ import annotations

import math
from functools import cache
from itertools import accumulate
from statistics import NormalDist
from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.rows.statistics import Interval
from longpole.rows.statistics.samples import (
    MEDIAN_DEVIATION_TO_SIGMA,
    mann_whitney,
    median_deviation,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

# Up to this number, the exact rank-sum distribution is computed; above it, the normal approximation
# is equally good.
_COUNTED_UP_TO: Final = 50

# Up to this number of signs, the exact binomial distribution is computed.
_SIGNS_UP_TO: Final = 500

# Up to this number, all differences between two sets are computed.
_DIFFERENCES_UP_TO: Final = 250_000


def median_limits(numbers: ArrayLike, level: float) -> tuple[float, Interval | None]:
    """Return the median, and its confidence interval at `level`.

    The limits are two of the sorted numbers (an inverted sign test). None if even the smallest and
    the largest number do not reach the level.

    Examples
    --------
    >>> median_limits([3, 1, 2, 5, 4, 7, 6], 0.0157)
    (4.0, Interval(low=1.0, high=7.0))
    """
    ordered = np.sort(np.asarray(numbers, np.float64))
    cut = sign_limit(ordered.size, level)
    estimate = float(np.median(ordered))
    if cut < 0:
        return estimate, None
    return estimate, Interval(float(ordered[cut]), float(ordered[-1 - cut]))


def shift_limits(base: ArrayLike, new: ArrayLike, level: float) -> tuple[float, Interval | None]:
    """Return the shift of the new numbers (Hodges and Lehmann), and its limits.

    Both are order statistics of all differences new - base (rank-sum limits). None if even the
    smallest and the largest difference do not reach the level.

    Examples
    --------
    >>> shift_limits([1, 2, 3, 4], [11, 12, 13, 14], 0.05)
    (10.0, Interval(low=7.0, high=13.0))
    """
    old, now = (np.sort(np.asarray(side, np.float64)) for side in (base, new))
    n_pairs = old.size * now.size
    cut = rank_sum_limit(old.size, now.size, level)
    outer = max(0, cut)
    places = [(n_pairs - 1) // 2, n_pairs // 2, outer, n_pairs - 1 - outer]
    below, above, low, high = _differences_at(old, now, places)
    limits = None if cut < 0 else Interval(low, high)
    return (below + above) / 2, limits


@cache
def sign_limit(n: int, level: float) -> int:
    """Return the largest c with P(X <= c) <= level / 2, X binomial (n, 1/2); -1 without one.

    Examples
    --------
    >>> [sign_limit(n, 0.05) for n in (5, 6, 10, 20)]
    [-1, 0, 1, 5]
    """
    if n > _SIGNS_UP_TO:
        return math.floor(n / 2 + NormalDist().inv_cdf(level / 2) * math.sqrt(n) / 2 - 0.5)
    tail, cut = 0, -1
    while cut < n // 2:
        tail += math.comb(n, cut + 1)
        if 2 * tail > level * 2**n:
            break
        cut += 1
    return cut


@cache
def rank_sum_limit(n: int, m: int, level: float) -> int:
    """Return the largest c with P(U <= c) <= level / 2, U the rank-sum statistic; -1 without one.

    Examples
    --------
    >>> [rank_sum_limit(n, n, 0.05) for n in (3, 4, 6, 10, 20)]
    [-1, 0, 5, 23, 127]
    """
    if max(n, m) > _COUNTED_UP_TO:
        sigma = math.sqrt(n * m * (n + m + 1) / 12)
        return max(-1, math.floor(n * m / 2 + NormalDist().inv_cdf(level / 2) * sigma - 0.5))
    return int(np.searchsorted(_rank_sum_tail(n, m), level / 2, side="right")) - 1


def sign_p_value(numbers: ArrayLike) -> float:
    """Return the two-sided p-value of the sign test for a median of zero; zeros count half.

    Examples
    --------
    >>> sign_p_value([1, 2, 3, 4, 5, 6, 7])
    0.015625
    """
    values = np.asarray(numbers, np.float64)
    n_zero = int((values == 0).sum())
    n_above = int((values > 0).sum()) + n_zero // 2
    n = values.size - n_zero % 2
    fewer = min(n_above, n - n_above)
    tail = sum(math.comb(n, count) for count in range(fewer + 1))
    share: float = 2 * tail / 2**n
    return min(1.0, share)


def shift_p_value(base: ArrayLike, new: ArrayLike) -> float:
    """Return the two-sided p-value of the rank-sum test for equal distributions.

    Examples
    --------
    >>> round(shift_p_value([1, 2, 3, 4], [5, 6, 7, 8]), 4)
    0.0286
    """
    old, now = (np.sort(np.asarray(side, np.float64)) for side in (base, new))
    both = np.concatenate([old, now])
    if max(old.size, now.size) > _COUNTED_UP_TO or np.unique(both).size < both.size:
        return mann_whitney(old, now).p_value
    n_exceeding = int(np.searchsorted(old, now).sum())
    tail = _rank_sum_tail(old.size, now.size)[min(n_exceeding, old.size * now.size - n_exceeding)]
    return min(1.0, 2 * float(tail))


def robust_spread(numbers: ArrayLike) -> float:
    """Return a standard deviation estimated from the median absolute deviation.

    Examples
    --------
    >>> round(robust_spread([1, 2, 3, 4, 100]), 4)
    1.4826
    """
    return MEDIAN_DEVIATION_TO_SIGMA * median_deviation(numbers)


@cache
def _rank_sum_tail(n: int, m: int) -> NDArray[np.float64]:
    """Return P(U <= u) for each u: sums of the coefficients of the Gaussian binomial."""
    counts = [1] + [0] * (n * m)
    for factor in range(1, n + 1):
        for place in range(n * m, m + factor - 1, -1):
            counts[place] -= counts[place - m - factor]
        for place in range(factor, n * m + 1):
            counts[place] += counts[place - factor]
    total = math.comb(n + m, n)
    return np.array([each / total for each in accumulate(counts)])


def _differences_at(
    old: NDArray[np.float64], now: NDArray[np.float64], places: list[int]
) -> list[float]:
    """Return the differences now - old at the given positions of their sorted order."""
    if old.size * now.size <= _DIFFERENCES_UP_TO:
        differences = np.subtract.outer(now, old).ravel()
        differences.partition(sorted(set(places)))
        return [float(differences[place]) for place in places]
    return [_difference_at(old, now, place) for place in places]


def _difference_at(old: NDArray[np.float64], now: NDArray[np.float64], place: int) -> float:
    """Find one difference by bisection, without computing all of them."""
    low, high = float(now[0] - old[-1]), float(now[-1] - old[0])
    for _ in range(100):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        n_up_to = int(np.searchsorted(now, old + middle, side="right").sum())
        low, high = (low, middle) if n_up_to > place else (middle, high)
    return high
