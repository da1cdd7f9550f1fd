"""Copies to another order of four dimensions, which a product needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from models import random, size

if TYPE_CHECKING:
    from models import Step

NOT = ("layout_copies",)


def program() -> Step:
    """Split heads, multiply, and join them again."""
    inputs = random(size(32, 2), size(1024, 8), 16, 64, dtype=torch.bfloat16)
    weight = random(1024, 1024, dtype=torch.bfloat16)

    @torch.no_grad()
    def step() -> torch.Tensor:
        turned = inputs.permute(0, 2, 1, 3).contiguous().permute(0, 2, 1, 3)
        return turned.reshape(-1, 1024) @ weight

    return step
