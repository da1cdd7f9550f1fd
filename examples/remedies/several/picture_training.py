"""Pictures made by the training thread, and an optimizer that loops over parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from models import DEVICE, convolutions, size, training
from torch.utils.data import DataLoader, Dataset

if TYPE_CHECKING:
    from collections.abc import Collection

    from models import Step

REMEDIES = ("loader_workers", "optimizer_loop")


def made(mended: Collection[str]) -> Step:
    """Return a step in which some reasons are mended."""
    workers = size(8, 2) if "loader_workers" in mended else 0
    how = {"persistent_workers": True, "prefetch_factor": 4} if workers else {}
    loader = DataLoader(Pictures(), batch_size=size(16, 2), num_workers=workers, **how)
    batches = iter(loader)
    model = convolutions(size(32, 4), size(40, 4))
    is_fused = "optimizer_loop" in mended
    optimizer = torch.optim.AdamW(model.parameters(), foreach=is_fused)
    return training(model, optimizer, lambda: next(batches).to(DEVICE))


class Pictures(Dataset[torch.Tensor]):
    """Pictures that take about a millisecond each."""

    def __len__(self) -> int:
        """Return how many there are."""
        return 1 << 20

    def __getitem__(self, number: int) -> torch.Tensor:
        """Make one, blurred along both axes."""
        picture = np.random.default_rng(number).random((3, 64, 64), dtype=np.float32)
        for axis in (1, 2):
            picture = (picture + np.roll(picture, 1, axis) + np.roll(picture, -1, axis)) / 3
        return torch.from_numpy(picture)
