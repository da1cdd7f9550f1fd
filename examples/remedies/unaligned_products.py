"""Products with odd dimensions, and padded to a multiple of eight."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from models import random, size

if TYPE_CHECKING:
    from models import Step

REMEDY = "unaligned_products"


def slow() -> Step:
    """Multiply matrices of odd dimensions."""
    return _products(size(1021, 13), size(3001, 19))


def mended() -> Step:
    """Multiply padded matrices."""
    return _products(size(1024, 16), size(3008, 24))


def _products(inner: int, outer: int) -> Step:
    left = random(size(8192, 8), inner, dtype=torch.bfloat16)
    right = random(inner, outer, dtype=torch.bfloat16)

    def step() -> list[torch.Tensor]:
        return [left @ right for _ in range(8)]

    return step
