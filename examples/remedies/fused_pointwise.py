"""An activation written out in nine operators, and as one."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import torch
from models import random, size
from torch.nn import functional

if TYPE_CHECKING:
    from collections.abc import Callable

    from models import Step
    from torch import Tensor

REMEDY = "fused_pointwise"


def slow() -> Step:
    """Write out the approximation of GELU."""

    def activate(inputs: Tensor) -> Tensor:
        inner = 0.7978845608 * (inputs + 0.044715 * inputs * inputs * inputs)
        return 0.5 * inputs * (1 + torch.tanh(inner))

    return _activations(activate)


def mended() -> Step:
    """Call the operator."""
    return _activations(partial(functional.gelu, approximate="tanh"))


def _activations(activate: Callable[[Tensor], Tensor]) -> Step:
    inputs = random(size(8192, 8), size(6144, 32), dtype=torch.bfloat16)

    @torch.no_grad()
    def step() -> Tensor:
        return activate(activate(inputs))

    return step
