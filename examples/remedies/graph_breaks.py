"""A compiled model that reads a value after each layer, and one that does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from models import mlp, random, size

if TYPE_CHECKING:
    from collections.abc import Callable

    from models import Step

REMEDY = "graph_breaks"


def slow() -> Step:
    """Read a value on the host after each layer: every one is a graph of its own."""
    return _inference(lambda result: result * min(max(result[0, 0].item(), 0.5), 1.5))


def mended() -> Step:
    """Keep the value on the GPU: all layers are one graph."""
    return _inference(lambda result: result * result[0, 0].clamp(0.5, 1.5))


def _inference(scaled: Callable[[torch.Tensor], torch.Tensor]) -> Step:
    width = size(512, 32)
    first, second, third, fourth, fifth, last = mlp(width, 6)[::2]
    batch = random(size(512, 8), width)

    # One line a layer: where a loop breaks, its whole function is not compiled.
    def forward(inputs: torch.Tensor) -> torch.Tensor:
        inputs = scaled(torch.relu(first(inputs)))
        inputs = scaled(torch.relu(second(inputs)))
        inputs = scaled(torch.relu(third(inputs)))
        inputs = scaled(torch.relu(fourth(inputs)))
        inputs = scaled(torch.relu(fifth(inputs)))
        return last(inputs)

    torch.compiler.reset()
    compiled = torch.compile(forward)

    @torch.no_grad()
    def step() -> torch.Tensor:
        return compiled(batch)

    return step
