"""Two streams that wait for each other after every product, and at the end only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from models import random, size

if TYPE_CHECKING:
    from models import Step

REMEDY = "stream_waits"

ROUNDS = 24


def slow() -> Step:
    """Make each stream wait for the other after every product."""
    return _branches(is_meeting=True)


def mended() -> Step:
    """Make the streams wait for each other at the end."""
    return _branches(is_meeting=False)


def _branches(*, is_meeting: bool) -> Step:
    # One is quick where the other is slow: together they take as long as the slower one each time.
    quick, slower = random(384, 384), random(384, size(6144, 384))
    factors = random(384, 384), random(slower.shape[1], 384)
    streams = torch.cuda.Stream(), torch.cuda.Stream()

    def step() -> None:
        main = torch.cuda.current_stream()
        for stream in streams:
            stream.wait_stream(main)
        for number in range(ROUNDS):
            pairs = [(quick, factors[0]), (slower, factors[1])]
            for stream, (left, right) in zip(streams, pairs[:: 1 - 2 * (number % 2)], strict=True):
                with torch.cuda.stream(stream):
                    torch.mm(left, right)
            if is_meeting:
                streams[0].wait_stream(streams[1])
                streams[1].wait_stream(streams[0])
        for stream in streams:
            main.wait_stream(stream)

    return step
