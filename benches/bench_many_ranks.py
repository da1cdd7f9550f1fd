"""Measures what a thousand ranks cost the process that joins them: run with --ranks 1024.

    python benches/bench_many_ranks.py --ranks 1024 --calls 2000

One simulated rank is reduced again and again under other numbers, with its clock shifted, so that
no rank needs to be simulated. Prints the bytes that the joined ranks take for each call and rank,
and the CPU time of joining and solving.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from longpole import read_trace
from longpole._core import JointRanks, reduce_rank
from longpole.rows.frames import frame_of
from longpole.testing import TraceBuilder

STEP_US = 100


def main() -> None:
    """Reduce, join and solve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=1024)
    parser.add_argument("--calls", type=int, default=2000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        trace = read_trace(rank_of(options.calls, options.ranks).write(Path(folder) / "rank0.json"))
    reduce_rank(trace.core, rank=0)
    before = resident_bytes()
    began = time.process_time()
    ranks = [reduce_rank(trace.core, rank=number) for number in range(options.ranks)]
    reduced = time.process_time()
    after = resident_bytes()
    joint = JointRanks(ranks)
    joined = time.process_time()
    start, end = joint.solve([], together=False).run
    solved = time.process_time()
    calls = frame_of(joint.calls()).height
    members = options.ranks * options.calls
    print(f"{options.ranks} ranks, {calls} calls, run {(end - start) / 1e6:.1f} ms")
    print(f"reduced ranks: {(after - before) / members:.0f} bytes a call and rank")
    print(
        f"with the joint graph: {(resident_bytes() - before) / members:.0f}, at the most", end=" "
    )
    print(f"{(peak_bytes() - before) / members:.0f}")
    print(f"CPU seconds: reducing {reduced - began:.2f}, joining {joined - reduced:.2f}", end=", ")
    print(f"solving {solved - joined:.2f}")


def rank_of(n_calls: int, n_ranks: int) -> TraceBuilder:
    """Make a rank with an all-reduce in each step, numbered as recent torch does."""
    builder = TraceBuilder().header(distributedInfo={"rank": 0, "world_size": n_ranks})
    for call in range(n_calls):
        at = call * STEP_US
        if call % 4 == 0:
            builder.step(call // 4, (at, at + 4 * STEP_US - 1))
        builder.operator("aten::mm", (at, at + 40))
        builder.launch("gemm", call=(at + 5, at + 9), work=(at + 10, at + 45))
        builder.launch(
            "ncclDevKernel_AllReduce_Sum_f32",
            call=(at + 50, at + 54),
            work=(at + 56, at + 90),
            stream=20,
        )
    return builder


def resident_bytes() -> int:
    """Give what the process holds now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()


def peak_bytes() -> int:
    """Give the most that the process held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main()
