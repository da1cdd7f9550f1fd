"""Sentences that one worker prepares too slowly, and eight."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from models import DEVICE, encoder, size, training
from torch.utils.data import DataLoader, Dataset

if TYPE_CHECKING:
    from models import Step

REMEDY = "loader_prefetch"


class Sentences(Dataset[torch.Tensor]):
    """Sentences as vectors of their words, which take a millisecond or two each."""

    def __len__(self) -> int:
        """Return how many there are."""
        return 1 << 20

    def __getitem__(self, number: int) -> torch.Tensor:
        """Make one."""
        words = [hash((number, place)) % 997 for place in range(4000)]
        counts = np.bincount(words, minlength=1024).astype(np.float32)
        return torch.from_numpy(np.stack([np.roll(counts, shift)[:256] for shift in range(128)]))


def slow() -> Step:
    """Train on sentences of one worker, which the training waits for."""
    return _training(1)


def mended() -> Step:
    """Train on sentences of eight workers, four batches ahead each."""
    return _training(size(8, 2))


def _training(workers: int) -> Step:
    loader = DataLoader(
        Sentences(),
        batch_size=size(32, 2),
        num_workers=workers,
        prefetch_factor=4,
        persistent_workers=True,
        pin_memory=DEVICE == "cuda",
    )
    batches = iter(loader)
    model = encoder(256, size(3, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    return training(model, optimizer, lambda: next(batches).to(DEVICE, non_blocking=True))
