"""Pixels without a label, left out by a mask, and by `torch.where`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from models import convolutions, random, size

if TYPE_CHECKING:
    from collections.abc import Callable

    from models import Step

REMEDY = "boolean_indexing"

SCALES = 6


def slow() -> Step:
    """Choose the pixels that have a label: the host waits for their number."""
    return _losses(lambda error, mask: error[mask].mean())


def mended() -> Step:
    """Compute on all pixels."""
    return _losses(lambda error, mask: torch.where(mask, error, 0).sum() / mask.sum())


def _losses(loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> Step:
    side = size(192, 16)
    model = convolutions(size(24, 4), 2).eval().bfloat16()
    pictures = random(8, 3, side, side, dtype=torch.bfloat16)
    mask = random(8, size(24, 4), side, side) > 0

    @torch.no_grad()
    def step() -> list[torch.Tensor]:
        found = model(pictures)
        return [loss((found - scale).square(), mask) for scale in range(SCALES)]

    return step
