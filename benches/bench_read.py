"""How fast a trace is read, beside other readers of JSON, in the same run.

Each reader runs in a process of its own and reads the whole file: longpole to frames of
polars, the others to what they give. CPU is user and system time of that process from
after its imports to the end of reading; memory is the growth of its peak. The file is made
by `workloads.py`; `LONGPOLE_BENCH_TRACE` names another, `LONGPOLE_BENCH_MEGABYTES` a size.

    python benches/bench_read.py [READER ...]
    python benches/bench_read.py memory

The second form prints what a trace that was read keeps, in bytes an event of the file, without
and with the frame of its events. It asks glibc what it has handed out (`mallinfo2`), which two
runs agree on, unlike resident memory; columns that polars copies are added.
"""

from __future__ import annotations

import gzip
import importlib.util
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

REPEATS = 3
SLOW_REPEATS = 1
MEGABYTES = int(os.environ.get("LONGPOLE_BENCH_MEGABYTES", "1000"))

# What each reader does, as a program. `path` is the file; what it imports before `start()`
# is not counted.
READERS = {
    'longpole args="ids"': """
import longpole, polars
start()
trace = longpole.read_trace(path, args="ids")
trace.events
""",
    'longpole args="default"': """
import longpole, polars
start()
trace = longpole.read_trace(path)
trace.events
""",
    "json.load": """
import gzip, json
start()
with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
    document = json.load(file)
""",
    "orjson": """
import gzip, orjson
start()
with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
    document = orjson.loads(file.read())
""",
    "msgspec, typed": """
import gzip, msgspec
from typing import Any
class Event(msgspec.Struct):
    ph: str
    name: str = ""
    cat: str = ""
    pid: int | str = 0
    tid: int | str = 0
    ts: float = 0
    dur: float = 0
    args: dict[str, Any] | None = None
class Document(msgspec.Struct):
    traceEvents: list[Event]
start()
with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
    document = msgspec.json.decode(file.read(), type=Document)
""",
    "HTA": """
from hta.common.trace_parser import parse_trace_dataframe
from hta.configs.parser_config import ParserConfig
start()
frame = parse_trace_dataframe(path, ParserConfig.get_default_cfg())
""",
}

FRAME = """
import json, resource, sys
path = sys.argv[1]
def usage():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
def peak():
    for line in open("/proc/self/status"):
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
begun = {}
def start():
    begun.update(cpu=usage(), peak=peak())
"""

REPORT = """
print(json.dumps({"cpu_s": usage() - begun["cpu"], "peak_bytes": peak() - begun["peak"]}))
"""


KEPT = """
import ctypes, gc, json, sys
import longpole, polars
NUMBERS = ("arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost").split()
class Mallinfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in NUMBERS]
libc = ctypes.CDLL(None)
libc.mallinfo2.restype = Mallinfo
def kept():
    gc.collect()
    facts = libc.mallinfo2()
    return facts.uordblks + facts.hblkhd
def resident():
    for line in open("/proc/self/status"):
        if line.startswith("VmRSS"):
            return int(line.split()[1]) * 1024
longpole.read_trace(b'{"traceEvents":[]}').events
before, resident_before = kept(), resident()
trace = longpole.read_trace(sys.argv[1], args=sys.argv[2], threads=int(sys.argv[3]))
read, resident_read = kept(), resident()
events = trace.events
# Columns of texts without nulls are what polars allocates anew, with an allocator of its own.
texts = [column for column in events if column.dtype == polars.Categorical]
own = sum(column.estimated_size() for column in texts if not column.null_count())
framed, resident_framed = kept(), resident()
print(json.dumps({
    "event": (read - before) / trace.n_events,
    "row": (framed - read + own) / len(events),
    "resident_event": (resident_read - resident_before) / trace.n_events,
    "resident_row": (resident_framed - resident_read) / len(events),
}))
"""


@dataclass(frozen=True)
class Reading:
    """One reader on one file: medians."""

    cpu_s: float
    peak_bytes: float


def main() -> None:
    """Read the plain and the compressed file with every reader that is installed."""
    wanted = sys.argv[1:] or list(READERS)
    plain, packed = files()
    if wanted == ["memory"]:
        show_memory(plain)
        return
    n_bytes = plain.stat().st_size
    print(
        f"{plain.name}: {n_bytes / 1e9:.3f} GB of JSON, {packed.stat().st_size / 1e6:.0f} MB as gz"
    )
    for path in (plain, packed):
        readings = {name: read(name, path) for name in wanted if is_installed(name)}
        show(path, n_bytes, readings)


def files() -> tuple[Path, Path]:
    """Make the trace, or take the one that is named, and its compressed twin."""
    named = os.environ.get("LONGPOLE_BENCH_TRACE")
    folder = Path(tempfile.gettempdir()) / f"longpole-bench-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if named and named.endswith(".gz"):
        plain, packed = folder / Path(named).stem, Path(named)
        with gzip.open(packed) as source, plain.open("wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
        return plain, packed
    plain = Path(named) if named else folder / f"training-{MEGABYTES}.json"
    if not plain.exists():
        workloads = Path(__file__).with_name("workloads.py")
        size = ["--megabytes", str(MEGABYTES)]
        command = [sys.executable, str(workloads), "training", *size, "-o", str(plain)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    packed = folder / f"{plain.name}.gz"
    if not packed.exists():
        with plain.open("rb") as source, gzip.open(packed, "wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
    return plain, packed


def is_installed(name: str) -> bool:
    """Whether the package of a reader can be imported."""
    packages = {"orjson": "orjson", "msgspec, typed": "msgspec", "HTA": "hta"}
    return importlib.util.find_spec(packages.get(name, "json")) is not None


def read(name: str, path: Path) -> Reading:
    """Run a reader in processes of its own."""
    repeats = REPEATS if name.startswith("longpole") else SLOW_REPEATS
    program = FRAME + READERS[name] + REPORT
    found = []
    for _ in range(repeats):
        command = [sys.executable, "-c", program, str(path)]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        found.append(json.loads(printed.splitlines()[-1]))
    return Reading(
        statistics.median(each["cpu_s"] for each in found),
        statistics.median(each["peak_bytes"] for each in found),
    )


def show_memory(path: Path) -> None:
    """Print what a trace keeps in memory, for each choice of arguments and threads."""
    print(f"{'arguments, threads':24}{'B/event':>9}{'frame B/row':>13}{'resident':>10}{'frame':>8}")
    for arguments in ("ids", "default"):
        for threads in (1, 2):
            command = [sys.executable, "-c", KEPT, str(path), arguments, str(threads)]
            printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            kept = json.loads(printed)
            print(
                f"{arguments + ', ' + str(threads):24}{kept['event']:9.1f}{kept['row']:13.1f}"
                f"{kept['resident_event']:10.1f}{kept['resident_row']:8.1f}"
            )


def show(path: Path, n_bytes: int, readings: dict[str, Reading]) -> None:
    """Print a line a reader, with its ratio to the first one."""
    first = next(iter(readings.values()))
    print(f"\n{path.name}")
    print(f"{'reader':26}{'CPU s':>9}{'GB/s':>8}{'peak GB':>9}{'GB/GB':>8}{'CPU':>8}{'memory':>9}")
    for name, reading in readings.items():
        print(
            f"{name:26}{reading.cpu_s:9.2f}{n_bytes / 1e9 / reading.cpu_s:8.2f}"
            f"{reading.peak_bytes / 1e9:9.2f}{reading.peak_bytes / n_bytes:8.2f}"
            f"{reading.cpu_s / first.cpu_s:7.1f}x{reading.peak_bytes / first.peak_bytes:8.1f}x"
        )


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main()
