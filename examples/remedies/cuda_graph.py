"""A small transformer whose kernels are launched one by one, and replayed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from models import encoder, random, replayed, size

if TYPE_CHECKING:
    from models import Step

REMEDY = "cuda_graph"


def slow() -> Step:
    """Launch the kernels one by one."""
    return _inference()


def mended() -> Step:
    """Replay them with one call."""
    return replayed(_inference())


def _inference() -> Step:
    width = size(256, 64)
    model, batch = encoder(width, size(12, 1)).eval().bfloat16(), random(4, 64, width).bfloat16()

    @torch.no_grad()
    def step() -> torch.Tensor:
        result = batch
        for layer in model.layers:
            result = result + layer.self_attn(result, result, result, need_weights=False)[0]
            result = result + layer.linear2(torch.relu(layer.linear1(layer.norm2(result))))
        return result

    return step
