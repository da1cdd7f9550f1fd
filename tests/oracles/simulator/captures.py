"""The trace of the capture of a graph: operators around calls that launch nothing."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

from .program import Frame, Replay

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_PROCESS, _THREAD = 31_415, 31_415
_OPERATORS = (
    ("aten::linear", "aten::addmm"),
    ("aten::gelu",),
    ("aten::layer_norm", "aten::native_layer_norm"),
    ("aten::scaled_dot_product_attention", "aten::_flash_attention_forward"),
    ("aten::add",),
)


def replayed(items: Sequence[Any]) -> Iterator[Replay]:
    """Find the graphs that a program launches, each once."""
    found: list[Replay] = []
    for item in items:
        inner = [item] if isinstance(item, Replay) else []
        inner += replayed(item.body) if isinstance(item, Frame) else []
        found += [graph for graph in inner if graph not in found]
    yield from found


def captured_operators(graph: Replay, seed: int) -> list[tuple[str, ...]]:
    """Draw the operators around each node, the outermost first, in the order of the capture."""
    dice = random.Random(f"captured {seed}")  # noqa: S311 - no secret
    return [dice.choice(_OPERATORS) for _ in graph.nodes]


def write_capture(path: Path, graphs: Sequence[Replay], seed: int) -> Path:
    """Write the trace of a run that captures graphs, one after the other; give its path.

    As with real captures, calls leave no work on a device, and tell no numbers of nodes.
    """
    events: list[dict[str, Any]] = []
    now_us = 100.0
    for graph in graphs:
        now_us = _add(events, "cuda_runtime", "cudaStreamBeginCapture", now_us, 5)
        for operators in captured_operators(graph, seed):
            for depth, name in enumerate(operators):
                _add(events, "cpu_op", name, now_us + depth, 20 - 2 * depth)
            _add(events, "cuda_runtime", "cudaLaunchKernel", now_us + 8, 4)
            now_us += 25
        now_us = _add(events, "cuda_runtime", "cudaStreamEndCapture", now_us, 30)
        now_us = _add(events, "cuda_runtime", "cudaGraphInstantiateWithFlags", now_us, 50)
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return path


def _add(
    events: list[dict[str, Any]], category: str, name: str, start_us: float, lasts_us: float
) -> float:
    where = {"ph": "X", "cat": category, "pid": _PROCESS, "tid": _THREAD}
    number = len(events) + 1
    args = {"External id": number} if category == "cpu_op" else {"correlation": number}
    events.append({**where, "name": name, "ts": start_us, "dur": lasts_us, "args": args})
    return start_us + lasts_us + 1
