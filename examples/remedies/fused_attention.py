"""Causal attention that trains with its scores written out, and fused."""

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

REMEDY = "fused_attention"


def slow() -> Step:
    """Write the scores, mask them, and take their softmax."""

    def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        scores = query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5
        length = scores.shape[-1]
        mask = torch.ones(length, length, device=scores.device, dtype=torch.bool).triu(1)
        return torch.softmax(scores.masked_fill(mask, float("-inf")), -1) @ value

    return _training(attend)


def mended() -> Step:
    """Compute it in one kernel."""
    return _training(partial(functional.scaled_dot_product_attention, is_causal=True))


def _training(attend: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Step:
    shape = (size(12, 2), size(8, 2), size(1024, 16), size(96, 8))
    query, key, value = (random(*shape, dtype=torch.bfloat16).requires_grad_() for _ in range(3))

    def step() -> tuple[Tensor, ...]:
        result = attend(query, key, value)
        return torch.autograd.grad(result.float().square().sum(), (query, key, value))

    return step
