"""What a set of samples says, against naive ways to the same answers."""

from itertools import combinations, pairwise

import numpy as np
import pytest

from longpole.rows.statistics import ranks
from longpole.rows.statistics import samples as stats


def test_one_wild_sample_moves_neither_middle_nor_deviation():
    summary = stats.summarise([100, 101, 99, 102, 98, 101, 9000])

    assert (summary.median_ns, summary.deviation_ns, summary.n_outliers) == (101, 1, 1)


@pytest.mark.parametrize("samples", [[], [1.0, float("nan")], [float("inf")], [[1.0, 2.0]]])
def test_samples_that_are_no_row_of_finite_numbers_are_refused(samples):
    with pytest.raises(ValueError, match="sample"):
        stats.summarise(samples)


@pytest.mark.parametrize("n_runs", [6, 7, 14, 28])
def test_the_limits_of_a_median_hold_as_often_as_they_say(n_runs):
    generator = np.random.default_rng(7)
    held = []
    for _ in range(2000):
        _, limits = ranks.median_limits(generator.exponential(1, n_runs), 0.05)
        held.append(limits.low <= np.log(2) <= limits.high)
    assert np.mean(held) >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / 2000)


@pytest.mark.parametrize(("n_base", "n_new"), [(4, 4), (7, 7), (10, 5), (28, 28)])
def test_the_limits_of_a_shift_hold_as_often_as_they_say(n_base, n_new):
    generator = np.random.default_rng(7)
    held = []
    for _ in range(1000):
        base, new = generator.standard_t(2, n_base), 3 + generator.standard_t(2, n_new)
        _, limits = ranks.shift_limits(base, new, 0.05)
        held.append(limits.low <= 3 <= limits.high)
    assert np.mean(held) >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / 1000)


@pytest.mark.parametrize(
    ("n_runs", "level", "pairs", "separate"),
    [
        (7, 0.0157, 0, 5),
        (14, 0.0171, 2, 46),
        (28, 0.0171, 7, 247),
        (6, 0.05, 0, 5),
        (10, 0.05, 1, 23),
        (20, 0.05, 5, 127),
    ],
)
def test_the_limits_are_the_places_of_the_tables(n_runs, level, pairs, separate):
    assert ranks.sign_limit(n_runs, level) == pairs
    assert ranks.rank_sum_limit(n_runs, n_runs, level) == separate


def test_many_runs_are_shifted_without_making_every_difference():
    generator = np.random.default_rng(1)
    base, new = generator.normal(0, 1, 700), generator.normal(0.2, 1, 800)
    estimate, limits = ranks.shift_limits(base, new, 0.05)
    differences = np.sort(np.subtract.outer(new, base).ravel())
    cut = ranks.rank_sum_limit(700, 800, 0.05)
    assert estimate == pytest.approx(np.median(differences), abs=1e-9)
    assert limits == pytest.approx((differences[cut], differences[-1 - cut]), abs=1e-9)


@pytest.mark.parametrize(
    ("base", "new"),
    [
        ([1, 2, 3], [4, 5, 6]),
        ([1, 5, 2, 8], [3, 9, 7]),
        ([1, 1, 2, 3], [1, 3, 3]),
        ([2, 2, 2], [2, 2]),
        ([5], [4, 6]),
    ],
)
def test_small_samples_are_ranked_in_every_way_there_is(base, new):
    found = stats.mann_whitney(base, new)

    assert found == pytest.approx(every_split(base, new))


def every_split(base, new):
    """Count, over every split of the samples, how many are as far from the middle."""

    def exceeding(first, second):
        return sum((b > a) + (b == a) / 2 for a in first for b in second)

    pooled = [*base, *new]
    rows = range(len(pooled))
    splits = [
        exceeding([pooled[row] for row in rows if row not in chosen], [pooled[c] for c in chosen])
        for chosen in combinations(rows, len(new))
    ]
    observed = exceeding(base, new)
    n_tail = min(sum(each <= observed for each in splits), sum(each >= observed for each in splits))
    return observed, min(1.0, 2 * n_tail / len(splits))


@pytest.mark.parametrize(
    ("sizes", "digits", "method"),
    [
        ((8, 8), 6, "exact"),
        ((20, 13), 6, "exact"),
        ((21, 30), 6, "exact"),
        ((21, 31), 6, "asymptotic"),
        ((200, 150), 1, "asymptotic"),
        ((5, 400), 1, "asymptotic"),
    ],
)
@pytest.mark.needs("scipy")
def test_the_rank_test_agrees_with_scipy(sizes, digits, method):
    from scipy import stats as scipy_stats

    generator = np.random.default_rng(sum(sizes))
    base = generator.normal(10, 1, sizes[0]).round(digits)
    new = generator.normal(10.3, 1, sizes[1]).round(digits)

    expected = scipy_stats.mannwhitneyu(new, base, method=method)
    assert stats.mann_whitney(base, new) == pytest.approx(
        (expected.statistic, expected.pvalue), rel=1e-9
    )


def test_equal_samples_are_no_evidence():
    assert stats.mann_whitney([3] * 50, [3] * 60).p_value == 1


def test_holm_raises_each_p_value_by_the_questions_left():
    assert stats.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert stats.holm([]) == []


def test_drift_is_said_in_words(said):
    samples = np.linspace(100, 110, 60)

    assert stats.drift(samples) == pytest.approx(0.067, abs=0.001)
    said.within(stats.warnings_about(samples))
    assert "faster" in stats.warnings_about(samples[::-1])[0]


@pytest.mark.parametrize("shape", ["normal", "lognormal", "exponential", "uniform"])
def test_plain_noise_has_no_drift(shape):
    generator = np.random.default_rng(11)
    draws = {
        "normal": lambda: generator.normal(100, 1, 100),
        "lognormal": lambda: generator.lognormal(0, 0.3, 100),
        "exponential": lambda: 100 + generator.exponential(5, 100),
        "uniform": lambda: generator.uniform(100, 110, 100),
    }
    samples = [draws[shape]() for _ in range(200)]

    assert sum(stats.drift(each) != 0 for each in samples) <= 8


def test_the_limits_of_a_median_of_many_runs_are_those_of_fewer_runs_going_on():
    places = [ranks.sign_limit(n, 0.05) for n in range(490, 511)]
    assert all(0 <= later - earlier <= 1 for earlier, later in pairwise(places))
    assert ranks.sign_limit(100_000, 0.05) == pytest.approx(50_000 - 0.98 * 100_000**0.5, abs=2)
