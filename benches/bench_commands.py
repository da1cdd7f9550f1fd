"""What a command costs as a whole process, from start to exit, beside `orjson.loads` of its trace.

CPU is user and system time of the process, the median of its runs; the ratio is that over the time
of `orjson.loads` of all traces that the command reads. The commands take turns, so that a change of
the machine's speed meets all of them. Python keeps compiled modules between the runs, as it does
where a wheel was installed. The traces are made by `workloads.py`.

    python benches/bench_commands.py [--repeats 5] [--megabytes 5 269]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PEER: Final = "orjson.loads"
COMMANDS: Final = {
    PEER: ["-c", "import orjson, sys; orjson.loads(open(sys.argv[1], 'rb').read())", "TRACE"],
    "json.load": ["-c", "import json, sys; json.load(open(sys.argv[1], 'rb'))", "TRACE"],
    "import": ["-c", "import longpole"],
    "--version": ["-m", "longpole", "--version"],
    "summary": ["-m", "longpole", "summary", "TRACE"],
    "whatif": ["-m", "longpole", "whatif", "TRACE"],
    "path": ["-m", "longpole", "path", "TRACE"],
    "check": ["-m", "longpole", "check", "TRACE"],
    "report": ["-m", "longpole", "report", "TRACE", "-o", "TRACE.html", "--force"],
    "diff": ["-m", "longpole", "diff", "TRACE", "TRACE", "--same-program"],
    "table kernels": ["-m", "longpole", "table", "TRACE", "kernels"],
}
INCONCLUSIVE: Final = 4


@dataclass(frozen=True)
class Cost:
    """What one process used."""

    cpu_s: float
    wall_s: float
    peak_mb: float


def main() -> None:
    """Print a row a trace and command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--megabytes", type=int, nargs="+", default=[5, 269])
    options = parser.parse_args()
    columns = ("CPU s", "least", "wall s", "peak MB", "ratio")
    print(f"{'trace':>8} {'command':14} {' '.join(f'{column:>7}' for column in columns)}")
    with tempfile.TemporaryDirectory() as folder:
        for megabytes in options.megabytes:
            show(megabytes, made(Path(folder), megabytes), options.repeats)


def made(folder: Path, megabytes: int) -> Path:
    """Make a trace of this size."""
    path = folder / f"{megabytes}.json"
    workloads = Path(__file__).with_name("workloads.py")
    words = ["training", "--megabytes", str(megabytes), "-o", str(path)]
    subprocess.run([sys.executable, str(workloads), *words], check=True, stdout=subprocess.DEVNULL)
    return path


def show(megabytes: int, trace: Path, repeats: int) -> None:
    """Run all commands in turns; the first round, which compiles modules, does not count."""
    costs: dict[str, list[Cost]] = {name: [] for name in COMMANDS}
    for turn in range(repeats + 1):
        for name, words in COMMANDS.items():
            cost = run(words, trace)
            if turn:
                costs[name].append(cost)
    peer_s = statistics.median(cost.cpu_s for cost in costs[PEER])
    for name, found in costs.items():
        n_read = max(COMMANDS[name].count("TRACE"), 1)
        cpu_s = statistics.median(cost.cpu_s for cost in found)
        wall_s = statistics.median(cost.wall_s for cost in found)
        least_s, peak_mb = min(cost.cpu_s for cost in found), max(cost.peak_mb for cost in found)
        print(
            f"{megabytes:5} MB {name:14} {cpu_s:7.3f} {least_s:7.3f} {wall_s:7.3f} {peak_mb:7.0f}"
            f" {cpu_s / (peer_s * n_read):6.2f}x"
        )


def run(words: list[str], trace: Path) -> Cost:
    """Run one command on a trace."""
    words = [sys.executable, *(word.replace("TRACE", str(trace)) for word in words)]
    environment = {name: value for name, value in os.environ.items() if "BYTECODE" not in name}
    begun = time.perf_counter()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, env=environment)
    _, status, used = os.wait4(process.pid, 0)
    wall_s = time.perf_counter() - begun
    code = os.waitstatus_to_exitcode(status)
    if code not in {0, INCONCLUSIVE}:
        message = f"{' '.join(words)} ended with {code}"
        raise RuntimeError(message)
    return Cost(used.ru_utime + used.ru_stime, wall_s, used.ru_maxrss / 1024)


if __name__ == "__main__":
    main()
