"""Traces whose shape asks much of a program: deep nesting, one instant, one id, many places.

Each shape is a function from a size to the events of a trace, as an iterator of JSON texts, so
that a large trace is never held whole. `write` makes a file of one.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pathlib import Path

Shape = Callable[[int], Iterator[str]]

_HOST: Final = 100
_DEVICE: Final = 0


def _event(category: str, name: str, start: float, duration: float, **rest: Any) -> str:
    place = {"pid": _HOST, "tid": 1} | {key: rest.pop(key) for key in ("pid", "tid") if key in rest}
    event = {"ph": "X", "cat": category, "name": name, "ts": start, "dur": duration, **place}
    return json.dumps(event | ({"args": rest} if rest else {}))


def _kernel(start: float, duration: float, correlation: int, stream: int = 7) -> str:
    place = {"pid": _DEVICE, "tid": stream, "device": 0, "stream": stream}
    return _event("kernel", "gemm", start, duration, correlation=correlation, **place)


def _launch(start: float, correlation: int, thread: int = 1) -> str:
    call = "cudaLaunchKernel"
    return _event("cuda_runtime", call, start, 0.5, tid=thread, correlation=correlation)


def nested_operators(n: int) -> Iterator[str]:
    """Yield operators, each inside the one before."""
    for depth in range(n):
        yield _event("cpu_op", "aten::op", depth, 2 * n - 2 * depth)


def nested_python(n: int) -> Iterator[str]:
    """Yield Python functions, each inside the one before; the innermost launches a kernel."""
    for depth in range(n):
        yield _event("python_function", f"a.py({depth % 50}): f", depth, 3 * n - 2 * depth)
    yield _launch(n + 1, 1)
    yield _kernel(n + 2, n, 1)


def one_instant(n: int) -> Iterator[str]:
    """Yield operators that begin and end at the same time."""
    for _ in range(n):
        yield _event("cpu_op", "aten::op", 5, 3)


def one_correlation(n: int) -> Iterator[str]:
    """Yield launches and kernels that all have one correlation id."""
    for number in range(n // 2):
        yield _launch(2 * number, 7)
        yield _kernel(2 * number + 1, 0.5, 7)


def many_streams(n: int) -> Iterator[str]:
    """Yield kernels, each on a stream of its own."""
    for number in range(n // 2):
        yield _launch(2 * number, number + 1)
        yield _kernel(2 * number + 1, 3, number + 1, stream=number + 7)


def many_threads(n: int) -> Iterator[str]:
    """Yield launches, each on a thread of its own."""
    for number in range(n // 2):
        yield _launch(2 * number, number + 1, thread=number + 10)
        yield _kernel(2 * number + 1, 1, number + 1)


def overlapping_kernels(n: int) -> Iterator[str]:
    """Yield kernels of one stream that all run until the end."""
    for number in range(n // 2):
        yield _launch(number, number + 1)
        yield _kernel(number + 0.6, 2 * n - number, number + 1)


def waiting_calls(n: int) -> Iterator[str]:
    """Yield a call that waits for the device behind each launch, on many streams."""
    for number in range(n // 3):
        yield _launch(10 * number, number + 1)
        yield _kernel(10 * number + 1, 5, number + 1, stream=number % 100 + 7)
        yield _event("cuda_runtime", "cudaDeviceSynchronize", 10 * number + 2, 5)


def one_flow(n: int) -> Iterator[str]:
    """Yield arrows that all have one id."""
    for number in range(n):
        flow = {"ph": "sf"[number % 2], "cat": "fwdbwd", "name": "fwdbwd", "id": 1}
        yield json.dumps(flow | {"pid": _HOST, "tid": 1 + number % 2, "ts": number})
    yield from one_instant(10)


def crossing_operators(n: int) -> Iterator[str]:
    """Yield operators that begin inside the one before and end outside it."""
    for number in range(n):
        yield _event("cpu_op", "aten::op", number, n)


def long_names(n: int) -> Iterator[str]:
    """Yield a few names of a size that grows."""
    for number in range(4):
        yield _event("cpu_op", chr(97 + number) * (n * 20), 10 * number, 5)


def long_argument(n: int) -> Iterator[str]:
    """Yield one argument that is most of the file."""
    yield _event("cpu_op", "aten::op", 0, 5, note="x" * (n * 100))
    yield _event("cpu_op", "aten::op", 5, 5)


def many_steps(n: int) -> Iterator[str]:
    """Yield steps of three events each."""
    for number in range(n // 3):
        start = 10 * number
        yield _event("user_annotation", f"ProfilerStep#{number}", start, 9)
        yield _launch(start + 1, number + 1)
        yield _kernel(start + 2, 6, number + 1)


def ordinary(n: int) -> Iterator[str]:
    """Yield operators that each launch a kernel: what the others are compared with."""
    for number in range(n // 3):
        start = 10 * number
        yield _event("cpu_op", f"aten::op{number % 40}", start, 9)
        yield _launch(start + 1, number + 1)
        yield _kernel(start + 2, 6, number + 1)


SHAPES: Final[dict[str, Shape]] = {
    shape.__name__: shape
    for shape in (
        ordinary,
        nested_operators,
        nested_python,
        one_instant,
        one_correlation,
        many_streams,
        many_threads,
        overlapping_kernels,
        crossing_operators,
        waiting_calls,
        one_flow,
        many_steps,
        long_names,
        long_argument,
    )
}


def write(shape: str, n: int, path: Path) -> Path:
    """Write a trace of about `n` events of a shape; gzip where the name ends so."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt", encoding="utf-8") as file:
        file.write('{"schemaVersion": 1, "traceEvents": [\n')
        file.writelines(
            f"{',' if number else ''}{event}\n" for number, event in enumerate(SHAPES[shape](n))
        )
        file.write("]}\n")
    return path
