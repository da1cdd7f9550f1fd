"""Batches from pageable memory for float32 products on the vector units."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from models import DEVICE, mlp, size

if TYPE_CHECKING:
    from collections.abc import Collection

    from models import Step

REMEDIES = ("pinned_copies", "tensor_cores")


def made(mended: Collection[str]) -> Step:
    """Return a step in which some reasons are mended."""
    model = mlp(size(2048, 16), 6)
    batch = torch.randn(size(8192, 8), size(2048, 16))
    is_pinned = "pinned_copies" in mended and DEVICE == "cuda"
    source = batch.pin_memory() if is_pinned else batch
    precision = "high" if "tensor_cores" in mended else "highest"

    @torch.no_grad()
    def step() -> torch.Tensor:
        torch.set_float32_matmul_precision(precision)
        return model(source.to(DEVICE, non_blocking=is_pinned))

    return step
