"""Requests of changing sizes that empty the cache of the allocator, and keep it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from models import DEVICE, convolutions, random, size

if TYPE_CHECKING:
    from models import Step

REMEDY = "allocation"


def slow() -> Step:
    """Answer requests, and give the memory back after each."""
    return _serving(is_emptied=True)


def mended() -> Step:
    """Answer requests, and keep the memory."""
    return _serving(is_emptied=False)


def _serving(*, is_emptied: bool) -> Step:
    model = convolutions(size(64, 4), 8).eval().bfloat16()
    sides = [size(side, 16) for side in (96, 128, 160)]
    pictures = [random(16, 3, side, side, dtype=torch.bfloat16) for side in sides]

    @torch.no_grad()
    def step() -> None:
        for batch in pictures:
            model(batch)
            if is_emptied and DEVICE == "cuda":
                torch.cuda.empty_cache()

    return step
