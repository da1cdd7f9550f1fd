"""What the questions about a trace cost after it was read, beside HTA in the same run.

Each question is asked of the whole trace once, in one process, in the order of the table. CPU is
user and system time, the first question pays for what all share. HolisticTraceAnalysis, where it
is installed (`pip install traceinsight`), has read the same file before; its plots are turned
off. The file is made by `workloads.py`; `LONGPOLE_BENCH_TRACE` names another,
`LONGPOLE_BENCH_MEGABYTES` a size.

    python benches/bench_tables.py [--no-hta]
"""

from __future__ import annotations

import importlib.util
import logging
import os
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import longpole
from longpole.cli.answer.table import tables
from longpole.tables.catalogue import PATH_TABLES, words_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

MEGABYTES = int(os.environ.get("LONGPOLE_BENCH_MEGABYTES", "500"))
RANK = 0

# The question of HTA that a table answers.
HTA: dict[str, Callable[[Any], Any]] = {
    "breakdown": lambda hta: hta.get_temporal_breakdown(visualize=False),
    "breakdown overlap": lambda hta: hta.get_comm_comp_overlap(visualize=False),
    "kernels": lambda hta: hta.get_gpu_kernel_breakdown(visualize=False),
    "idle": lambda hta: hta.get_idle_time_breakdown(visualize=False, show_idle_interval_stats=True),
    "annotations": lambda hta: hta.get_gpu_user_annotation_breakdown(
        use_gpu_annotation=False, visualize=False
    ),
    "kernels annotation": lambda hta: hta.get_gpu_kernels_with_user_annotations(RANK),
    "launches": lambda hta: hta.get_cuda_kernel_launch_stats(visualize=False),
    "queue time": lambda hta: hta.get_queue_length_time_series(),
    "queue": lambda hta: hta.get_queue_length_summary(),
    "copies time": lambda hta: hta.get_memory_bw_time_series(),
    "copies": lambda hta: hta.get_memory_bw_summary(),
}


def main() -> None:
    """Read the trace, ask every question, then the same of HTA."""
    path = _file()
    n_bytes = path.stat().st_size
    import_s, empty = _cpu_s(_warm_up)
    print(f"{path.name}: {n_bytes / 1e6:.0f} MB; imports and first use of polars {import_s:.2f} s")
    before = _peak()
    load_s, trace = _cpu_s(lambda: longpole.read_trace(path))
    loaded = _peak()
    print(f"read: {load_s:.2f} CPU s, {(loaded - before) / 1e6:.0f} MB")
    window = longpole.choose_window(trace, whole=True)
    ours = {name: _asked(name, trace, window) for name in _views()}
    total_s = sum(ours.values())
    growth = (_peak() - loaded) / n_bytes
    print(f"all {len(ours)} tables: {total_s:.2f} CPU s, {total_s / load_s:.2f} of reading;")
    print(f"peak {growth:.3f} GB for each GB of the file above reading")
    has_hta = importlib.util.find_spec("hta") is not None and "--no-hta" not in sys.argv
    theirs = _hta(path) if has_hta else {}
    print(f"\n{'table':22}{'CPU s':>9}{'HTA s':>9}{'ratio':>8}")
    for name, cpu_s in sorted(ours.items(), key=lambda item: -item[1]):
        other_s = theirs.get(name)
        ratio = "" if other_s is None else f"{other_s:9.3f}{other_s / max(cpu_s, 1e-4):7.0f}x"
        print(f"{name:22}{cpu_s:9.3f}{ratio}")
    del empty


def _asked(name: str, trace: longpole.Trace, window: longpole.Window | None) -> float:
    cpu_s, _ = _cpu_s(lambda: _answer(name, trace, window))
    return cpu_s


def _answer(name: str, trace: longpole.Trace, window: longpole.Window | None = None) -> object:
    table, _, by = name.partition(" ")
    return getattr(longpole, table)(trace, window, **({"by": by} if by else {}))


def _views() -> list[str]:
    """Return each table, and each of its other kinds of rows."""
    names = [name for name in tables() if name not in PATH_TABLES]
    return [f"{name} {by}".strip() for name in names for by in ("", *words_of(name)[1:])]


def _warm_up() -> pl.DataFrame:
    """Ask every question of a trace of nothing, which imports what it needs."""
    trace = longpole.read_trace(b'{"traceEvents": []}')
    for name in _views():
        _answer(name, trace)
    return trace.events


def _hta(path: Path) -> dict[str, float]:
    logging.disable(logging.ERROR)
    warnings.simplefilter("ignore")
    from hta.trace_analysis import TraceAnalysis

    load_s, analysis = _cpu_s(lambda: TraceAnalysis(trace_files={RANK: str(path)}))
    print(f"HTA reads it in {load_s:.1f} CPU s")
    found = {}
    for name, ask in HTA.items():
        try:
            found[name], _ = _cpu_s(lambda ask=ask: ask(analysis))
        except Exception as error:  # noqa: BLE001 (what it cannot answer is said)
            print(f"HTA fails at {name}: {type(error).__name__}: {error}")
    return found


def _file() -> Path:
    named = os.environ.get("LONGPOLE_BENCH_TRACE")
    if named:
        return Path(named)
    from workloads import write_large

    folder = Path(tempfile.gettempdir()) / f"longpole-bench-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / f"large-{MEGABYTES}.json"
    if not path.exists():
        write_large(path, MEGABYTES)
    return path


def _cpu_s(call: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.process_time()
    found = call()
    return time.process_time() - begun, found


def _peak() -> int:
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    [line] = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    main()
