"""Linear layers that train in float32, and in bfloat16 with casts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from models import mlp, random, size, training

if TYPE_CHECKING:
    from models import Step

REMEDY = "tensor_cores"


def slow() -> Step:
    """Train in float32."""
    return _training(None)


def mended() -> Step:
    """Train in bfloat16."""
    return _training(torch.bfloat16)


def _training(dtype: torch.dtype | None) -> Step:
    width = size(2048, 32)
    model, batch = mlp(width, 4), random(size(6144, 8), width)
    return training(model, torch.optim.SGD(model.parameters(), fused=True), lambda: batch, dtype)
