"""Batches that four workers have ready in time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from models import DEVICE, random, size, training
from torch import nn
from torch.utils.data import DataLoader, Dataset

if TYPE_CHECKING:
    from models import Step

NOT = ("loader_workers", "loader_prefetch")


class Numbers(Dataset[torch.Tensor]):
    """Vectors that are made at once."""

    def __len__(self) -> int:
        """Return how many there are."""
        return 1 << 20

    def __getitem__(self, number: int) -> torch.Tensor:
        """Make one."""
        return torch.full((1024,), float(number))


def program() -> Step:
    """Train a model that takes longer than the batches do."""
    loader = DataLoader(
        Numbers(), batch_size=64, num_workers=4, prefetch_factor=8, persistent_workers=True
    )
    batches = iter(loader)
    model = nn.Sequential(nn.Linear(1024, size(8192, 32)), nn.Linear(size(8192, 32), 1024))
    optimizer = torch.optim.SGD(model.to(DEVICE).parameters(), lr=1e-6)
    matrix = random(size(6144, 32), size(6144, 32))

    def batch() -> torch.Tensor:
        return next(batches).to(DEVICE) + (matrix @ matrix)[0, :1]

    return training(model, optimizer, batch)
