"""Layers that compute their activations again backward, and keep them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from models import encoder, random, size, training
from torch import nn
from torch.utils.checkpoint import checkpoint

if TYPE_CHECKING:
    from collections.abc import Callable

    from models import Step

REMEDY = "recomputation"


class Checkpointed(nn.Module):
    """Layers of which none keeps its activations."""

    def __init__(self, layers: nn.ModuleList) -> None:
        super().__init__()
        self.layers = layers

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Compute the layers, each as a checkpoint."""
        for layer in self.layers:
            inputs = checkpoint(layer, inputs, use_reentrant=False)
        return inputs


def slow() -> Step:
    """Compute the activations twice."""
    return _training(lambda model: Checkpointed(model.layers))


def mended() -> Step:
    """Keep the activations."""
    return _training(lambda model: model)


def _training(built: Callable[[nn.Module], nn.Module]) -> Step:
    width = size(1024, 64)
    model = built(encoder(width, size(4, 1)))
    batch = random(size(16, 2), size(512, 8), width)
    return training(model, torch.optim.SGD(model.parameters(), fused=True), lambda: batch)
