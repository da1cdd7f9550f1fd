"""How fast an Nsight Systems export is read, beside SQL over the same tables, in the same run.

The export has as many kernels as runtime calls, in the columns of version 2025, and is made once.
SQL needs two columns of a row; longpole reads 16 of a kernel and 6 of a call, and keeps them.
CPU seconds are those of the process and all its threads: the least of several turns.

    python benches/bench_databases.py [ACTIVITIES]
"""

from __future__ import annotations

import os
import sqlite3
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from longpole import read_trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TURNS = 7
KERNEL, RUNTIME = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"
# The columns of a real export in its order, those in between that are not read among them.
KERNEL_COLUMNS = (
    "start end deviceId contextId greenContextId streamId correlationId globalPid demangledName"
    " shortName mangledName launchType cacheConfig registersPerThread gridX gridY gridZ blockX"
    " blockY blockZ staticSharedMemory dynamicSharedMemory localMemoryPerThread localMemoryTotal"
    " gridId sharedMemoryExecuted graphNodeId sharedMemoryLimitConfig"
)
CALL_COLUMNS = "start end eventClass globalTid correlationId nameId returnValue callchainId"
MACHINE, PROCESS = 1 << 48, 4242 << 24


def make(path: Path, n_each: int) -> None:
    """Write an export with so many kernels and so many calls."""
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
        names = [*(f"kernel_{number}<float, {number}>" for number in range(200)), "launch"]
        database.executemany("INSERT INTO StringIds VALUES (?, ?)", enumerate(names))
        for table, columns, rows in (
            (KERNEL, KERNEL_COLUMNS, kernels(n_each)),
            (RUNTIME, CALL_COLUMNS, calls(n_each)),
        ):
            listed = ", ".join(f"{name} INTEGER" for name in columns.split())
            database.execute(f"CREATE TABLE {table} ({listed})")
            marks = ", ".join("?" * len(columns.split()))
            database.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)  # noqa: S608 - names of this file
        database.commit()


def kernels(count: int) -> Iterator[tuple[int | None, ...]]:
    """Give kernels on two devices with four streams each."""
    sizes = (32, 64, 128, 256)
    for number in range(count):
        start = 10**12 + 2000 * number
        device, grid = number % 2, sizes[number % 4]
        yield (
            *(start, start + 1500, device, 1 + device, None, 7 + number // 7 % 4, number),
            *(MACHINE | PROCESS, number * 7 % 200, number * 7 % 200, None, 1, 0),
            *(40, grid, grid // 2, 1, 128, 1, 1, 0, 1024 * (number % 3), 0, 0),
            *(number, 16384, None, 0),
        )


def calls(count: int) -> Iterator[tuple[int | None, ...]]:
    """Give the calls that launch them, of three threads."""
    for number in range(count):
        start = 10**12 - 5000 + 2000 * number
        thread = MACHINE | PROCESS | 4242 + number // 50 % 3
        yield start, start + 900, 0, thread, number, 200, 0, None


def asked(path: Path) -> None:
    """Count and add up, as SQL does."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as database:
        for table in (KERNEL, RUNTIME):
            database.execute(f"SELECT count(*), sum(end - start) FROM {table}").fetchall()  # noqa: S608 - names of this file


def cpu_and_wall(work: Callable[[], object]) -> tuple[float, float]:
    """Do something; give the seconds of CPU and of the clock."""
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - cpu, time.perf_counter() - wall


def main() -> None:
    """Print the times and their ratios to those of SQL."""
    n_activities = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    folder = Path(tempfile.gettempdir()) / f"longpole-bench-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / f"nsight-{n_activities}.sqlite"
    if not path.exists():
        make(path, n_activities // 2)
    works: dict[str, Callable[[], object]] = {
        "count(*), sum(end - start)": lambda: asked(path),
    }
    for threads in (1, 2):
        for args in ("ids", "default"):
            works[f'longpole args="{args}", threads={threads}'] = (
                lambda args=args, threads=threads: read_trace(path, args=args, threads=threads).core
            )
    turns = [{name: cpu_and_wall(work) for name, work in works.items()} for _ in range(TURNS)]
    least = {name: [min(turn[name][kind] for turn in turns) for kind in (0, 1)] for name in works}
    cpu_of_sql, wall_of_sql = least["count(*), sum(end - start)"]
    print(f"{path.name}: {path.stat().st_size / 1e6:.0f} MB, least of {TURNS} turns")
    print(f"{'':36}{'CPU ms':>8}{'ratio':>7}{'wall ms':>9}{'ratio':>7}")
    for name, (cpu, wall) in least.items():
        print(
            f"{name:36}{1e3 * cpu:8.0f}{cpu / cpu_of_sql:6.1f}x"
            f"{1e3 * wall:9.0f}{wall / wall_of_sql:6.1f}x"
        )


if __name__ == "__main__":
    main()
