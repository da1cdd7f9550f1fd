"""Adam that updates 24 tensors one by one, and all at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from models import mlp, random, size, training

if TYPE_CHECKING:
    from models import Step

REMEDY = "optimizer_loop"


def slow() -> Step:
    """Train with a loop over the parameters."""
    return _training(foreach=False)


def mended() -> Step:
    """Train with one kernel for many parameters."""
    return _training(fused=True)


def _training(**how: bool) -> Step:
    model, batch = mlp(size(768, 32), 12), random(size(2048, 4), size(768, 32))
    return training(model, torch.optim.Adam(model.parameters(), lr=1e-4, **how), lambda: batch)
