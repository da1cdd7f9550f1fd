"""What is said of calls without a group, of clocks that disagree once, and of a folder of ranks."""

from __future__ import annotations

import json

import pytest

from longpole.cli import program
from longpole.testing import TraceBuilder

CALL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


@pytest.fixture
def folder(tmp_path):
    """Write two ranks with two steps of four calls; the first step has no process group.

    The last call of rank 1 ends 500 us after that of rank 0.
    """
    for rank in range(2):
        builder = TraceBuilder().header(distributedInfo={"rank": rank, "world_size": 2})
        for step in range(2):
            begin = 10_000 * step
            builder.step(step + 1, (begin, begin + 9_000))
            for call in range(4):
                at = begin + 2_000 * call
                is_last = (step, call, rank) == (1, 3, 1)
                group = {"Process Group Name": "0", "Collective name": "allreduce"} if step else {}
                number = 10 * step + call + 1
                builder.call("cudaLaunchKernelExC", (at, at + 5), correlation=number)
                builder.event(
                    ph="X",
                    cat="kernel",
                    name=CALL,
                    pid=0,
                    tid=7,
                    ts=at + 10,
                    dur=500 + 500 * is_last,
                    args={"device": 0, "stream": 7, "correlation": number, **group},
                )
        builder.write(tmp_path / f"rank{rank}.json")
    return tmp_path


@pytest.fixture
def told(folder, capsys):
    def ask(*words):
        program.run([words[0], str(folder), *words[1:]])
        return " ".join(capsys.readouterr().out.split())

    return ask


def test_calls_of_which_no_group_is_recorded_are_not_a_group(told, said):
    said.within(told("ranks"))


def test_the_largest_disagreement_of_clocks_stands_beside_the_usual_one(told, said):
    printed = told("ranks")
    said.within(printed)
    [clock, _] = json.loads(told("ranks", "--json"))["data"]["clocks"]
    assert clock["worst_residual_ns"] == 250_000


def test_of_a_step_only_its_calls_are_listed(told, said):
    assert "call (5 of 8)" in told("ranks")
    printed = told("ranks", "--step", "2")
    said.within(printed)
    assert "call (" not in printed


def test_a_folder_of_ranks_is_checked_as_its_files(folder, told, capsys):
    folder.joinpath("notes.json").write_text('{"how": "recorded on one node"}')
    paths = [str(folder / f"rank{rank}.json") for rank in range(2)]
    whole = told("check")
    program.run(["check", *paths])
    assert whole == " ".join(capsys.readouterr().out.split())
    assert whole.count("one_of_ranks") == 2
