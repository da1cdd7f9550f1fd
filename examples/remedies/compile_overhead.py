"""A model that is compiled anew for every length, and once for all."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import torch
from models import mlp, random, size

if TYPE_CHECKING:
    from models import Step

REMEDY = "compile_overhead"


def slow() -> Step:
    """Compile for each length."""
    return _serving(dynamic=False)


def mended() -> Step:
    """Compile for any length."""
    return _serving(dynamic=True)


def _serving(*, dynamic: bool) -> Step:
    width = size(512, 32)
    model = mlp(width, 6)
    lengths = count(64)
    torch.compiler.reset()
    torch._dynamo.config.recompile_limit = 10_000  # noqa: SLF001 - it has no public name
    torch._dynamo.config.accumulated_recompile_limit = 10_000  # noqa: SLF001
    compiled = torch.compile(model, backend="eager", dynamic=dynamic)

    @torch.no_grad()
    def step() -> torch.Tensor:
        return compiled(random(next(lengths), width))

    return step
