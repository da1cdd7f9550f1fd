"""The launches of graphs whose kernels have no operators, although captures are known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longpole.trace.captures import unmatched
from longpole.words.wording import count, listing

if TYPE_CHECKING:
    from longpole.trace.trace import Trace


def unmatched_sentence(trace: Trace) -> str | None:
    """Return a sentence about launches of graphs that match no capture, if there are any."""
    found = unmatched(trace)
    if found is None:
        return None
    sizes = listing([str(size) for size in found.sizes])
    captured = f" the captures are of batches of {sizes}" if sizes else " no capture is alike"
    batch = f", the largest batch is {found.largest}" if found.largest is not None else ""
    return (
        f"{count(found.launches, 'launch', 'launches')} of graphs matched no capture, so their "
        f"kernels have no operators:{captured}{batch}."
    )
