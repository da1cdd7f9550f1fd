"""Measures the memory of reading ranks in turn: at the most that of the largest, and a tenth.

    python benches/bench_rank_memory.py traces/

Answers what `longpole ranks` does for the largest rank alone and for all, each in a process of its
own, and prints the most memory that each held.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

ANSWER = """
import sys
from longpole import read_traces
from longpole.jobs.ranks import ranks
print(ranks(read_traces(sys.argv[2:], workers=int(sys.argv[1]))).path)
"""


def main() -> None:
    """Ask for the largest rank, then for all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    files = sorted(options.directory.iterdir(), key=lambda file: file.stat().st_size)
    one = peak_bytes(files[-1:], 1)
    every = peak_bytes(files, options.workers)
    print(f"largest rank: {one / 1e6:.0f} MB of {files[-1].stat().st_size / 1e6:.0f} MB JSON")
    ratio = every / one / options.workers
    print(f"{len(files)} ranks: {every / 1e6:.0f} MB with {options.workers} workers, {ratio:.2f}x")


def peak_bytes(files: list[Path], workers: int) -> int:
    """Give the most memory that the answer about some ranks took."""
    command = [sys.executable, "-c", ANSWER, str(workers), *map(str, files)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return used.ru_maxrss * 1024


if __name__ == "__main__":
    main()
