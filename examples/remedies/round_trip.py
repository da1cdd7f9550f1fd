"""The best of many candidates, chosen by numpy on the host, and on the GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from models import DEVICE, mlp, random, size

if TYPE_CHECKING:
    from collections.abc import Callable

    from models import Step

REMEDY = "round_trip"

ROUNDS = 6


def slow() -> Step:
    """Choose with numpy: scores go to the host, indices come back."""

    def chosen(scores: torch.Tensor) -> torch.Tensor:
        order = np.argsort(-scores.float().cpu().numpy())
        return torch.from_numpy(order[: scores.shape[0] // 2].copy()).to(DEVICE)

    return _search(chosen)


def mended() -> Step:
    """Choose on the GPU."""
    return _search(lambda scores: torch.topk(scores, scores.shape[0] // 2).indices)


def _search(chosen: Callable[[torch.Tensor], torch.Tensor]) -> Step:
    width = size(256, 16)
    model, candidates = mlp(width, 3).bfloat16(), random(size(16_384, 256), width).bfloat16()

    @torch.no_grad()
    def step() -> torch.Tensor:
        left = candidates
        for _ in range(ROUNDS):
            scores = model(left).sum(-1)
            left = left[chosen(scores)]
        return left

    return step
