"""Scores that the host sorts, and tables that are transposed in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from models import DEVICE, random, size

if TYPE_CHECKING:
    from collections.abc import Collection

    from models import Step

REMEDIES = ("layout_copies", "recurring_call")


def made(mended: Collection[str]) -> Step:
    """Return a step in which some reasons are mended."""
    width = size(1024, 32)
    hidden = random(size(256, 8), width, dtype=torch.bfloat16)
    tables = [random(size(49_152, 64), width, dtype=torch.bfloat16) for _ in range(4)]
    where = DEVICE if "recurring_call" in mended else "cpu"
    history = torch.randn(size(200_000, 4000), device=where)

    @torch.no_grad()
    def step() -> torch.Tensor:
        for table in tables:
            hidden @ (table.t() if "layout_copies" in mended else table.t().contiguous())
        return torch.sort(history).values[history.numel() // 2]

    return step
