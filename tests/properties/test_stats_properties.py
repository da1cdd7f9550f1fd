"""What has to hold for any samples and any file of records."""

import json
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longpole.bench.comparison.compare import Verdict, compare
from longpole.bench.records.samples import gather, read_measurements
from longpole.errors import ResultsError
from longpole.rows.statistics import ranks
from longpole.rows.statistics import samples as stats

durations = st.integers(1, 10**12)
some = st.lists(durations, min_size=1, max_size=40)
enough = st.lists(durations, min_size=6, max_size=40)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["", "ok", "1"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "time_ns"]), inner, max_size=2)
    ),
    max_leaves=4,
)
record_fields = st.sampled_from(
    ["key", "outcome", "samples_ns", "results", "seconds", "duration_ns", "environment", "clock"]
)


@given(some, some, st.sampled_from([0.05, 0.0157, 0.5]))
def test_the_limits_of_a_shift_are_differences_around_their_median(base, new, level):
    estimate, limits = ranks.shift_limits(base, new, level)
    differences = sorted(after - before for before in base for after in new)
    cut = ranks.rank_sum_limit(len(base), len(new), level)

    assert estimate == pytest.approx(np.median(differences))
    if limits is not None:
        assert limits == (differences[cut], differences[-1 - cut])


@given(st.lists(durations, min_size=1, max_size=25, unique=True), st.data())
def test_the_counted_rank_sum_is_that_of_every_choice(values, data):
    cut = data.draw(st.integers(0, len(values)))
    base, new = values[:cut], values[cut:]
    if base and new:
        expected = stats.mann_whitney(base, new).p_value
        assert ranks.shift_p_value(base, new) == pytest.approx(expected)


@given(st.lists(st.integers(-2, 2), min_size=1, max_size=30))
def test_the_other_direction_mirrors_the_sign_test(numbers):
    """Zeros count half on either side."""
    forth, back = (ranks.sign_p_value([sign * it for it in numbers]) for sign in (1, -1))
    assert forth == back
    assert 0 < forth <= 1


@given(some, some)
def test_exchanging_the_sides_mirrors_the_rank_test(base, new):
    forth, back = stats.mann_whitney(base, new), stats.mann_whitney(new, base)

    assert forth.n_exceeding + back.n_exceeding == len(base) * len(new)
    assert abs(forth.p_value - back.p_value) < 1e-9
    assert 0 <= forth.p_value <= 1


@given(enough, enough, st.sampled_from([2, 1024, 1 / 8]))
def test_the_unit_of_time_makes_no_difference(base, new, factor):
    scaled = compare({"k": [factor * each for each in base]}, {"k": [factor * x for x in new]})
    plain = compare({"k": base}, {"k": new})

    intervals = [each.differences[0].interval for each in (scaled, plain)]
    assert scaled.verdict == plain.verdict
    assert intervals[0] == pytest.approx(intervals[1])


@given(enough, enough)
def test_no_side_is_slower_than_the_other_both_ways(base, new):
    forth = compare({"k": base}, {"k": new}).verdict
    back = compare({"k": new}, {"k": base}).verdict

    assert (forth, back) not in {(v, v) for v in (Verdict.SLOWER, Verdict.FASTER)}


@given(enough)
def test_runs_are_never_different_from_themselves(times):
    found = compare({"k": times}, {"k": times}).verdict
    assert found in {Verdict.SAME, Verdict.INCONCLUSIVE}


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_keeps_the_order_and_never_lowers(p_values):
    raised = stats.holm(p_values)

    assert all(before <= after <= 1 for before, after in zip(p_values, raised, strict=True))
    by_value = sorted(zip(p_values, raised, strict=True))
    assert [after for _, after in by_value] == sorted(raised)


@given(st.lists(st.dictionaries(record_fields, json_values, max_size=6), max_size=5))
def test_only_positive_finite_durations_become_samples(records):
    measurements = gather(records)

    for runs in measurements.runs.values():
        assert all(-800 < each < 800 for each in runs.log_times)


@given(st.lists(st.binary(max_size=30) | json_values.map(lambda v: json.dumps(v).encode())))
def test_any_file_is_read_or_refused(tmp_path_factory, lines):
    path = tmp_path_factory.mktemp("records") / "any.jsonl"
    path.write_bytes(b"\n".join(lines))

    with suppress(ResultsError):
        assert read_measurements(path).runs
