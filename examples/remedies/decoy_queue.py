"""A host far ahead of the GPU: its launches wait for a place in the queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from models import random, size

if TYPE_CHECKING:
    from models import Step

NOT = ("cuda_graph", "host_threads", "blocking_calls")


def program() -> Step:
    """Launch 1500 products of 40 us: the host is done long before the GPU."""
    matrix = random(size(3072, 16), size(3072, 16), dtype=torch.bfloat16)

    @torch.no_grad()
    def step() -> None:
        for _ in range(450):
            torch.mm(matrix, matrix)

    return step
