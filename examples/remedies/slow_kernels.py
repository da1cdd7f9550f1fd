"""Running sums of few long rows at once, and of each row alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from models import random, size

if TYPE_CHECKING:
    from collections.abc import Callable

    from models import Step

REMEDY = "slow_kernels"


def slow() -> Step:
    """Sum along all rows with one kernel, of which each row is a block."""
    return _sums(lambda rows: torch.cumsum(rows, -1))


def mended() -> Step:
    """Sum along one row after another, each with the whole device."""
    return _sums(lambda rows: torch.stack([torch.cumsum(row, -1) for row in rows]))


def _sums(summed: Callable[[torch.Tensor], torch.Tensor]) -> Step:
    rows = random(4, size(16_000_000, 1000))

    def step() -> torch.Tensor:
        return summed(rows * 0.5 + rows)

    return step
