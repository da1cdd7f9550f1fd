"""A wait for the GPU after each layer, and norms that are read one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from models import DEVICE, mlp, random, size

if TYPE_CHECKING:
    from collections.abc import Collection

    from models import Step

REMEDIES = ("blocking_calls", "small_copies")


def made(mended: Collection[str]) -> Step:
    """Return a step in which some reasons are mended."""
    width = size(1024, 32)
    layers, batch = mlp(width, 20).bfloat16(), random(size(4096, 8), width).bfloat16()
    is_waiting = "blocking_calls" not in mended and DEVICE == "cuda"

    @torch.no_grad()
    def step() -> list[float]:
        result, norms = batch, []
        for layer in layers:
            result = layer(result)
            norms.append(result.norm())
            if is_waiting:
                torch.cuda.synchronize()
        if "small_copies" in mended:
            return torch.stack(norms).tolist()
        return [norm.item() for norm in norms]

    return step
