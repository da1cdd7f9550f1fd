"""How long the critical path takes from parsed tables, beside others in the same run.

CPU is user and system time of this process. networkx, where it is installed, is given the
finished graph and asked only for its longest path, the least of what is needed.
HolisticTraceAnalysis, where it is installed, has read the same file before and is asked for the
path of all profiler steps. The file is made by `workloads.py`; `LONGPOLE_BENCH_TRACE` names
another.

    python benches/bench_path.py
"""

from __future__ import annotations

import importlib.util
import os
import statistics
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import longpole
from workloads import write_large

if TYPE_CHECKING:
    from collections.abc import Callable

REPEATS = 5
MEGABYTES = 440  # a million events on threads and streams, with the arrows between them


def main() -> None:
    """Print the times of every step from tables to answers."""
    with tempfile.TemporaryDirectory() as folder:
        _compare(_file(Path(folder)))


def _compare(file: Path) -> None:
    trace = longpole.read_trace(file, args="ids")
    work_kinds = ["operator", "python", "runtime", "driver", "annotation", "kernel", "copy", "fill"]
    n_events = trace.events["kind"].cast(str).is_in(work_kinds).sum()
    print(f"{n_events:,} events that take part, of {trace.n_events:,} in the file")
    _report("tables -> path", [_cpu_s(trace.critical_path)])
    path = trace.critical_path(whole=True)
    _report("the same with its links known", [_cpu_s(anew) for anew in _graphs_anew(trace)])
    _report("path of another window", _repeated(trace.critical_path))
    _report("slack of every event", [_cpu_s(lambda: path.slack)])
    _report("what if", _repeated(lambda: path.what_if(longpole.Scale(kind="kernel", by=0.5))))
    _report("verdict", _repeated(trace.verdict))
    print(f"{path.nodes.height:,} nodes, {path.edges.height:,} edges")
    if importlib.util.find_spec("networkx"):
        _report("networkx: longest path alone", [_cpu_s(_networkx(path))])
    if importlib.util.find_spec("hta"):
        n_steps = trace.steps.height
        _report(f"HTA: critical path of {n_steps} steps", [_cpu_s(_hta(file, n_steps))])


def _file(folder: Path) -> Path:
    named = os.environ.get("LONGPOLE_BENCH_TRACE")
    if named:
        return Path(named)
    path = folder / "large.json"
    write_large(path, MEGABYTES)
    return path


def _graphs_anew(trace: longpole.Trace) -> list[Callable[[], object]]:
    """Ask for paths with patterns of their own, for each of which the graph is made anew."""
    patterns = [f"(?i)data_?loader|no such name {number}" for number in range(REPEATS)]
    return [partial(trace.critical_path, data_load=pattern) for pattern in patterns]


def _repeated(call: Callable[[], object]) -> list[float]:
    return [_cpu_s(call) for _ in range(REPEATS)]


def _cpu_s(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def _report(what: str, times_s: list[float]) -> None:
    spread = f" ({min(times_s):.3f} to {max(times_s):.3f})" if len(times_s) > 1 else ""
    print(f"{statistics.median(times_s):9.3f} s CPU  {what}{spread}")


def _networkx(path: longpole.CriticalPath) -> Callable[[], Any]:
    import networkx as nx

    graph = nx.DiGraph()
    times = path.nodes["time_ns"]
    edges = path.edges.select("source", "target")
    weights = times.gather(edges["target"]) - times.gather(edges["source"])
    graph.add_weighted_edges_from(zip(edges["source"], edges["target"], weights, strict=True))
    return lambda: nx.dag_longest_path(graph)


def _hta(file: Path, n_steps: int) -> Callable[[], Any]:
    from hta.trace_analysis import TraceAnalysis

    analysis = TraceAnalysis(trace_files={0: str(file)})
    return partial(analysis.critical_path_analysis, 0, "ProfilerStep", (0, n_steps - 1))


if __name__ == "__main__":
    main()
