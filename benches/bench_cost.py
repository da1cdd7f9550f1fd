"""What doubling a trace costs each command, on shapes that ask much of a program.

Each command runs on a trace of a shape and on one of twice the size. The cost is CPU time above
that on a trace of two events; the ratio is 2 where it grows with the size, 4 where with its
square. Small costs say little: ratios below a floor of time are left out.

    python benches/bench_cost.py [--events 100000] [--shape NAME]... [--command NAME]...
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import shapes

COMMANDS: Final = {
    "summary": ["summary"],
    "check": ["check"],
    "path": ["path", "--window=all"],
    "whatif": ["whatif", "--window=all", "--drop", "kernel"],
    "overlap": ["table", "TRACE", "overlap"],
    "perfetto": ["convert", "-f", "-o", "OUTPUT.pftrace"],
    "table sync": ["table", "TRACE", "sync", "--json"],
    "table slack": ["table", "TRACE", "slack", "--format", "csv"],
    "table kernels": ["table", "TRACE", "kernels", "--window=all", "--json"],
    "table idle": ["table", "TRACE", "idle", "--window=all", "--json"],
    "operators": ["table", "TRACE", "operators", "--window=all", "--json"],
    "functions": ["table", "TRACE", "functions", "--window=all", "--json"],
    "diff": ["diff", "TRACE", "TRACE"],
    "ranks": ["ranks"],
    "report": ["report", "-f", "-o", "OUTPUT.html"],
    "convert": ["convert", "TRACE", "-f", "-o", "OUTPUT.json"],
    "flame": ["convert", "TRACE", "-f", "-o", "OUTPUT.folded"],
    "save": ["convert", "TRACE", "-f", "-o", "OUTPUT.longpole"],
}
ALLOWED: Final = 2.3
FLOOR_S: Final = 0.15
TIME_LIMIT_S: Final = 300


def main() -> int:
    """Print a row a shape and command; 1 where a ratio is above what is allowed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--shape", action="append", choices=list(shapes.SHAPES))
    parser.add_argument("--command", action="append", choices=list(COMMANDS))
    parser.add_argument("--compress", action="store_true", help="write the traces as gzip")
    options = parser.parse_args()
    suffix = ".json.gz" if options.compress else ".json"
    n_bad = 0
    print(f"{'shape':20} {'command':12} {'CPU s':>8} {'twice':>8} {'ratio':>6} {'MB':>6}")
    with tempfile.TemporaryDirectory() as folder:
        smallest = shapes.write("ordinary", 6, Path(folder) / f"two{suffix}")
        base = {name: cost(name, smallest)[0] for name in options.command or COMMANDS}
        for shape in options.shape or shapes.SHAPES:
            once, twice = (
                shapes.write(shape, n, Path(folder) / f"{n}{suffix}")
                for n in (options.events, 2 * options.events)
            )
            for name, base_s in base.items():
                n_bad += row(shape, name, base_s, once, twice)
    return int(n_bad > 0)


def row(shape: str, name: str, base_s: float, once: Path, twice: Path) -> bool:
    """Print what a command costs on a trace and on one of twice the size."""
    once_s, _ = cost(name, once)
    twice_s, megabytes = cost(name, twice)
    once_s, twice_s = max(once_s - base_s, 0.0), max(twice_s - base_s, 0.0)
    is_known = twice_s >= FLOOR_S and once_s > 0
    ratio = twice_s / once_s if is_known else None
    is_bad = ratio is not None and ratio > ALLOWED
    shown = f"{ratio:6.2f}" if ratio is not None else "     -"
    mark = "  <-- more than linear" if is_bad else ""
    print(
        f"{shape:20} {name:12} {once_s:8.2f} {twice_s:8.2f} {shown} {megabytes:6.0f}{mark}",
        flush=True,
    )
    return is_bad


def cost(name: str, trace: Path) -> tuple[float, float]:
    """CPU seconds and peak megabytes of a command."""
    words = COMMANDS[name]
    output = str(trace.with_name("answer"))
    words = [word.replace("TRACE", str(trace)).replace("OUTPUT", output) for word in words]
    words += [] if "TRACE" in COMMANDS[name] else [str(trace)]
    measured = (
        "import resource, subprocess, sys\n"
        "quiet = {'stdout': subprocess.DEVNULL, 'stderr': subprocess.PIPE}\n"
        "try:\n"
        "    done = subprocess.run(sys.argv[2:], timeout=float(sys.argv[1]), **quiet)\n"
        "except subprocess.TimeoutExpired:\n"
        "    sys.exit(print('inf nan'))\n"
        "assert done.returncode in (0, 4), done.stderr.decode()\n"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)"
    )
    program = [sys.executable, "-m", "longpole", *words]
    command = [sys.executable, "-c", measured, str(TIME_LIMIT_S), *program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, megabytes = map(float, done.stdout.split())
    return seconds, megabytes


if __name__ == "__main__":
    sys.exit(main())
