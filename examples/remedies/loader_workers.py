"""Pictures that numpy makes on the thread that trains, and in eight workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from models import DEVICE, convolutions, size, training
from torch.utils.data import DataLoader, Dataset

if TYPE_CHECKING:
    from models import Step

REMEDY = "loader_workers"


class Pictures(Dataset[torch.Tensor]):
    """Pictures that take a millisecond or two each."""

    def __len__(self) -> int:
        """Return how many there are."""
        return 1 << 20

    def __getitem__(self, number: int) -> torch.Tensor:
        """Make one, blurred and turned."""
        picture = np.random.default_rng(number).random((3, 96, 96), dtype=np.float32)
        for axis in (1, 2):
            picture = (picture + np.roll(picture, 1, axis) + np.roll(picture, -1, axis)) / 3
        return torch.from_numpy(np.ascontiguousarray(picture[:, ::-1]))


def slow() -> Step:
    """Train on pictures that the training thread makes."""
    return _training(num_workers=0)


def mended() -> Step:
    """Train on pictures that workers make ahead of time."""
    return _training(num_workers=size(8, 2), prefetch_factor=4, persistent_workers=True)


def _training(**how: int) -> Step:
    loader = DataLoader(Pictures(), batch_size=size(32, 2), pin_memory=DEVICE == "cuda", **how)
    batches = iter(loader)
    model = convolutions(size(48, 4), 6)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, fused=True)
    return training(model, optimizer, lambda: next(batches).to(DEVICE, non_blocking=True))
