"""An embedding that is transposed in memory before each product, and as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from models import random, size

if TYPE_CHECKING:
    from collections.abc import Callable

    from models import Step

REMEDY = "layout_copies"


def slow() -> Step:
    """Transpose the table in memory first."""
    return _logits(lambda hidden, table: hidden @ table.t().contiguous())


def mended() -> Step:
    """Pass the transposed table to the product as it is."""
    return _logits(lambda hidden, table: hidden @ table.t())


def _logits(product: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> Step:
    width = size(1024, 32)
    hidden = random(size(256, 8), width, dtype=torch.bfloat16)
    tables = [random(size(49_152, 64), width, dtype=torch.bfloat16) for _ in range(4)]

    @torch.no_grad()
    def step() -> list[torch.Tensor]:
        return [product(hidden, table) for table in tables]

    return step
