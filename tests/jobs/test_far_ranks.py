"""Ranks whose clocks or numbers cannot be: the others are answered, and the reason is said."""

from __future__ import annotations

import json

import pytest

import longpole
from longpole.cli import program
from longpole.testing import TraceBuilder

ALL_REDUCE = {"Collective name": "allreduce", "dtype": "Float", "In msg nelems": 1024}
FAR = (2**63 - 1, -(2**63), 2**62, -(2**62), 2**61)


def rank(number, shift_us=0, **header):
    """Return the trace of a rank with two collectives, its times shifted."""
    builder = TraceBuilder()
    for at in (0, 1_000):
        builder.operator("nccl:all_reduce", (at + 130, at + 180), **ALL_REDUCE)
        builder.launch(
            "ncclDevKernel_AllReduce", call=(at + 140, at + 150), work=(at + 330, at + 600)
        )
        builder.call("cudaDeviceSynchronize", (at + 200, at + 610))
    document = json.loads(builder.to_bytes())
    for event in document["traceEvents"]:
        if "ts" in event:
            event["ts"] = str(event["ts"] + shift_us)
    return {**document, "distributedInfo": {"rank": number, "world_size": 3}, **header}


def asked(folder, *documents):
    """Write the ranks, and ask about them; return the exit codes and what was said."""
    for number, document in enumerate(documents):
        (folder / f"rank{number}.json").write_text(json.dumps(document))
    output = str(folder.parent / "out.perfetto-trace")
    return [
        program.run(["ranks", str(folder)]),
        program.run(["convert", str(folder), "-o", output, "-f"]),
        program.run(["check", str(folder / "rank0.json"), str(folder / "rank1.json")]),
    ]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "ranks").mkdir()
    return tmp_path / "ranks"


@pytest.mark.parametrize("base_ns", FAR)
@pytest.mark.parametrize("other_ns", [0, *FAR[:2]])
def test_a_base_that_is_no_time_ends_no_answer(folder, base_ns, other_ns):
    ranks = [
        rank(0),
        rank(1, baseTimeNanoseconds=base_ns),
        rank(2, baseTimeNanoseconds=other_ns),
    ]
    assert set(asked(folder, *ranks)) <= {0, 1, 3, 4}


@pytest.mark.parametrize("shift_us", [9_223_372_036_854_000, -9_223_372_036_854_000, 2**52])
def test_a_clock_far_from_zero_ends_no_answer(folder, shift_us, capsys):
    assert set(asked(folder, rank(0), rank(1, shift_us), rank(2, -shift_us))) <= {0, 1, 3, 4}
    # Times that do not fit 64 bits in ns are dropped when the trace is read.
    text = capsys.readouterr().out
    assert ("more than 73 years from zero" in text) == (shift_us == 2**52)


def test_ranks_of_today_and_of_a_clock_from_zero_are_joined(folder):
    today = rank(1, 1_764_000_000_000_000)
    for number, document in enumerate((rank(0), today)):
        (folder / f"rank{number}.json").write_text(json.dumps(document))
    assert len(longpole.read_traces(str(folder))) == 2


@pytest.mark.parametrize("number", [2**53, 2**31, -1, 2**63 - 1, -(2**63)])
def test_a_number_that_is_no_rank_is_none(folder, number):
    (folder / "a.json").write_text(json.dumps(rank(number)))
    trace = longpole.read_trace(folder / "a.json")
    assert trace.rank is None
    assert "bad_rank" in trace.diagnostics["code"].to_list()
    assert set(asked(folder, rank(number), rank(1))) <= {0, 1, 4}


@pytest.mark.parametrize("size", [-(2**63), 2**63 - 1, -1])
def test_a_number_of_ranks_that_cannot_be_ends_no_answer(folder, size):
    given = {"rank": 0, "world_size": size}
    assert set(asked(folder, rank(0, distributedInfo=given), rank(1))) <= {0, 1, 4}


def test_a_number_of_many_digits_in_a_file_name_is_no_rank(folder):
    for last in "12":
        path = folder / f"rank999999999999999999999{last}.json"
        path.write_text(json.dumps({**rank(0), "distributedInfo": {}}))
    assert longpole.read_traces(str(folder)).rank_numbers == (0, 1)
