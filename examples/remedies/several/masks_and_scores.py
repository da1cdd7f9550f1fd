"""Masks that Python makes and copies one by one, for attention over written scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from models import DEVICE, random, size
from torch.nn.functional import scaled_dot_product_attention

if TYPE_CHECKING:
    from collections.abc import Collection

    from models import Step

REMEDIES = ("fused_attention", "small_copies")


def made(mended: Collection[str]) -> Step:
    """Return a step in which some reasons are mended."""
    length = size(1024, 16)
    query, key, value = (random(8, size(16, 2), length, 64, dtype=torch.bfloat16) for _ in range(3))
    lengths = [length - number for number in range(size(48, 4))]

    @torch.no_grad()
    def step() -> torch.Tensor:
        if "small_copies" in mended:
            ends = torch.arange(length, length - len(lengths), -1, device=DEVICE).sum()
        else:
            ends = sum(torch.tensor(one).to(DEVICE) for one in lengths)
        if "fused_attention" in mended:
            result = scaled_dot_product_attention(query, key, value)
        else:
            scores = query @ key.transpose(-1, -2) / 8
            result = scores.float().softmax(-1).bfloat16() @ value
        return result.sum() + ends

    return step
