"""What the runner costs beside the jobs it runs.

Three figures, each beside its yardstick in the same run:

* the processor time and the wall time of a job that does nothing, beside a
  plain loop over `subprocess.run`,
* the memory that grows while a job prints a gibibyte, beside a silent job,
* the time for that gibibyte, beside `subprocess.run(stdout=PIPE)` reading it.

    python benches/bench_runner.py [--jobs 500] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from longpole.bench import Job, Policy, Runner

NOTHING = ("/bin/true",)
GIBIBYTE = ("head", "-c", str(1 << 30), "/dev/zero")
LIMITS = {"cpu_ms_per_job": 5.0, "memory_growth_mib": 4.0}


@dataclass(frozen=True, slots=True)
class Cost:
    """What something took of the processors, of this process and its children, and of the clock."""

    cpu_s: float
    wall_s: float


def main() -> None:
    """Measure, print, and say whether the limits hold."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--jobs", type=int, default=500)
    options.add_argument("--json", type=Path)
    arguments = options.parse_args()
    figures = {**small_jobs(arguments.jobs), **much_output()}
    for name, value in figures.items():
        limit = f"   (limit {LIMITS[name]:g})" if name in LIMITS else ""
        print(f"{name:28s} {value:10.3f}{limit}")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1))
    sys.exit(any(figures[name] > limit for name, limit in LIMITS.items()))


def small_jobs(count: int) -> dict[str, float]:
    """Run jobs that do nothing."""
    plain = cost_of_plain_loop(count)
    ours = asdict(cost_of_runner([Job(NOTHING, key="true", format="none")] * count))
    return {
        "cpu_ms_per_job": 1000 * (ours["cpu_s"] - plain.cpu_s) / count,
        "wall_ms_per_job": 1000 * ours["wall_s"] / count,
        "plain_cpu_ms_per_job": 1000 * plain.cpu_s / count,
        "plain_wall_ms_per_job": 1000 * plain.wall_s / count,
        "cpu_ratio_to_plain": ours["cpu_s"] / plain.cpu_s,
        "wall_ratio_to_plain": ours["wall_s"] / plain.wall_s,
    }


def much_output() -> dict[str, float]:
    """Run a job that prints a gibibyte."""
    cost_of_runner([Job(NOTHING, format="none")] * 20)  # what is loaded once is loaded now
    before = peak_memory_bytes()
    ours = cost_of_runner([Job(GIBIBYTE, key="gibibyte")])
    growth = peak_memory_bytes() - before
    started = time.perf_counter()
    subprocess.run(GIBIBYTE, stdout=subprocess.PIPE, check=True)
    plain_s = time.perf_counter() - started
    return {
        "memory_growth_mib": growth / (1 << 20),
        "gib_wall_s": ours.wall_s,
        "gib_cpu_s": ours.cpu_s,
        "gib_plain_wall_s": plain_s,
    }


def cost_of_runner(jobs: list[Job]) -> Cost:
    """Measure a runner from its start to its end, with results on disk."""
    with tempfile.TemporaryDirectory() as folder:
        started, cpu = time.perf_counter(), cpu_seconds()
        with Runner(
            ["cpu"],
            results=Path(folder) / "results.jsonl",
            policy=Policy(timeout_s=60),
            lock_folder=Path(folder),
        ) as runner:
            runner.run(jobs)
        return Cost(cpu_seconds() - cpu, time.perf_counter() - started)


def cost_of_plain_loop(count: int) -> Cost:
    """Measure the least that running a program can cost from Python."""
    started, cpu = time.perf_counter(), cpu_seconds()
    for _ in range(count):
        subprocess.run(NOTHING, capture_output=True, check=True)
    return Cost(cpu_seconds() - cpu, time.perf_counter() - started)


def cpu_seconds() -> float:
    """Sum up the processor time of this process and of all children that have ended."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def peak_memory_bytes() -> int:
    """Give the most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main()
