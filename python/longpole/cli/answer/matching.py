"""Whether a change is about anything in a window, so that one about nothing is not silent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.critical_path import RemoveWait

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from longpole.critical_path import Change, CriticalPath
    from longpole.trace import Trace

__all__ = ["WORK", "matched"]

_WAITS: Final[Mapping[str, Sequence[str]]] = {
    "sync_return": ("sync", "sync_inside"),
    "event_wait": ("event_wait",),
    "queue_full": ("queue_full",),
}
"""The waits that can be removed, and the roles of the edges that stand for it."""

WORK: Final = (
    *("operator", "runtime", "host_gap", "data_loading", "kernel", "copy", "communication"),
)
"""What a change is about that names no kind."""


def matched(change: Change, path: CriticalPath, trace: Trace) -> int:
    """Count the edges that a change is about: by the event whose time it is, or that waits."""
    import polars as pl

    if isinstance(change, RemoveWait):
        chosen = path.edges.filter(pl.col("role").cast(pl.String).is_in(_WAITS[change.kind]))
        waiting = path.nodes.select("event", target="node")
        chosen = chosen.select("target").join(waiting, on="target")
    else:
        kinds = WORK if change.kind is None else (change.kind,)
        chosen = path.edges.filter(pl.col("kind").cast(pl.String).is_in(kinds))
    if change.matching is None:
        return chosen.height
    return _named(chosen, change.matching, trace).height


def _named(chosen: pl.DataFrame, pattern: str, trace: Trace) -> pl.DataFrame:
    import polars as pl

    names = trace.events.select("event", pl.col("name").cast(pl.String))
    return chosen.join(names, on="event").filter(pl.col("name").str.contains(pattern))
