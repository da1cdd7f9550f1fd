"""Products and convolutions of float32 that use TF32."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from models import convolutions, random, size

if TYPE_CHECKING:
    from models import Step

NOT = ("tensor_cores",)


def program() -> Step:
    """Compute both with TF32."""
    model, pictures = convolutions(size(128, 4), 3).eval(), random(8, 3, size(96, 8), size(96, 8))
    matrix = random(size(4096, 32), size(4096, 32))

    @torch.no_grad()
    def step() -> None:
        before, torch.backends.cuda.matmul.allow_tf32 = torch.backends.cuda.matmul.allow_tf32, True
        matrix @ matrix
        torch.backends.cuda.matmul.allow_tf32 = before
        model(pictures)

    return step
