"""Collectives one after another: the trace, the gain and the sentence."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from steps import remedy_of, steps

from longpole import read_trace, read_traces
from longpole.engine.arguments import ARGUMENTS
from longpole.jobs.ranks import ranks
from longpole.report.text import text

if TYPE_CHECKING:
    from longpole.testing import TraceBuilder

REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def reducing(n_kernels: int, n_messages: int = 20):
    """Return what fills a step with messages of 40 us, kernels after each, and one of 800 us."""

    def fill(builder: TraceBuilder, begin: int) -> None:
        now, free = begin, begin + 20
        for _ in range(n_messages):
            builder.launch(REDUCE, call=(now, now + 5), work=(free, free + 40))
            now, free = now + 6, free + 40
            for _ in range(n_kernels):
                builder.launch("gemm", call=(now, now + 5), work=(free, free + 20))
                now, free = now + 6, free + 20
        builder.launch("gemm", call=(now, now + 5), work=(free, free + 800))
        builder.call("cudaDeviceSynchronize", (now + 6, free + 805))

    return fill


def test_messages_in_a_row_take_as_long_as_one_to_three(said):
    found = remedy_of("small_messages", steps(1_640, reducing(0)))
    # 800 us of messages; 120 or 40 stay
    assert abs(found.gain.low - 680 / 1_640) < 0.02, found
    assert abs(found.gain.high - 760 / 1_640) < 0.02, found
    said(found.advice)
    assert found.evidence.startswith(
        "20 collectives a step such as ncclDevKernel_AllReduce_Sum_f32"
    )
    assert found.evidence.endswith("follow each other without other work, 40.0 µs each")


@pytest.mark.parametrize("n_elements", [16_384, 1_000_000])
def test_long_messages_of_few_bytes_count_as_a_command_reads_them(n_elements, tmp_path):
    def fill(builder: TraceBuilder, begin: int) -> None:
        now, free = begin, begin + 20
        for _ in range(20):
            builder.launch(REDUCE, call=(now, now + 5), work=(free, free + 200))
            now, free = now + 6, free + 200
        builder.call("cudaDeviceSynchronize", (now, free + 5))

    path = steps(4_030, fill).write(tmp_path / "trace.json")
    content = json.loads(path.read_text())
    for event in content["traceEvents"]:
        if event["name"] == REDUCE:
            event["args"] |= {"In msg nelems": n_elements, "dtype": "Float"}
    path.write_text(json.dumps(content))
    remedies = read_trace(path, args=ARGUMENTS).verdict().remedies
    found = [row for row in remedies if row.remedy == "small_messages"]
    assert bool(found) == (4 * n_elements <= 1 << 18)
    assert all(row.advice.endswith(", if latency limits them") for row in found)


@pytest.mark.parametrize(("n_kernels", "is_joinable"), [(0, True), (1, False)])
def test_ranks_give_the_same_advice_as_the_verdict_of_one(n_kernels, is_joinable, tmp_path):
    for rank in (0, 1):
        builder = steps(2_060 if n_kernels else 1_640, reducing(n_kernels))
        builder.header(distributedInfo={"rank": rank, "world_size": 2})
        builder.write(tmp_path / f"rank{rank}.json")
    told = text(ranks(read_traces(tmp_path)).blocks())
    assert ("send small messages together" in told) == is_joinable
    assert ("send fewer bytes, or overlap it" in told) != is_joinable


def test_messages_with_work_between_them_are_left_alone():
    assert remedy_of("small_messages", steps(2_060, reducing(1))) is None


def test_few_messages_are_left_alone():
    assert remedy_of("small_messages", steps(1_100, reducing(0, 4))) is None
