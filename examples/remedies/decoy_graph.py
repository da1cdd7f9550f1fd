"""200 kernels that a graph replays already."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from models import random, replayed, size

if TYPE_CHECKING:
    from models import Step

NOT = ("cuda_graph", "small_batch")


def program() -> Step:
    """Replay the kernels."""
    left, right = random(size(512, 8), 512), random(512, 512)

    def work() -> torch.Tensor:
        result = left
        for _ in range(100):
            result = torch.relu(result @ right) * 0.1
        return result

    return replayed(work)
