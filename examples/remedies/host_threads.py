"""A launching thread that shares its processor with others, and one that does not."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import torch
from models import mlp, random, size

if TYPE_CHECKING:
    from models import Step

REMEDY = "host_threads"

_computing: list[subprocess.Popen[bytes]] = []


def slow() -> Step:
    """Launch on a processor on which two other processes compute."""
    everywhere = os.sched_getaffinity(0)
    crowded = {max(everywhere)}
    for _ in range(2):
        other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        _computing.append(other)
        os.sched_setaffinity(other.pid, crowded)
    work = _inference()

    def step() -> None:
        os.sched_setaffinity(0, crowded)
        work()
        os.sched_setaffinity(0, everywhere)

    return step


def mended() -> Step:
    """Launch on any processor."""
    return _inference()


def close() -> None:
    """End the other processes."""
    while _computing:
        other = _computing.pop()
        other.kill()
        other.wait()


def _inference() -> Step:
    model, batch = mlp(size(256, 32), 100).bfloat16(), random(64, size(256, 32)).bfloat16()

    @torch.no_grad()
    def step() -> torch.Tensor:
        return model(model(batch))

    return step
