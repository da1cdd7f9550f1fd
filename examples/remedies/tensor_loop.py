"""An average of 96 weights and biases that a loop updates, and that one call updates."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import torch
from models import mlp, random, size, training

if TYPE_CHECKING:
    from models import Step

REMEDY = "tensor_loop"
DECAY = 0.999


def slow() -> Step:
    """Update the average of each tensor on its own."""
    step, average, current = _training()

    @torch.no_grad()
    def update() -> None:
        step()
        for mean, value in zip(average, current, strict=True):
            mean.mul_(DECAY).add_(value, alpha=1 - DECAY)

    return update


def mended() -> Step:
    """Update all averages with one operator."""
    step, average, current = _training()

    @torch.no_grad()
    def update() -> None:
        step()
        torch._foreach_lerp_(average, current, 1 - DECAY)

    return update


def _training() -> tuple[Step, list[torch.Tensor], list[torch.Tensor]]:
    model = mlp(size(512, 32), 48)
    batch = random(size(512, 4), size(512, 32))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, fused=True)
    average = [*copy.deepcopy(model).parameters()]
    step = torch.enable_grad()(training(model, optimizer, lambda: batch))
    return step, average, [*model.parameters()]
