"""Models, training steps and sizes that the programs share.

Without a GPU everything is small, so that the programs can be tried.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import nn

if TYPE_CHECKING:
    from torch import Tensor

Step = Callable[[], object]
"""One step of a program."""

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def size(on_gpu: int, without: int) -> int:
    """Return a size that suits the device."""
    return on_gpu if DEVICE == "cuda" else without


def random(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return a tensor of random numbers on the device."""
    return torch.randn(*shape, device=DEVICE, dtype=dtype)


def mlp(width: int, layers: int) -> nn.Sequential:
    """Return linear layers with activations between them."""
    pairs = [(nn.Linear(width, width), nn.GELU()) for _ in range(layers)]
    return nn.Sequential(*(module for pair in pairs for module in pair)).to(DEVICE)


def convolutions(channels: int, layers: int) -> nn.Sequential:
    """Return convolutions with normalisation, for pictures of three channels."""
    modules: list[nn.Module] = [nn.Conv2d(3, channels, 3, padding=1)]
    for _ in range(layers):
        modules += [
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(inplace=True),
        ]
    return nn.Sequential(*modules).to(DEVICE)


def encoder(width: int, layers: int) -> nn.TransformerEncoder:
    """Return layers of a transformer that normalise first."""
    layer = nn.TransformerEncoderLayer(
        width, width // 64, 3 * width, dropout=0.0, batch_first=True, norm_first=True
    )
    return nn.TransformerEncoder(layer, layers, enable_nested_tensor=False).to(DEVICE)


def training(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    batch: Callable[[], Tensor],
    dtype: torch.dtype | None = torch.bfloat16,
) -> Step:
    """Return a step of training, in 16 bit unless told otherwise."""

    def step() -> Tensor:
        inputs = batch()
        with torch.autocast(DEVICE, dtype=dtype or torch.bfloat16, enabled=dtype is not None):
            loss = model(inputs).float().square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss

    return step


def replayed(work: Step) -> Step:
    """Return a step that replays what some work launches, as a CUDA graph."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay
