"""Verdicts on programs that are changed and run again: what is named first gains most."""

import pytest

from oracles.rerun import judged, varied_program

SEEDS = 16
LONG_SEEDS = 1_000

# The share of verdicts that name the right side, and the error of nine gains in ten.
LIMITS = {True: (0.99, 0.03), False: (0.97, 0.06)}

# No gain is exceeded by more than a point but in this share.
EXCEEDED = 0.05


@pytest.mark.parametrize(
    "seeds", [range(SEEDS), pytest.param(range(SEEDS, LONG_SEEDS), marks=pytest.mark.slow)], ids=len
)
def test_the_side_that_is_named_first_is_the_one_whose_removal_gains_most(seeds, tmp_path):
    answers = {True: [], False: []}
    for run in map(varied_program, seeds):
        for sync_records, judgements in answers.items():
            judgements.append(judged(run, tmp_path, sync_records=sync_records))
    for sync_records, judgements in answers.items():
        assert_right(judgements, *LIMITS[sync_records])


def assert_right(answers, least_right, most_error):
    told = [answer for answer in answers if answer.verdict.status != "inconclusive"]
    assert len(told) >= 0.95 * len(answers)
    clear = [answer for answer in told if answer.is_clear]
    assert sum(answer.is_right for answer in clear) >= least_right * len(clear)
    errors = [error for answer in told for error in answer.errors.values()]
    assert sorted(map(abs, errors))[int(0.9 * len(errors))] <= most_error
    assert sum(error > 0.01 for error in errors) <= EXCEEDED * len(errors)
