"""What a set of samples says, against naive ways to the same answers."""

from itertools import combinations

import numpy as np
import pytest

from longpole.bench.compare import stats


def test_one_wild_sample_moves_neither_middle_nor_deviation():
    summary = stats.summarise([100, 101, 99, 102, 98, 101, 9000])

    assert (summary.median_ns, summary.deviation_ns, summary.n_outliers) == (101, 1, 1)


def test_precision_is_half_the_interval_over_the_median():
    summary = stats.summarise([90, 95, 100, 105, 110] * 5)
    low, high = summary.interval_ns

    assert summary.precision == pytest.approx((high - low) / 2 / 100)


@pytest.mark.parametrize("samples", [[], [1.0, float("nan")], [float("inf")], [[1.0, 2.0]]])
def test_samples_that_are_no_row_of_finite_numbers_are_refused(samples):
    with pytest.raises(ValueError, match="sample"):
        stats.summarise(samples)


@pytest.mark.parametrize("n_samples", [1, 2, 3, 6, 7, 20, 51])
def test_drawn_medians_are_those_of_real_resamples(n_samples):
    generator = np.random.default_rng(n_samples)
    samples = generator.lognormal(0, 0.1, n_samples)

    drawn = stats.bootstrap_medians(samples, generator=generator, n_resamples=40_000)
    resamples = generator.choice(samples, (40_000, n_samples))
    expected = np.median(resamples, axis=1)

    for place in np.linspace(samples.min(), samples.max(), 20):
        assert np.mean(drawn < place) == pytest.approx(np.mean(expected < place), abs=0.015)


@pytest.mark.parametrize("n_samples", [6, 20, 200])
@pytest.mark.parametrize("confidence", [0.9, 0.95])
def test_the_interval_of_a_change_holds_as_often_as_it_says(n_samples, confidence):
    generator = np.random.default_rng(7)
    n_runs = 400

    n_held = 0
    for _ in range(n_runs):
        base, new = generator.lognormal(0, 0.01, (2, n_samples))
        low, high = stats.change_interval(base, new, confidence=confidence)
        n_held += low <= 0 <= high

    assert n_held / n_runs >= confidence - 0.02


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
        ((21, 30), 6, "asymptotic"),
        ((200, 150), 1, "asymptotic"),
        ((5, 400), 1, "asymptotic"),
    ],
)
def test_the_rank_test_agrees_with_scipy(sizes, digits, method):
    scipy_stats = pytest.importorskip("scipy.stats")
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


def test_drift_is_said_in_words():
    samples = np.linspace(100, 110, 60)

    assert stats.drift(samples) == pytest.approx(0.067, abs=0.001)
    assert "drift: the last third is 6.7 % slower than the first" in stats.warnings_about(samples)
    assert "faster" in stats.warnings_about(samples[::-1])[0]


def test_two_speeds_are_said_in_words():
    samples = np.random.default_rng(0).permutation([100, 101, 102] * 20 + [130, 131, 132] * 20)

    assert stats.two_speeds(samples) == (101, 131, 0.5)
    assert stats.warnings_about(samples) == (
        "two speeds: 50 % of the samples take 1.30 times as long as the others",
    )


def test_neighbouring_ticks_of_a_coarse_clock_are_not_two_speeds():
    assert stats.two_speeds([10, 11] * 50) is None


@pytest.mark.parametrize("shape", ["normal", "lognormal", "exponential", "uniform"])
def test_plain_noise_has_one_speed_and_no_drift(shape):
    generator = np.random.default_rng(11)
    draws = {
        "normal": lambda: generator.normal(100, 1, 100),
        "lognormal": lambda: generator.lognormal(0, 0.3, 100),
        "exponential": lambda: 100 + generator.exponential(5, 100),
        "uniform": lambda: generator.uniform(100, 110, 100),
    }
    samples = [draws[shape]() for _ in range(200)]

    assert sum(stats.two_speeds(each) is not None for each in samples) <= 2
    assert sum(stats.drift(each) != 0 for each in samples) <= 8


def test_the_same_seed_gives_the_same_interval():
    samples = [100, 103, 99, 101, 100, 98, 107, 100]

    assert stats.median_interval(samples, seed=3) == stats.median_interval(samples, seed=3)
