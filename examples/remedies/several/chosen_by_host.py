"""Many small launches, and candidates that numpy chooses on the host."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from models import DEVICE, mlp, random, replayed, size

if TYPE_CHECKING:
    from collections.abc import Collection

    from models import Step

REMEDIES = ("cuda_graph", "round_trip")


def made(mended: Collection[str]) -> Step:
    """Return a step in which some reasons are mended."""
    width = size(256, 16)
    model, batch = mlp(width, 60).bfloat16(), random(size(512, 8), width, dtype=torch.bfloat16)

    @torch.no_grad()
    def work() -> torch.Tensor:
        return model(batch)

    run = work
    if "cuda_graph" in mended and DEVICE == "cuda":
        result = work()
        replay = replayed(lambda: result.copy_(work()))

        def run() -> torch.Tensor:
            replay()
            return result

    @torch.no_grad()
    def step() -> torch.Tensor:
        scores = run().float().sum(-1)
        if "round_trip" in mended:
            return torch.argsort(scores, descending=True)
        order = np.argsort(-scores.cpu().numpy())
        return torch.from_numpy(order).to(DEVICE)

    return step
