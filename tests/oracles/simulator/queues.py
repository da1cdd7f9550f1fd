"""Queues between host threads: who waits for what to be put or taken, and who wakes whom."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .threads import Thread


@dataclass(slots=True)
class HostQueue:
    """What is in a queue, and the threads parked before it in the order in which they came.

    An entry is only counted: a thread that wakes another is the one whose last point caused it.
    """

    n_held: int = 0
    takers: deque[Thread] = field(default_factory=deque)
    givers: deque[Thread] = field(default_factory=deque)
