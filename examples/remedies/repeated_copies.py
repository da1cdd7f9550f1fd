"""A table of positions that is copied in every step, and kept on the GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from models import DEVICE, encoder, size

if TYPE_CHECKING:
    from collections.abc import Callable

    from models import Step

REMEDY = "repeated_copies"


def slow() -> Step:
    """Copy the same table in every step."""
    host = _table()
    return _inference(lambda: host.to(DEVICE, non_blocking=True))


def mended() -> Step:
    """Copy it once."""
    table = _table().to(DEVICE)
    return _inference(lambda: table)


def _table() -> torch.Tensor:
    table = torch.randn(size(64, 2), size(256, 8), size(512, 64))
    return table.pin_memory() if DEVICE == "cuda" else table


def _inference(table: Callable[[], torch.Tensor]) -> Step:
    model = encoder(size(512, 64), 1).eval().bfloat16()
    inputs = torch.zeros(size(64, 2), size(256, 8), size(512, 64), device=DEVICE).bfloat16()

    @torch.no_grad()
    def step() -> torch.Tensor:
        return model(inputs + table().bfloat16())

    return step
