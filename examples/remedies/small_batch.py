"""Requests that are answered one at a time, and 16 together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from models import encoder, random, replayed, size

if TYPE_CHECKING:
    from models import Step

REMEDY = "small_batch"

REQUESTS = 16


def slow() -> Step:
    """Answer one request after the other, as a graph."""
    return _serving(1)


def mended() -> Step:
    """Answer all requests at once."""
    return _serving(REQUESTS)


def _serving(together: int) -> Step:
    width = size(512, 64)
    model, requests = encoder(width, size(2, 1)).eval().bfloat16(), random(REQUESTS, 32, width)
    batches = requests.bfloat16().split(together)

    @torch.no_grad()
    def work() -> list[torch.Tensor]:
        return [model.layers[0].linear2(model.layers[0].linear1(batch)) for batch in batches * 8]

    return replayed(work)
