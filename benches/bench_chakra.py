"""CPU time and memory of linking an execution trace and writing a Chakra graph.

The workload is a pair of an execution trace and a Kineto trace, repeated with fresh ids, one
copy behind the other in time, so that the cost can be seen to grow with the size and no faster.

    python benches/bench_chakra.py --et et.json.gz --kineto kineto.json.gz --copies 1 4 16
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_MEASURED = "--measured"


def main() -> None:
    """Print the cost of each number of copies."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--et", required=True, type=Path)
    parser.add_argument("--kineto", required=True, type=Path)
    parser.add_argument("--copies", nargs="+", type=int, default=[1, 4, 16])
    arguments = parser.parse_args()
    execution, trace = _read(arguments.et), _read(arguments.kineto)
    print("copies  nodes  events  read_s  link_s  write_s  total_s  peak_MB")
    for copies in arguments.copies:
        with tempfile.TemporaryDirectory() as folder:
            _repeat_execution(execution, copies, Path(folder) / "et.json")
            _repeat_trace(trace, copies, Path(folder) / "kineto.json")
            command = [sys.executable, __file__, _MEASURED, folder]
            print(copies, subprocess.check_output(command, text=True).strip(), flush=True)


def _read(path: Path) -> dict:
    data = path.read_bytes()
    return json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)


def _repeat_execution(document: dict, copies: int, path: Path) -> None:
    """Write the nodes again and again; processes, threads and tensors stay what they are."""
    nodes = document["nodes"]
    step = max(node["id"] for node in nodes) + 1
    rf_step = max(_rf_id(node) for node in nodes) + 1
    roots = {node["id"] for node in nodes if _rf_id(node) == 0}
    with path.open("w", encoding="utf-8") as out:
        head = {key: value for key, value in document.items() if key != "nodes"}
        out.write(json.dumps(head)[:-1] + ', "nodes": [')
        for copy in range(copies):
            for node in nodes:
                if node["id"] in roots and copy:
                    continue
                out.write(",\n" if copy or node is not nodes[0] else "\n")
                out.write(json.dumps(_moved_node(node, copy * step, copy * rf_step, roots)))
        out.write("\n]}")


def _rf_id(node: dict) -> int:
    return next(one["value"] for one in node["attrs"] if one["name"] == "rf_id")


def _moved_node(node: dict, by: int, rf_by: int, roots: set[int]) -> dict:
    moved = dict(node)
    if node["id"] not in roots:
        moved["id"] = node["id"] + by
        moved["attrs"] = [
            {**one, "value": one["value"] + rf_by} if one["name"] == "rf_id" else one
            for one in node["attrs"]
        ]
    if node["ctrl_deps"] not in roots:
        moved["ctrl_deps"] = node["ctrl_deps"] + by
    return moved


def _repeat_trace(document: dict, copies: int, path: Path) -> None:
    timed = [event for event in document["traceEvents"] if "ts" in event]
    start = min(event["ts"] for event in timed)
    end = max(event["ts"] + event.get("dur", 0) for event in timed)
    keys = ("Record function id", "External id", "correlation")
    steps = {key: 1 + max(_number(event, key) for event in timed) for key in keys}
    with path.open("w", encoding="utf-8") as out:
        head = {key: value for key, value in document.items() if key != "traceEvents"}
        out.write(json.dumps(head)[:-1] + ', "traceEvents": [')
        for copy in range(copies):
            for place, event in enumerate(timed):
                moved = {**event, "ts": event["ts"] + copy * (end - start + 1)}
                if "args" in event:
                    moved["args"] = {
                        key: value + copy * steps[key] if key in steps and value else value
                        for key, value in event["args"].items()
                    }
                out.write(",\n" if copy or place else "\n")
                out.write(json.dumps(moved))
        out.write("\n]}")


def _number(event: dict, key: str) -> int:
    value = event.get("args", {}).get(key, 0)
    return value if isinstance(value, int) else 0


def measured(folder: Path) -> None:
    """Link one pair and write it, and print what that took."""
    from longpole import chakra, link_execution_trace, read_execution_trace, read_trace

    times = [time.process_time()]
    execution = read_execution_trace(folder / "et.json")
    trace = read_trace(folder / "kineto.json")
    times.append(time.process_time())
    linked = link_execution_trace(execution, trace)
    times.append(time.process_time())
    chakra.write_et_plus(linked, folder / "et_plus.json")
    chakra.write_chakra(linked, folder / "rank.0.et")
    times.append(time.process_time())
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024
    parts = [f"{after - before:.2f}" for before, after in itertools.pairwise(times)]
    print(len(execution), trace.n_events, *parts, f"{times[-1] - times[0]:.2f} {peak_mb:.0f}")


if __name__ == "__main__":
    if sys.argv[1:2] == [_MEASURED]:
        measured(Path(sys.argv[2]))
    else:
        main()
