"""How fast the trace viewer's JSON of XProf is read, beside the same events in JSON of Kineto.

One simulated program is written in both formats, with the events that both have. CPU seconds of one
thread, the least of several turns.

    python benches/bench_formats.py [STEPS]
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

import workloads  # noqa: F401 - finds the oracles
from longpole import read_trace
from oracles.simulator import simulate
from oracles.simulator.xprof import ON_DEVICE, ON_HOST, trace_viewer

TURNS = 7


def main() -> None:
    """Print the times and their ratio."""
    run = simulate("training", seed=1, steps=int(sys.argv[1]) if len(sys.argv) > 1 else 1_000)
    with tempfile.TemporaryDirectory() as folder:
        kineto, xprof = (Path(folder, name) for name in ("kineto.json", "xprof.trace.json"))
        run.write(kineto)
        document = json.loads(kineto.read_text(encoding="utf-8"))
        is_in_both = ("", *ON_HOST, *ON_DEVICE).__contains__
        events = document["traceEvents"]
        document["traceEvents"] = [it for it in events if is_in_both(it.get("cat", ""))]
        kineto.write_text(json.dumps(document, separators=(",", ":")), encoding="utf-8")
        xprof.write_bytes(trace_viewer(run.events, repeated=False))
        turns = [[cpu(path) for path in (kineto, xprof)] for _ in range(TURNS)]
        least = [min(times) for times in zip(*turns, strict=True)]
        print(f"{'':24}{'MB':>8}{'CPU ms':>8}{'ns/event':>10}{'ratio':>7}")
        for path, cpu_s in zip((kineto, xprof), least, strict=True):
            n_events = read_trace(path).events.height
            print(
                f"{path.name:24}{path.stat().st_size / 1e6:8.1f}{1e3 * cpu_s:8.0f}"
                f"{1e9 * cpu_s / n_events:10.0f}{cpu_s / least[0]:6.2f}x"
            )


def cpu(path: Path) -> float:
    """Give the CPU seconds of reading a file with one thread."""
    begin = time.process_time()
    read_trace(path, threads=1)
    return time.process_time() - begin


if __name__ == "__main__":
    main()
