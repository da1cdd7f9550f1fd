"""A softmax between two products that is no attention."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from models import random, size

if TYPE_CHECKING:
    from models import Step

NOT = ("fused_attention",)


def program() -> Step:
    """Mix 8192 memories by how well they fit."""
    queries = random(size(4096, 8), size(1024, 32), dtype=torch.bfloat16)
    memories = random(size(8192, 16), size(1024, 32), dtype=torch.bfloat16)

    @torch.no_grad()
    def step() -> torch.Tensor:
        return torch.softmax(queries @ memories.t(), -1) @ memories

    return step
