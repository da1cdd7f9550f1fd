"""Text for a log, values that are read one by one, and a loop over parameters."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import torch
from models import mlp, random, size, training

if TYPE_CHECKING:
    from collections.abc import Collection

    from models import Step

REMEDIES = ("optimizer_loop", "python_between_operators", "small_copies")


def made(mended: Collection[str]) -> Step:
    """Return a step in which some reasons are mended."""
    width = size(1024, 32)
    model, batch = mlp(width, 24), random(size(2048, 4), width)
    is_fused = "optimizer_loop" in mended
    optimizer = torch.optim.AdamW(model.parameters(), foreach=is_fused)
    train = training(model, optimizer, lambda: batch)
    log = [{"number": number, "loss": number / 7} for number in range(size(8_000, 100))]

    def step() -> object:
        loss = train()
        norms = [parameter.detach().norm() for parameter in model.parameters()]
        if "small_copies" in mended:
            values = torch.stack(norms).tolist()
        else:
            values = [norm.item() for norm in norms]
        if "python_between_operators" not in mended:
            json.dumps([*log, {"loss": values[0]}])
        return loss

    return step
