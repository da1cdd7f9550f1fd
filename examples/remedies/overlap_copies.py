"""Pinned batches that are copied before each step, and during the step before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from models import DEVICE, mlp, size

if TYPE_CHECKING:
    from models import Step

REMEDY = "overlap_copies"


def slow() -> Step:
    """Copy on the stream that computes."""
    host, model = _host(), _model()

    @torch.no_grad()
    def step() -> torch.Tensor:
        return model(host.to(DEVICE, non_blocking=True))

    return step


def mended() -> Step:
    """Copy on a stream of its own, one step ahead."""
    host, model, side = _host(), _model(), torch.cuda.Stream()
    buffers = [host.to(DEVICE) for _ in range(2)]
    number = 0

    @torch.no_grad()
    def step() -> torch.Tensor:
        nonlocal number
        stream = torch.cuda.current_stream()
        stream.wait_stream(side)
        batch, number = buffers[number], 1 - number
        with torch.cuda.stream(side):
            buffers[number].copy_(host, non_blocking=True)
        result = model(batch)
        side.wait_stream(stream)
        return result

    return step


def _host() -> torch.Tensor:
    host = torch.randn(size(16_384, 8), size(2048, 32)).bfloat16()
    return host.pin_memory() if DEVICE == "cuda" else host


def _model() -> torch.nn.Module:
    return mlp(size(2048, 32), 6).bfloat16()
