"""Time reading a large Ascend timeline against `json.load`, in one run.

The timeline is a small one repeated with later stamps and other numbers. Run it with
`python benches/bench_ascend.py [TRACE_VIEW.JSON] [MEGABYTES]`; without a file, a made-up step with
the mix of events of a real one is repeated.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from longpole.formats.read import read_trace

_STEP_NS = 200_000_000
_ROUNDS = 3


def main() -> None:
    """Print how long both take, and the ratio."""
    events = _events(Path(sys.argv[1])) if len(sys.argv) > 1 else _made_up()
    n_bytes = int(float(sys.argv[2] if len(sys.argv) > 2 else 63) * 1e6)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace_view.json"
        path.write_text(_repeated(events, n_bytes))
        ours = min(_spent(lambda: read_trace(path)) for _ in range(_ROUNDS))
        theirs = min(_spent(lambda: json.loads(path.read_text())) for _ in range(_ROUNDS))
        size = path.stat().st_size / 1e6
    print(f"{size:.0f} MB: longpole {ours:.2f} CPU s, json {theirs:.2f} CPU s")
    print(f"longpole takes {ours / theirs:.2f} of the time of json")


def _spent(action: Any) -> float:
    start = time.process_time()
    action()
    return time.process_time() - start


def _events(path: Path) -> list[dict[str, Any]]:
    document = json.loads(path.read_text())
    return document if isinstance(document, list) else document["traceEvents"]


def _repeated(events: list[dict[str, Any]], n_bytes: int) -> str:
    """Repeat the events, each time a step later, until they take so many bytes."""
    parts: list[str] = []
    length = 0
    turn = 0
    while length < n_bytes:
        shifted = [_shifted(event, turn) for event in events if turn == 0 or event["ph"] != "M"]
        part = json.dumps(shifted)[1:-1]
        parts.append(part)
        length += len(part)
        turn += 1
    return f"[{', '.join(parts)}]"


def _shifted(event: dict[str, Any], turn: int) -> dict[str, Any]:
    if event["ph"] == "M":
        return event
    whole, _, fraction = str(event["ts"]).partition(".")
    stamp = int(whole) * 1000 + int(fraction.ljust(3, "0")[:3]) + turn * _STEP_NS
    moved = event | {"ts": f"{stamp // 1000}.{stamp % 1000:03d}"}
    if event["name"].startswith("ProfilerStep#"):
        moved["name"] = f"ProfilerStep#{turn}"
    numbers = ("connection_id", "correlation_id")
    args = event.get("args") or {}
    changed = {key: args[key] + turn * 100_000 for key in numbers if key in args}
    return moved | ({"args": args | changed} if changed else {})


def _made_up() -> list[dict[str, Any]]:
    """Give a step of 2,000 operators with their calls, tasks and counters."""
    base, program = 1_736_408_883_000_000, 4000
    device, cann, memory = (program << 10 | place << 5 for place in (13, 7, 17))
    found: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}}
        for pid, name in ((program, "Python"), (cann, "CANN"), (device, "Ascend Hardware"))
    ]
    stream = {"name": "Stream 2"}
    found.append({"ph": "M", "name": "thread_name", "pid": device, "tid": 2, "args": stream})
    for number in range(2000):
        stamp = f"{base + number * 90}.{number % 1000:03d}"
        host = {"ph": "X", "ts": stamp, "tid": program}
        task = {"Model Id": 4294967295, "Task Type": "AI_CORE", "Task Id": number}
        shapes = {"Sequence number": number, "Fwd thread id": 0, "Input Dims": "32,64;\r\n64"}
        found += [
            host
            | {"name": "aten::mm", "pid": program, "dur": 80.5, "cat": "cpu_op", "args": shapes},
            host
            | {"name": "Node@launch", "pid": cann, "dur": 5, "args": {"connection_id": number}},
            {"ph": "X", "name": "MatMul", "ts": stamp, "pid": device, "tid": 2, "dur": 7.00125}
            | {"args": task | {"connection_id": number}},
            {"ph": "C", "name": "HBM 0/Read", "ts": stamp, "pid": memory, "args": {"MB/s": number}},
        ]
    return found


if __name__ == "__main__":
    main()
