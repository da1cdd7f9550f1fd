"""Which changes of work stand out of the noise between the steps of a run.

A handful of steps says little about the spread of one kernel. So what one kernel's steps say is
joined with what all work of its kind says, as a moderated t-test does (Smyth, "Linear models and
empirical Bayes methods", 2004). All changes together are held to one chance of a false one.
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

# What all work of a kind says counts like so many further steps.
_PRIOR_DEGREES: Final = 4.0

# The chance of any false change among all.
_LEVEL: Final = 0.05

# Clocks tick; no spread is smaller than this share of a time.
_LEAST_SPREAD: Final = 1e-4


def moderated_t(base: Steps, new: Steps) -> Steps | None:
    """Give by how many standard errors of its steps each row differs.

    Parameters
    ----------
    base, new
        The time of each work (row) in each step (column).

    Returns
    -------
    array or None
        None where there is one step a side, which has no spread.
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
    """Tell whether a difference in standard errors stands out among so many others.

    Examples
    --------
    >>> is_beyond_noise(9.0, 10, 20), is_beyond_noise(2.5, 10, 20)
    (True, False)
    """
    degrees = _PRIOR_DEGREES + n_steps - 2
    return abs(t) > _quantile(1 - _LEVEL / 2 / max(n_changes, 1), degrees)


def _quantile(share: float, degrees: float) -> float:
    """Give the quantile of the t distribution (Fisher and Cornish, 1960)."""
    z = NormalDist().inv_cdf(share)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return z + sum(term / degrees ** (power + 1) for power, term in enumerate(terms))
