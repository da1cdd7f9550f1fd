"""The launches of graphs whose kernels have no operators, although captures are known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from longpole.remedies.gains import WORTH_SAYING
from longpole.trace.captures import has_captured_graphs, unmatched
from longpole.trace.sweeps import activities
from longpole.words.wording import count, listing, share

if TYPE_CHECKING:
    from longpole.trace.trace import Trace


def unmatched_sentence(trace: Trace) -> str | None:
    """Return a sentence about launches of graphs that match no capture, if there are any."""
    found = unmatched(trace)
    if found is None:
        return _uncaptured(trace)
    sizes = listing([str(size) for size in found.sizes])
    captured = f" the captures are of batches of {sizes}" if sizes else " no capture is alike"
    batch = f", the largest batch is {found.largest}" if found.largest is not None else ""
    return (
        f"{count(found.launches, 'launch', 'launches')} of graphs matched no capture, so their "
        f"kernels have no operators:{captured}{batch}."
    )


def _uncaptured(trace: Trace) -> str | None:
    """Return a sentence about graphs without a capture, if they take much time of the devices."""
    if not trace.core.profiler.startswith("torch"):  # others record no operators of a capture
        return None
    launching = trace.api_roles.filter(pl.col("role").cast(pl.String) == "graph_launch")
    if launching.is_empty() or has_captured_graphs(trace):
        return None
    works = activities(trace)
    of_graphs = works.join(launching.select(call="event"), on="call", how="semi")
    total_ns, graphs_ns = (int(it["duration_ns"].sum() or 0) for it in (works, of_graphs))
    if graphs_ns < max(WORTH_SAYING * total_ns, 1):
        return None
    return (
        f"Graphs ran for {share(graphs_ns / total_ns)} of the time of all GPU activities of the "
        "trace. Their kernels have no operators without a trace of the capture (--capture-trace)."
    )
