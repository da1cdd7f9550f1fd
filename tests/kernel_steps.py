"""Traces of steps that kernels limit, for tests of what can be changed about kernels."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from longpole.testing import TraceBuilder

A100 = "NVIDIA A100-SXM4-80GB"


class Kernel(NamedTuple):
    """An operator with the kernel that it launches and how long that takes, in us."""

    operator: str
    name: str
    duration_us: float
    inputs: dict[str, str]


def kernel(operator: str, name: str, duration_us: float, **inputs: str) -> Kernel:
    """Return an operator with a kernel; `inputs` as `tensors` makes them."""
    return Kernel(operator, name, duration_us, inputs)


def tensors(*inputs: tuple[Any, ...], strides: list[list[int]] | None = None) -> dict[str, Any]:
    """Return the recorded inputs of an operator, of which each is its type and its shape."""
    shapes = [list(shape) for _, *shape in inputs]
    return {
        "Input Dims": json.dumps(shapes),
        "Input type": json.dumps([dtype for dtype, *_ in inputs]),
        "Input Strides": json.dumps(strides or [_dense(shape) for shape in shapes]),
        "Concrete Inputs": json.dumps(["" for _ in inputs]),
    }


def _dense(shape: list[int]) -> list[int]:
    steps, step = [], 1
    for size in reversed(shape):
        steps.insert(0, step)
        step *= size
    return steps


def steps(
    kernels: list[Kernel], device: str = A100, number: int = 4, **properties: int
) -> TraceBuilder:
    """Build steps in which the kernels run one after another, launched ahead of time."""
    memory = 85_000_000_000
    builder = TraceBuilder().header(
        deviceProperties=[{"id": 0, "name": device, "totalGlobalMem": memory, **properties}]
    )
    step_us = sum(kernel.duration_us for kernel in kernels)
    launched_us, free_us = 0.0, 100.0
    for count in range(number):
        first_us = launched_us
        for one in kernels:
            builder.operator(one.operator, (launched_us, launched_us + 9), **one.inputs)
            work = (free_us, free_us + one.duration_us)
            builder.launch(one.name, call=(launched_us + 2, launched_us + 8), work=work)
            launched_us, free_us = launched_us + 10, work[1]
        end_us = free_us + 5
        builder.call("cudaDeviceSynchronize", (launched_us, end_us))
        launched_us, free_us = end_us + 5, end_us + 20
        builder.step(count, (first_us, launched_us))
    assert step_us > 1_000, "longer than what the host takes"
    return builder


def named(builder: TraceBuilder) -> list[str]:
    """List the remedies that the verdict of a trace names."""
    return [row.remedy for row in builder.read().verdict().remedies if row.gain.low > 0.005]


def replays(
    kernels: list[Kernel], device: str = A100, number: int = 4, *, n_eager: int = 0
) -> TraceBuilder:
    """Build the steps of `steps`, whose kernels are those of a graph, but for the first `n_eager`.

    `capture` builds the trace of the capture.
    """
    builder = TraceBuilder().header(
        deviceProperties=[{"id": 0, "name": device, "totalGlobalMem": 85_000_000_000}]
    )
    launched_us, free_us = 0.0, 100.0
    for count in range(number):
        first_us = launched_us
        for one in kernels[:n_eager]:
            builder.operator(one.operator, (launched_us, launched_us + 9), **one.inputs)
            work = (free_us, free_us + one.duration_us)
            builder.launch(one.name, call=(launched_us + 2, launched_us + 8), work=work)
            launched_us, free_us = launched_us + 10, work[1]
        correlation = 900_000 + count
        call = (launched_us + 2, launched_us + 8)
        builder.call("cudaGraphLaunch", call, correlation=correlation)
        launched_us += 10 * len(kernels[n_eager:])
        for one in kernels[n_eager:]:
            work = (free_us, free_us + one.duration_us)
            builder.kernel(one.name, work, correlation=correlation)
            free_us = work[1]
        end_us = free_us + 5
        builder.call("cudaDeviceSynchronize", (launched_us, end_us))
        launched_us, free_us = end_us + 5, end_us + 20
        builder.step(count, (first_us, launched_us))
    return builder


def capture(kernels: list[Kernel]) -> TraceBuilder:
    """Build the trace of the capture of the kernels as one graph."""
    builder = TraceBuilder().call("cudaStreamBeginCapture", (0, 5))
    for place, one in enumerate(kernels, 1):
        builder.operator(one.operator, (10 * place, 10 * place + 9), **one.inputs)
        call = (10 * place + 2, 10 * place + 8)
        builder.call("cudaLaunchKernel", call, correlation=place)
    end_us = 10 * len(kernels) + 20
    return builder.call("cudaStreamEndCapture", (end_us, end_us + 5))
