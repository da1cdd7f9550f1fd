"""Adam with one kernel for many parameters: no loop to save."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from models import mlp, random, size, training

if TYPE_CHECKING:
    from models import Step

NOT = ("optimizer_loop",)


def program() -> Step:
    """Train with a fused optimizer that launches many kernels all the same."""
    model, batch = mlp(size(512, 32), 30), random(size(1024, 4), size(512, 32))
    return training(model, torch.optim.Adam(model.parameters(), foreach=True), lambda: batch)
