"""Builds small traces by hand, to test code that reads traces.

Times are in microseconds, as Kineto writes them, and spans are pairs of start and end.

Examples
--------
>>> from longpole.testing import TraceBuilder
>>> trace = (
...     TraceBuilder()
...     .step(1, (0, 100))
...     .operator("aten::mm", (0, 20))
...     .launch("gemm", call=(5, 10), work=(12, 60))
...     .read()
... )
>>> trace.launches.select("call", "operator", "delay_ns").row(0)
(2, 1, 2000)
"""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any, Self

from longpole.formats.read import read_trace

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.trace.trace import Trace

__all__ = ["Span", "TraceBuilder"]

Span = tuple[float, float]
"""Start and end of an event, in microseconds."""

_PROCESS = 100


class TraceBuilder:
    """A Kineto trace built by method calls; methods that add something return the builder.

    Events are in the file in the order of the calls, so the first has row 0.

    Parameters
    ----------
    process
        Process of the threads, as written by the profiler.
    """

    def __init__(self, process: int = _PROCESS) -> None:
        self._process = process
        self._events: list[dict[str, Any]] = []
        self._header: dict[str, Any] = {"schemaVersion": 1}
        self._correlation = 0

    def header(self, **fields: Any) -> Self:
        """Set fields other than the events, such as `distributedInfo={"rank": 3}`."""
        self._header |= fields
        return self

    def event(self, **fields: Any) -> Self:
        """Add an event unchanged."""
        self._events.append(fields)
        return self

    def step(self, number: int, span: Span, *, thread: int = 1) -> Self:
        """Add the annotation of a profiler step."""
        return self.annotation(f"ProfilerStep#{number}", span, thread=thread)

    def annotation(self, name: str, span: Span, *, thread: int = 1) -> Self:
        """Add a named range on a thread."""
        return self._on_thread("user_annotation", name, span, thread, {})

    def operator(self, name: str, span: Span, *, thread: int = 1, **args: Any) -> Self:
        """Add an operator on a thread."""
        return self._on_thread("cpu_op", name, span, thread, args)

    def python(self, name: str, span: Span, *, thread: int = 1) -> Self:
        """Add a Python function."""
        return self._on_thread("python_function", name, span, thread, {})

    def call(self, name: str, span: Span, *, thread: int = 1, correlation: int = 0) -> Self:
        """Add a runtime API call."""
        return self._on_thread("cuda_runtime", name, span, thread, {"correlation": correlation})

    def kernel(self, name: str, span: Span, **place: int) -> Self:
        """Add a kernel; `place` may have `device`, `stream` and `correlation`."""
        return self._on_device("kernel", name, span, **place)

    def copy(self, name: str, span: Span, **place: int) -> Self:
        """Add a memcpy; `place` as for `kernel`, and `bytes`."""
        return self._on_device("gpu_memcpy", name, span, **place)

    def fill(self, name: str, span: Span, **place: int) -> Self:
        """Add a memset; `place` as for `kernel`."""
        return self._on_device("gpu_memset", name, span, **place)

    def synchronization(self, name: str, span: Span, **place: int) -> Self:
        """Add a synchronization record on a device; `place` as for `kernel`."""
        return self._on_device("cuda_sync", name, span, **place)

    def launch(
        self,
        name: str,
        *,
        call: Span,
        work: Span,
        by: str = "cudaLaunchKernel",
        thread: int = 1,
        device: int = 0,
        stream: int = 7,
        n_bytes: int | None = None,
    ) -> Self:
        """Add a call and the activity it launched: a memcpy or memset if the name says so.

        `n_bytes` is the size of a memcpy.
        """
        self._correlation += 1
        self.call(by, call, thread=thread, correlation=self._correlation)
        place = {"device": device, "stream": stream, "correlation": self._correlation}
        if name.startswith("Memcpy"):
            return self.copy(name, work, **place, **({} if n_bytes is None else {"bytes": n_bytes}))
        if name.startswith("Memset"):
            return self.fill(name, work, **place)
        return self.kernel(name, work, **place)

    def to_bytes(self, *, compress: bool = False) -> bytes:
        """Return the bytes of the file, plain or gzip."""
        text = json.dumps({**self._header, "traceEvents": self._events}).encode()
        return gzip.compress(text, mtime=0) if compress else text

    def write(self, path: Path) -> Path:
        """Write the file, as gzip if its name ends in `.gz`; return its path."""
        path.write_bytes(self.to_bytes(compress=path.suffix == ".gz"))
        return path

    def read(self, **options: Any) -> Trace:
        """Read the trace, with the options of `longpole.read_trace`."""
        return read_trace(self.to_bytes(), **options)

    def _on_thread(
        self, category: str, name: str, span: Span, thread: int, args: dict[str, Any]
    ) -> Self:
        return self._complete(category, name, span, (self._process, thread), args)

    def _on_device(
        self,
        category: str,
        name: str,
        span: Span,
        *,
        device: int = 0,
        stream: int = 7,
        correlation: int = 0,
        **args: int,
    ) -> Self:
        args = {"device": device, "stream": stream, "correlation": correlation, **args}
        return self._complete(category, name, span, (device, stream), args)

    def _complete(
        self, category: str, name: str, span: Span, place: tuple[int, int], args: dict[str, Any]
    ) -> Self:
        start_us, end_us = span
        return self.event(
            ph="X",
            cat=category,
            name=name,
            pid=place[0],
            tid=place[1],
            ts=start_us,
            dur=round(end_us - start_us, 3),
            args=args,
        )
