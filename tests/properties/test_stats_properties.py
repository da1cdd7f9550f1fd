"""What has to hold for any samples and any file of records."""

import json
from contextlib import suppress

from hypothesis import given, settings
from hypothesis import strategies as st

from longpole.bench.compare import stats
from longpole.bench.compare.comparison import Verdict, compare
from longpole.bench.records.samples import gather, read_measurements
from longpole.errors import ResultsError

# Ten thousand draws take longer where the machine is busy.
unhurried = settings(deadline=None)

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


@unhurried
@given(some)
def test_the_interval_lies_among_the_samples_around_the_median(samples):
    summary = stats.summarise(samples)
    low, high = summary.interval_ns

    assert min(samples) <= low <= summary.median_ns <= high <= max(samples)


@unhurried
@given(some, some)
def test_exchanging_the_sides_mirrors_the_rank_test(base, new):
    forth, back = stats.mann_whitney(base, new), stats.mann_whitney(new, base)

    assert forth.n_exceeding + back.n_exceeding == len(base) * len(new)
    assert abs(forth.p_value - back.p_value) < 1e-9
    assert 0 <= forth.p_value <= 1


@unhurried
@given(enough, enough, st.sampled_from([2, 1024, 1 / 8]))
def test_the_unit_of_time_makes_no_difference(base, new, factor):
    scaled = compare({"k": [factor * each for each in base]}, {"k": [factor * x for x in new]})
    plain = compare({"k": base}, {"k": new})

    assert scaled.verdict == plain.verdict
    assert scaled.differences[0].interval == plain.differences[0].interval


@unhurried
@given(enough, enough)
def test_no_side_is_slower_than_the_other_both_ways(base, new):
    forth = compare({"k": base}, {"k": new}).verdict
    back = compare({"k": new}, {"k": base}).verdict

    assert (forth, back) not in {(v, v) for v in (Verdict.SLOWER, Verdict.FASTER)}


@unhurried
@given(enough)
def test_samples_are_the_same_as_themselves(samples):
    assert compare({"k": samples}, {"k": samples}).verdict is Verdict.SAME


@unhurried
@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_keeps_the_order_and_never_lowers(p_values):
    raised = stats.holm(p_values)

    assert all(before <= after <= 1 for before, after in zip(p_values, raised, strict=True))
    by_value = sorted(zip(p_values, raised, strict=True))
    assert [after for _, after in by_value] == sorted(raised)


@unhurried
@given(st.lists(st.dictionaries(record_fields, json_values, max_size=6), max_size=5))
def test_only_positive_finite_durations_become_samples(records):
    measurements = gather(records)

    for runs in measurements.runs.values():
        assert all(0 < each < float("inf") for each in runs.samples_ns)


@unhurried
@given(st.lists(st.binary(max_size=30) | json_values.map(lambda v: json.dumps(v).encode())))
def test_any_file_is_read_or_refused(tmp_path_factory, lines):
    path = tmp_path_factory.mktemp("records") / "any.jsonl"
    path.write_bytes(b"\n".join(lines))

    with suppress(ResultsError):
        assert read_measurements(path).runs
