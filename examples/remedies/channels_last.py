"""Convolutions of 16 bit that train in NCHW, and in channels_last."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from models import convolutions, random, size, training

if TYPE_CHECKING:
    from models import Step

REMEDY = "channels_last"


def slow() -> Step:
    """Train in NCHW: kernels convert to NHWC and back."""
    return _training(torch.contiguous_format)


def mended() -> Step:
    """Train in channels_last."""
    return _training(torch.channels_last)


def _training(layout: torch.memory_format) -> Step:
    model = convolutions(size(96, 4), 5).to(memory_format=layout)
    pictures = random(32, 3, size(96, 8), size(96, 8)).to(memory_format=layout)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
    return training(model, optimizer, lambda: pictures)
