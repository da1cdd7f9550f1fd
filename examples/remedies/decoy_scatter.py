"""Sums of rows into as many groups, which hardly meet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from models import DEVICE, random, size

if TYPE_CHECKING:
    from models import Step

NOT = ("contended_atomics",)


def program() -> Step:
    """Add rows to rows in any order."""
    rows = random(size(500_000, 1000), 128)
    places = torch.randperm(rows.shape[0], device=DEVICE)

    def step() -> torch.Tensor:
        return torch.zeros_like(rows).index_add_(0, places, rows)

    return step
