"""Which changes of work exceed the noise between the steps of a run.

A handful of steps says little about the spread of one kernel. So the variance of each kernel's
steps is combined with that of all work of its kind, as in a moderated t-test (Smyth, "Linear models
and empirical Bayes methods", 2004). The error rate holds for all changes together.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Steps = NDArray[np.float64]

__all__ = ["is_beyond_noise", "moderated_t"]

# Weight of the variance of all work of a kind, as a number of further steps.
_PRIOR_DEGREES: Final = 4.0

# Probability of any false change among all.
_LEVEL: Final = 0.05

# Clock resolution: a spread is at least this fraction of the time.
_LEAST_SPREAD: Final = 1e-4


def moderated_t(base: Steps, new: Steps) -> Steps | None:
    """Return the difference of each row in standard errors of its steps.

    Parameters
    ----------
    base, new
        The time of each group of work (row) in each step (column).

    Returns
    -------
    array or None
        None with one step per side, which has no spread.
    """
    import numpy as np

    degrees = base.shape[1] + new.shape[1] - 2
    if degrees <= 0 or not base.size:
        return None
    means = base.mean(axis=1), new.mean(axis=1)
    size = np.maximum((means[0] + means[1]) / 2, 1.0)
    squares = [((side - side.mean(axis=1, keepdims=True)) ** 2).sum(axis=1) for side in (base, new)]
    variance = (squares[0] + squares[1]) / degrees / size**2
    prior = float(np.median(variance))
    pooled = (_PRIOR_DEGREES * prior + degrees * variance) / (_PRIOR_DEGREES + degrees)
    spread = np.sqrt(np.maximum(pooled, _LEAST_SPREAD**2))
    error = spread * math.sqrt(1 / base.shape[1] + 1 / new.shape[1])
    found: Steps = (means[1] - means[0]) / size / error
    return found


def is_beyond_noise(t: float, n_steps: int, n_changes: int) -> bool:
    """Whether a difference in standard errors is significant among `n_changes` others.

    Examples
    --------
    >>> is_beyond_noise(9.0, 10, 20), is_beyond_noise(2.5, 10, 20)
    (True, False)
    """
    degrees = _PRIOR_DEGREES + n_steps - 2
    return abs(t) > _quantile(1 - _LEVEL / 2 / max(n_changes, 1), degrees)


def _quantile(share: float, degrees: float) -> float:
    """Return the quantile of the t distribution (Fisher and Cornish, 1960)."""
    z = NormalDist().inv_cdf(share)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return z + sum(term / degrees ** (power + 1) for power, term in enumerate(terms))
