"""Feature batches of 48 MB that come from pageable and from pinned memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from models import DEVICE, mlp, size

if TYPE_CHECKING:
    from models import Step

REMEDY = "pinned_copies"


def slow() -> Step:
    """Copy from pageable memory."""
    return _inference(torch.randn(size(12_288, 8), size(1024, 32)), non_blocking=False)


def mended() -> Step:
    """Copy from pinned memory."""
    batch = torch.randn(size(12_288, 8), size(1024, 32))
    return _inference(batch.pin_memory() if DEVICE == "cuda" else batch, non_blocking=True)


def _inference(batch: torch.Tensor, *, non_blocking: bool) -> Step:
    model = mlp(batch.shape[1], 6).bfloat16()

    @torch.no_grad()
    def step() -> torch.Tensor:
        return model(batch.to(DEVICE, non_blocking=non_blocking).bfloat16())

    return step
