"""Segmentation maps that go to pageable memory, and into a pinned buffer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from models import DEVICE, convolutions, random, size

if TYPE_CHECKING:
    from models import Step

REMEDY = "pinned_copies"


def slow() -> Step:
    """Copy to new pageable memory, and wait."""
    model, pictures = _model_and_pictures()

    @torch.no_grad()
    def step() -> torch.Tensor:
        return model(pictures).cpu()

    return step


def mended() -> Step:
    """Copy into a pinned buffer, and wait for the copy of the step before only."""
    model, pictures = _model_and_pictures()
    with torch.no_grad():
        buffers = [torch.empty_like(model(pictures), device="cpu") for _ in range(2)]
    if DEVICE == "cuda":
        buffers = [buffer.pin_memory() for buffer in buffers]
    events = [torch.cuda.Event() for _ in buffers]
    number = 0

    @torch.no_grad()
    def step() -> torch.Tensor:
        nonlocal number
        number = 1 - number
        events[number].synchronize()
        buffers[number].copy_(model(pictures), non_blocking=True)
        events[number].record()
        return buffers[1 - number]

    return step


def _model_and_pictures() -> tuple[torch.nn.Module, torch.Tensor]:
    model = convolutions(size(32, 4), 4).eval().bfloat16()
    return model, random(8, 3, size(256, 16), size(256, 16), dtype=torch.bfloat16)
