"""A wait after each small layer, which also prevents a graph, and a round trip."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from models import DEVICE, mlp, random, replayed, size

if TYPE_CHECKING:
    from collections.abc import Collection

    from models import Step

REMEDIES = ("blocking_calls", "cuda_graph", "round_trip")


def made(mended: Collection[str]) -> Step:
    """Return a step in which some reasons are mended."""
    width = size(256, 16)
    layers, batch = mlp(width, 40).bfloat16(), random(size(512, 8), width, dtype=torch.bfloat16)
    is_graph = {"cuda_graph", "blocking_calls"} <= {*mended} and DEVICE == "cuda"
    is_waiting = "blocking_calls" not in mended and DEVICE == "cuda"

    @torch.no_grad()
    def work() -> torch.Tensor:
        result = batch
        for layer in layers:
            result = layer(result)
            if is_waiting:
                torch.cuda.synchronize()
        return result

    run = work
    if is_graph:
        kept = work()
        replay = replayed(lambda: kept.copy_(work()))

        def run() -> torch.Tensor:
            replay()
            return kept

    @torch.no_grad()
    def step() -> torch.Tensor:
        scores = run().float().sum(-1)
        if "round_trip" in mended:
            return torch.argsort(scores)
        return torch.from_numpy(np.argsort(scores.cpu().numpy())).to(DEVICE)

    return step
