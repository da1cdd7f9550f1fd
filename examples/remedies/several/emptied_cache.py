"""A cache of memory that is emptied in every step, between many small launches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from models import DEVICE, mlp, random, replayed, size

if TYPE_CHECKING:
    from collections.abc import Collection

    from models import Step

REMEDIES = ("allocation", "cuda_graph")


def made(mended: Collection[str]) -> Step:
    """Return a step in which some reasons are mended."""
    width = size(512, 16)
    model, batch = mlp(width, 80).bfloat16(), random(size(512, 8), width, dtype=torch.bfloat16)
    is_emptied = "allocation" not in mended and DEVICE == "cuda"

    @torch.no_grad()
    def work() -> torch.Tensor:
        return model(batch)

    run = replayed(work) if "cuda_graph" in mended and DEVICE == "cuda" else work

    def step() -> None:
        run()
        if is_emptied:
            spare = torch.empty(size(32 << 20, 1024), device=DEVICE)
            del spare
            torch.cuda.empty_cache()

    return step
