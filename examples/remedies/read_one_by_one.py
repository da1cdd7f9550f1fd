"""The norms of 48 gradients, read one by one, and together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from models import mlp, random, size, training

if TYPE_CHECKING:
    from collections.abc import Callable

    from models import Step

REMEDY = "small_copies"


def slow() -> Step:
    """Read each norm with a wait of its own."""
    return _watched(lambda norms: [norm.item() for norm in norms])


def mended() -> Step:
    """Read all norms with one wait."""
    return _watched(lambda norms: torch.stack(norms).tolist())


def _watched(read: Callable[[list[torch.Tensor]], list[float]]) -> Step:
    width = size(1024, 32)
    model, batch = mlp(width, 24), random(size(4096, 4), width)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
    train = training(model, optimizer, lambda: batch)

    def step() -> list[float]:
        train()
        return read([parameter.detach().norm() for parameter in model.parameters()])

    return step
