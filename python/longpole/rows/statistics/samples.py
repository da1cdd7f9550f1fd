"""Statistics of the samples of one run.

Timings are skewed, contain outliers and drift, so all statistics here are based on ranks and
medians: one sample in ten can be an outlier without changing a result. No sample is dropped;
unusual samples are counted and reported as warnings. The samples of one run do not describe other
runs, so there is no interval here: `ranks` computes intervals from the numbers of several runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    Samples: TypeAlias = NDArray[np.float64]

# Above this number of samples per side, the normal approximation of the rank sum is as good.
_EXACT_UP_TO: Final = 30

# Iglewicz and Hoaglin, "How to Detect and Handle Outliers" (1993), recommend 3.5 for the modified
# z-score; the two factors scale each deviation to one standard deviation of a normal sample.
_OUTLIER_SCORE: Final = 3.5
MEDIAN_DEVIATION_TO_SIGMA: Final = 1.4826
_MEAN_DEVIATION_TO_SIGMA: Final = 1.2533

# With fewer samples in each third, the thirds cannot differ at the required level.
_FEWEST_FOR_DRIFT: Final = 15
_DRIFT_P_VALUE: Final = 0.01

# A smaller drift does not affect a verdict.
_WORTH_SAYING: Final = 0.01

# One outlier in ten samples is usual on a shared machine.
_MANY_OUTLIERS: Final = 0.2


class MannWhitney(NamedTuple):
    """How often a sample of one side exceeds one of the other, with the p-value.

    `n_exceeding` is the number of pairs in which the second side is larger; ties count one half.
    `p_value` is the probability of a number at least as far from one half of all pairs if both
    sides came from one distribution.
    """

    n_exceeding: float
    p_value: float


@dataclass(frozen=True, slots=True)
class Summary:
    """Statistics of the samples of one key.

    Parameters
    ----------
    n_samples
        Number of samples, including outliers.
    median_ns
        Median.
    deviation_ns
        Median absolute deviation (MAD), not scaled to a standard deviation.
    n_outliers
        Number of samples far from the rest.
    warnings
        Warnings about the samples, as sentences.
    """

    n_samples: int
    median_ns: float
    deviation_ns: float
    n_outliers: int
    warnings: tuple[str, ...]


def summarise(samples_ns: ArrayLike) -> Summary:
    """Compute the statistics of samples of one quantity.

    Parameters
    ----------
    samples_ns
        The samples in time order, which only the detection of drift uses.

    Raises
    ------
    ValueError
        There is no sample, or one is not a finite number.

    Examples
    --------
    >>> summary = summarise([102, 100, 101, 103, 99, 100, 250])
    >>> summary.median_ns, summary.deviation_ns, summary.n_outliers
    (101.0, 1.0, 1)
    """
    samples = _checked(samples_ns)
    return Summary(
        n_samples=samples.size,
        median_ns=float(np.median(samples)),
        deviation_ns=median_deviation(samples),
        n_outliers=int(outliers(samples).sum()),
        warnings=warnings_about(samples),
    )


def median_deviation(samples: ArrayLike) -> float:
    """Return the median absolute deviation of samples (MAD).

    Examples
    --------
    >>> median_deviation([1, 2, 3, 4, 100])
    1.0
    """
    values = _checked(samples)
    return float(np.median(np.abs(values - np.median(values))))


def outliers(samples: ArrayLike) -> NDArray[np.bool_]:
    """Mark the outliers among samples.

    An outlier is more than 3.5 standard deviations from the median, estimated from the median
    deviation. If more than half of the samples are equal, that would be zero, and the mean
    deviation is used instead.

    Examples
    --------
    >>> outliers([10, 11, 10, 12, 11, 30]).tolist()
    [False, False, False, False, False, True]
    """
    values = _checked(samples)
    distances = np.abs(values - np.median(values))
    sigma = MEDIAN_DEVIATION_TO_SIGMA * np.median(distances)
    if sigma == 0:
        sigma = _MEAN_DEVIATION_TO_SIGMA * distances.mean()
    return np.asarray(distances > _OUTLIER_SCORE * sigma)


def mann_whitney(base: ArrayLike, new: ArrayLike) -> MannWhitney:
    """Test whether the samples of one side tend to be larger than those of the other.

    Exact with up to 30 samples per side, with or without ties; above that the normal approximation
    with corrections for ties and continuity. Two-sided.

    Examples
    --------
    >>> mann_whitney([1, 2, 3, 4], [5, 6, 7, 8])
    MannWhitney(n_exceeding=16.0, p_value=0.02857142857142857)
    """
    base_values, new_values = _checked(base), _checked(new)
    ranks = _doubled_ranks(np.concatenate([base_values, new_values]))
    rank_sum = int(ranks[base_values.size :].sum())
    n_exceeding = rank_sum / 2 - new_values.size * (new_values.size + 1) / 2
    if max(base_values.size, new_values.size) <= _EXACT_UP_TO:
        p_value = _exact_p_value(ranks, rank_sum, new_values.size)
    else:
        p_value = _normal_p_value(ranks, n_exceeding, new_values.size)
    return MannWhitney(n_exceeding, p_value)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values so that they hold for all questions together.

    With a hundred questions at 5 %, about five appear significant by chance. After the correction
    of Holm (1979), the probability of even one false positive is that of a single question.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    raised = [0.0] * len(p_values)
    largest = 0.0
    for place, row in enumerate(sorted(range(len(p_values)), key=lambda row: p_values[row])):
        largest = max(largest, min(1.0, p_values[row] * (len(p_values) - place)))
        raised[row] = largest
    return raised


def warnings_about(samples: ArrayLike) -> tuple[str, ...]:
    """Return the warnings about samples as sentences.

    Examples
    --------
    >>> warnings_about([100, 101] * 10 + [150, 151] * 10)[0]
    'drift: the last third is 51.0 % slower than the first'
    """
    values = _checked(samples)
    found = [_drift_warning(values), _outliers_warning(values)]
    return tuple(warning for warning in found if warning)


def drift(samples: ArrayLike) -> float:
    """Return the relative change from the first third of the samples to the last.

    Zero with fewer than 15 samples, or if the thirds do not differ at the 99 % level. A change that
    returns to its start is not detected.

    Examples
    --------
    >>> drift(range(1000, 1300))
    0.1905669366364935
    """
    values = _checked(samples)
    if values.size < _FEWEST_FOR_DRIFT:
        return 0.0
    third = values.size // 3
    first, last = values[:third], values[-third:]
    if mann_whitney(first, last).p_value >= _DRIFT_P_VALUE:
        return 0.0
    return float(np.median(last) / np.median(first)) - 1


def _checked(samples: ArrayLike | range) -> Samples:
    values = np.asarray(samples, dtype=np.float64)
    if values.ndim != 1 or values.size == 0:
        message = "samples must be a list of at least one number"
        raise ValueError(message)
    if not np.isfinite(values).all():
        message = "a sample is not a finite number"
        raise ValueError(message)
    return values


def _doubled_ranks(values: Samples) -> NDArray[np.int64]:
    """Return twice the rank of each value; ties share their mean rank, so this is an integer."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    doubled: NDArray[np.int64] = (2 * last - counts + 1)[places]
    return doubled


def _exact_p_value(ranks: NDArray[np.int64], rank_sum: int, n_new: int) -> float:
    """Count all choices of n ranks by their sum (Streitberg and Röhmel 1986)."""
    choices = np.zeros((n_new + 1, int(ranks.sum()) + 1))
    choices[0, 0] = 1
    for rank in ranks:
        choices[1:, rank:] += choices[:-1, :-rank]
    of_size = choices[n_new]
    tail = min(of_size[: rank_sum + 1].sum(), of_size[rank_sum:].sum())
    return min(1.0, float(2 * tail / of_size.sum()))


def _normal_p_value(ranks: NDArray[np.int64], n_exceeding: float, n_new: int) -> float:
    n_base, n_all = ranks.size - n_new, ranks.size
    _, ties = np.unique(ranks, return_counts=True)
    tie_share = float((ties.astype(np.float64) ** 3 - ties).sum()) / (n_all * (n_all - 1))
    variance = n_base * n_new / 12 * (n_all + 1 - tie_share)
    if variance <= 0:
        return 1.0
    distance = abs(n_exceeding - n_base * n_new / 2) - 0.5
    return min(1.0, math.erfc(distance / math.sqrt(2 * variance)))


def _drift_warning(samples: Samples) -> str | None:
    change = drift(samples)
    if abs(change) < _WORTH_SAYING:
        return None
    direction = "slower" if change > 0 else "faster"
    return f"drift: the last third is {100 * abs(change):.1f} % {direction} than the first"


def _outliers_warning(samples: Samples) -> str | None:
    n_outliers = int(outliers(samples).sum())
    if n_outliers < _MANY_OUTLIERS * samples.size:
        return None
    return f"outliers: {n_outliers} of {samples.size} samples are far from the rest"
