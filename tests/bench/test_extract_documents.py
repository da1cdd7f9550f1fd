"""What is found in the JSON of benchmark tools, and what mutations of any output cannot do."""

from __future__ import annotations

import json
import random

import pytest
from printed import DOCUMENTS, TEXTS

from longpole import bench

SAMPLES = TEXTS | DOCUMENTS


def told(found):
    return [(row.operation, row.time_ns, row.status) for row in found.measurements]


def read(name):
    found = bench.extract(DOCUMENTS[name].encode())
    assert {row.format for row in found.measurements} == {name}
    assert found.rejected_counts == {}
    return found


def test_hyperfine_gives_each_time_and_the_median_where_there_are_none():
    found = read("hyperfine")
    assert told(found) == [
        ("sleep 0.1", 101_200_000.0, "ok"),
        ("sleep 0.1", 101_800_000.00000002, "ok"),
        ("sleep 0.1", 103_100_000.0, "failed"),
        ("make", 2_400_000_000.0, "ok"),
    ]
    table = found.table("hyperfine")
    assert table["threads"].to_list() == ["4", "4", "4", None]
    assert table["statistic"].to_list() == [None, None, None, "median"]
    assert table["run"].to_list() == ["1", "2", "3", "4"]


def test_pyperf_gives_the_values_of_each_process_and_no_warmup():
    found = read("pyperf")
    assert told(found) == [
        ("sort", 3_000_000.0, "ok"),
        ("sort", 3_100_000.0, "ok"),
        ("sort", 3_200_000.0, "ok"),
        ("sort", 3_300_000.0, "ok"),
    ]
    assert found.table("pyperf")["run"].to_list() == ["2", "2", "3", "3"]


def test_google_benchmark_gives_repetitions_or_their_median():
    found = read("google-benchmark-json")
    assert told(found) == [
        ("BM_sort/64", 387.47621, "ok"),
        ("BM_broken", None, "failed"),
        ("BM_copy", 6_500.0, "ok"),
    ]


def test_nvbench_names_the_point_and_a_skipped_state_fails():
    found = read("nvbench-json")
    assert told(found) == [
        ("copy [T=I32]", 112_431.0, "ok"),
        ("copy [T=I64]", None, "failed"),
        ("copy", 1_500_000.0, "ok"),
    ]
    assert found.table("nvbench-json")["nv/cold/sample_size"].to_list() == ["1232", None, None]
    assert found.table("nvbench-json")["statistic"].to_list() == ["mean", None, "mean"]


def test_rocprofv3_subtracts_time_stamps_exactly():
    assert told(read("rocprof-json")) == [
        ("add(float*, int)", 7.0, "ok"),
        ("add(float*, int)", 0.0, "zero"),
    ]


def test_serving_gives_latencies_and_documents_may_follow_one_another():
    found = read("serving-json")
    assert told(found) == [
        ("Benchmark duration", 277_200_000_000.0, "ok"),
        ("Mean TTFT", 95_500_000.0, "ok"),
        ("Median TTFT", 69_140_000.0, "ok"),
        ("P99 TTFT", 623_870_000.0, "ok"),
        ("Median TPOT", 39_280_000.0, "ok"),
        ("Benchmark duration", 270_500_000_000.0, "ok"),
        ("Median TTFT", 68_500_000.0, "ok"),
        ("Mean E2E Latency", 4_295_920_000.0, "ok"),
    ]
    table = found.table("serving-json")
    assert table["output_throughput"].to_list()[0] == "431.10"
    assert table["run"].to_list() == ["1"] * 5 + ["2"] * 3
    assert table["offset"].n_unique() == 2


def test_vllm_gives_the_latency_of_each_batch_and_the_time_of_all():
    assert told(read("vllm-latency-json")) == [("latency", 1.25e9, "ok"), ("latency", 1.75e9, "ok")]
    assert told(read("vllm-throughput-json")) == [("elapsed time", 20.25e9, "ok")]


@pytest.mark.parametrize(
    ("time", "status"),
    [
        ("0", "zero"),
        ("0.0", "zero"),
        ("-1", "negative"),
        ("1e999", "inf"),
        ("NaN", "nan"),
        ("null", "missing"),
    ],
)
def test_a_time_that_is_none_is_no_result(time, status):
    text = f'{{"results": [{{"command": "a", "times": [{time}], "exit_codes": [0]}}]}}'
    assert [row[2] for row in told(bench.extract(text.encode()))] == [status]


@pytest.mark.parametrize("time", ['"0.5"', "true", "[0.5]", '{"value": 0.5}'])
def test_what_is_no_number_is_counted(time):
    text = f'{{"results": [{{"command": "a", "times": [{time}], "exit_codes": [0]}}]}}'
    found = bench.extract(text.encode())
    assert (told(found), found.rejected_counts) == ([], {"not_a_number": 1})


@pytest.mark.parametrize(
    ("behind", "died", "reason"),
    [
        ('{"results": [', False, "truncated"),
        ("done", True, "truncated"),
        ("done", False, "extra_text"),
    ],
)
def test_what_follows_a_document_is_counted(behind, died, reason):
    document = DOCUMENTS["vllm-latency-json"]
    found = bench.extract((document + behind).encode(), died=died)
    assert (len(found.measurements), found.rejected_counts) == (2, {reason: 1})
    assert found.rejected["offset"].to_list() == [len(document)]


def test_a_document_comes_in_pieces_and_may_not_be_looked_for():
    text = DOCUMENTS["pyperf"].encode()
    extractor = bench.Extractor(["aitemplate", "pyperf"])
    for at in range(len(text)):
        extractor.feed(text[at : at + 1])
    assert len(extractor.finish().measurements) == 4
    assert bench.extract(text, format=["aitemplate", "hyperfine"]).measurements == []


def test_json_of_another_kind_is_read_by_lines():
    text = '{"num_choices": 3}\n' + TEXTS["inductor"]
    assert len(bench.extract(text.encode()).measurements) == 2
    deep = b'{"results": ' + b"[" * 100_000
    assert bench.extract(deep).measurements == []


@pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", SAMPLES)
def test_a_stream_that_was_cut_gives_no_result_that_the_whole_has_not(name, every):
    text = SAMPLES[name].encode()
    whole = [row[:3] for row in bench.extract(text).measurements if row.is_selectable]
    assert whole
    for end in range(0, len(text), every):
        cut = bench.extract(text[:end], died=True).measurements
        assert {row[:3] for row in cut if row.is_selectable} <= set(whole)


@pytest.mark.parametrize("name", SAMPLES)
def test_no_time_is_made_of_zeros(name):
    zeros = "".join("0" if character.isdigit() else character for character in SAMPLES[name])
    found = bench.extract(zeros.encode())
    assert [row for row in found.measurements if row.is_selectable] == []


@pytest.mark.parametrize("name", SAMPLES)
def test_mutations_do_no_harm(name):
    chosen = random.Random(name)  # noqa: S311 - the same mutations every time
    text = SAMPLES[name].encode()
    others = [each.encode() for each in SAMPLES.values()]
    for _ in range(80):
        found = bench.extract(_mutated(text, others, chosen))
        for row in found.measurements:
            assert not row.is_selectable or 0 < row.time_ns < float("inf")


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_value_of_another_kind_does_no_harm(name):
    document = json.JSONDecoder().raw_decode(DOCUMENTS[name])[0]
    for changed in _changed(document):
        found = bench.extract(json.dumps(changed).encode())
        assert all(row.format == name for row in found.measurements)


def _changed(value):
    """Yield a JSON value with one node in place of which there is something else."""
    yield from (None, [], {}, [[]], "x", 1, True)
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from ({**value, key: other} for other in _changed(inner))
    if isinstance(value, list):
        for at, inner in enumerate(value):
            yield from ([*value[:at], other, *value[at + 1 :]] for other in _changed(inner))


def _mutated(text, others, chosen):
    for _ in range(chosen.randrange(1, 4)):
        at, length = chosen.randrange(len(text) + 1), chosen.randrange(12)
        piece = chosen.choice([b"", b"\0", b'"', b"\n", b"9" * 400, b"-", b"{", b"e", b"\xff"])
        other = chosen.choice(others)
        start = chosen.randrange(len(other))
        spliced = other[start : start + chosen.randrange(80)]
        text = text[:at] + chosen.choice([piece, spliced]) + text[at + length :]
    return text
