"""Sums of many rows into 16 groups, by index and as a product."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from models import DEVICE, random, size

if TYPE_CHECKING:
    from models import Step

REMEDY = "contended_atomics"

GROUPS = 16


def slow() -> Step:
    """Add each row to its group."""
    rows, groups = _rows()

    def step() -> torch.Tensor:
        sums = torch.zeros(GROUPS, rows.shape[1], device=DEVICE)
        return sums.index_add_(0, groups, rows)

    return step


def mended() -> Step:
    """Multiply by a matrix that has a one for the group of each row."""
    rows, groups = _rows()
    places = torch.arange(GROUPS, device=DEVICE)

    def step() -> torch.Tensor:
        return (groups[None] == places[:, None]).float() @ rows

    return step


def _rows() -> tuple[torch.Tensor, torch.Tensor]:
    rows = random(size(1_000_000, 1000), 64)
    return rows, torch.randint(GROUPS, rows.shape[:1], device=DEVICE)
