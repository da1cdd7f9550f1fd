"""A table of positions that is copied in every layer, and kept on the GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from models import DEVICE, mlp, size

if TYPE_CHECKING:
    from collections.abc import Callable

    from models import Step

REMEDY = "redundant_copies"


def slow() -> Step:
    """Copy the same table in every layer."""
    host = _table()
    return _inference(lambda: host.to(DEVICE, non_blocking=True))


def mended() -> Step:
    """Copy it once."""
    table = _table().to(DEVICE)
    return _inference(lambda: table)


def _table() -> torch.Tensor:
    table = torch.randn(size(4096, 8), size(1024, 32)).bfloat16()
    return table.pin_memory() if DEVICE == "cuda" else table


def _inference(table: Callable[[], torch.Tensor]) -> Step:
    layers = [mlp(size(1024, 32), 2).bfloat16() for _ in range(8)]
    batch = torch.zeros(size(4096, 8), size(1024, 32), device=DEVICE).bfloat16()

    @torch.no_grad()
    def step() -> torch.Tensor:
        result = batch
        for layer in layers:
            result = layer(result + table())
        return result

    return step
