"""Convolutions of float32 with and without TF32."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from models import convolutions, random, size

if TYPE_CHECKING:
    from models import Step

REMEDY = "tensor_cores"


def slow() -> Step:
    """Compute without tensor cores."""
    return _inference(is_allowed=False)


def mended() -> Step:
    """Compute with TF32."""
    return _inference(is_allowed=True)


def _inference(*, is_allowed: bool) -> Step:
    model, pictures = convolutions(size(128, 4), 5).eval(), random(8, 3, size(96, 8), size(96, 8))

    @torch.no_grad()
    def step() -> torch.Tensor:
        before, torch.backends.cudnn.allow_tf32 = torch.backends.cudnn.allow_tf32, is_allowed
        result: torch.Tensor = model(pictures)
        torch.backends.cudnn.allow_tf32 = before
        return result

    return step
