"""Pinned batches that travel while the step before computes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from overlap_copies import mended

if TYPE_CHECKING:
    from models import Step

NOT = ("pinned_copies", "overlap_copies", "redundant_copies")


def program() -> Step:
    """Copy on a stream of its own, one step ahead."""
    return mended()
