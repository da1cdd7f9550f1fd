"""A wait for the GPU after every layer, and none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from models import DEVICE, mlp, random, size

if TYPE_CHECKING:
    from models import Step

REMEDY = "blocking_calls"


def slow() -> Step:
    """Wait after each layer."""
    return _inference(is_waiting=True)


def mended() -> Step:
    """Launch all layers at once."""
    return _inference(is_waiting=False)


def _inference(*, is_waiting: bool) -> Step:
    width = size(1024, 32)
    layers, batch = mlp(width, 20).bfloat16(), random(size(4096, 8), width).bfloat16()

    @torch.no_grad()
    def step() -> torch.Tensor:
        result = batch
        for layer in layers:
            result = layer(result)
            if is_waiting and DEVICE == "cuda":
                torch.cuda.synchronize()
        return result

    return step
