"""A report in Python while the GPU waits, in every step and in none."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING

import torch
from models import mlp, random, size, training

if TYPE_CHECKING:
    from models import Step

REMEDY = "python_between_operators"


def slow() -> Step:
    """Count pairs of letters after each step."""
    work = _training()

    def step() -> int:
        text = f"loss {work().item():.6f} " * 1500  # type: ignore[attr-defined]
        return len(Counter(itertools.pairwise(text)))

    return step


def mended() -> Step:
    """Train without a report."""
    return _training()


def _training() -> Step:
    width = size(1024, 32)
    model, batch = mlp(width, 10), random(size(8192, 4), width)
    return training(model, torch.optim.SGD(model.parameters(), fused=True), lambda: batch)
