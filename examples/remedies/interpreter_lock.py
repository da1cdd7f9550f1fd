"""A thread that compresses text in Python while another one launches, and neither."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import torch
from models import mlp, random, size

if TYPE_CHECKING:
    from models import Step

REMEDY = "interpreter_lock"


def slow() -> Step:
    """Answer while a thread of the same process counts words."""
    work = _inference()

    def step() -> None:
        is_over = threading.Event()
        thread = threading.Thread(target=_count_words, args=(is_over,))
        thread.start()
        work()
        is_over.set()
        thread.join()

    return step


def mended() -> Step:
    """Answer while nothing else runs in the process."""
    return _inference()


def _count_words(is_over: threading.Event) -> None:
    while not is_over.is_set():
        counts: dict[int, int] = {}
        for number in range(2000):
            counts[number % 97] = counts.get(number % 97, 0) + 1


def _inference() -> Step:
    width = size(1024, 32)
    layers = mlp(width, 6)[::2]
    batch = random(8, 64, width)

    @torch.no_grad()
    def step() -> torch.Tensor:
        result = batch
        for layer in layers:
            result = layer(result.transpose(0, 1).reshape(64, 8, width)).view(8, 64, width)
        return result

    return step
