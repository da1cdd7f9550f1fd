"""A quantile of scores that is sorted for on the host in every step, and on the GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from models import DEVICE, mlp, random, size

if TYPE_CHECKING:
    from models import Step

REMEDY = "recurring_call"


def slow() -> Step:
    """Sort a history of scores on the host."""
    return _watched("cpu")


def mended() -> Step:
    """Sort it on the GPU."""
    return _watched(DEVICE)


def _watched(where: str) -> Step:
    width = size(1024, 32)
    model, batch = mlp(width, 8).bfloat16(), random(4096, width, dtype=torch.bfloat16)
    history = torch.randn(size(400_000, 4000), device=where)

    @torch.no_grad()
    def step() -> torch.Tensor:
        model(batch)
        return torch.sort(history).values[history.numel() // 2]

    return step
