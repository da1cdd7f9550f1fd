"""Two ranks that share a GPU: a late one, many small messages, and waits for communication.

torchrun --nproc-per-node 2 examples/remedies/ranks.py OUT

Times each program slow and mended, in turns and without a profiler, and writes a trace of each rank
and form into OUT. NCCL refuses two ranks on one device of a host; here each pretends to be a host
of its own, and messages go through sockets. Ranks that share a GPU take turns on it, so that no
work hides communication, and a collective takes milliseconds.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from models import Step

RANK = int(os.environ.get("RANK", "0"))
os.environ["NCCL_HOSTID"] = f"rank{RANK}"
os.environ.setdefault("NCCL_SOCKET_IFNAME", "lo")
os.environ.setdefault("NCCL_IB_DISABLE", "1")

import torch  # noqa: E402 - NCCL reads the environment when it is loaded
import torch.distributed as dist  # noqa: E402
from models import random  # noqa: E402
from torch.profiler import ProfilerActivity, profile, schedule  # noqa: E402

LATE_S = 0.02
ROUNDS, STEPS = 5, 8


def main(output: Path) -> None:
    """Time and record all programs."""
    torch.cuda.set_device(0)
    dist.init_process_group("nccl")
    for name, program in (("late_rank", late), ("small_messages", small), ("overlap", overlap)):
        slow, mended = program(is_slow=True), program(is_slow=False)
        for step in (slow, mended):
            timed_ms(step, 3)
        pairs = [(timed_ms(slow, STEPS), timed_ms(mended, STEPS)) for _ in range(ROUNDS)]
        gains = sorted(1 - mended_ms / slow_ms for slow_ms, mended_ms in pairs)
        row = {
            "name": name,
            "rank": RANK,
            "slow_ms": statistics.median(slow_ms for slow_ms, _ in pairs),
            "mended_ms": statistics.median(mended_ms for _, mended_ms in pairs),
            "gain": [gains[ROUNDS // 2], gains[0], gains[-1]],
        }
        sys.stdout.write(json.dumps(row) + "\n")
        for form, step in (("slow", slow), ("mended", mended)):
            recorded(step, output / f"{name}.{form}")
    dist.barrier()
    os._exit(0)  # without waiting for NCCL to close its sockets


def late(*, is_slow: bool) -> Step:
    """Return a step that sums gradients after rank 1 worked on the host for 20 ms."""
    factors, gradients = _factors(), random(4_000_000)

    def step() -> None:
        _multiply(factors, 20)
        if is_slow and RANK == 1:
            end_s = time.perf_counter() + LATE_S
            while time.perf_counter() < end_s:
                pass
            _multiply(factors, 20)
        dist.all_reduce(gradients)
        _multiply(factors, 5)

    return step


def small(*, is_slow: bool) -> Step:
    """Return a step that sums 64 gradients of 64 KiB, one by one or all together."""
    factors, gradients = _factors(), [random(16_384) for _ in range(64)]
    flat = random(64 * 16_384)

    def step() -> None:
        _multiply(factors, 10)
        if is_slow:
            for gradient in gradients:
                dist.all_reduce(gradient)
        else:
            torch.cat(gradients, out=flat)
            dist.all_reduce(flat)
        _multiply(factors, 5)

    return step


def overlap(*, is_slow: bool) -> Step:
    """Return a step that sums four gradients of 16 MB, after computing or meanwhile."""
    factors, gradients = _factors(), [random(4_000_000) for _ in range(4)]

    def step() -> None:
        works = []
        for gradient in gradients:
            _multiply(factors, 10)
            works.append(dist.all_reduce(gradient, async_op=not is_slow))
        for work in works:
            if work is not None:
                work.wait()
        _multiply(factors, 5)

    return step


def _factors() -> torch.Tensor:
    return random(3072, 3072, dtype=torch.bfloat16)


def _multiply(factors: torch.Tensor, number: int) -> None:
    for _ in range(number):
        torch.mm(factors, factors)


def timed_ms(step: Step, number: int) -> float:
    """Return the time of a step, from a moment at which all ranks are ready."""
    torch.cuda.synchronize()
    dist.barrier()
    torch.cuda.synchronize()
    start_s = time.perf_counter()
    for _ in range(number):
        step()
    torch.cuda.synchronize()
    return (time.perf_counter() - start_s) / number * 1e3


def recorded(step: Step, folder: Path) -> None:
    """Record four steps of this rank."""
    folder.mkdir(parents=True, exist_ok=True)
    activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    steps = schedule(wait=1, warmup=1, active=4, repeat=1)
    with profile(activities=activities, record_shapes=True, schedule=steps) as profiler:
        for _ in range(6):
            step()
            profiler.step()
    profiler.export_chrome_trace(str(folder / f"rank{RANK}.json.gz"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
