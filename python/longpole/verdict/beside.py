"""What takes much of a device's time and yet does not hold the program up, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.recording import options_of
from longpole.wording import whole_percent

if TYPE_CHECKING:
    from collections.abc import Callable

    from longpole.verdict.parts import VerdictParts

__all__ = ["ONE_RANK", "beside"]

ONE_RANK: Final = "One rank cannot tell whether others are late: compare the traces of all."

# A device does one thing for so much of the time: who reads that asks whether it matters ...
_MUCH_TIME: Final = 0.2

# ... and where it gains less than this, the answer is no.
_LEAST_GAIN: Final = 0.05

_REST: Final = "The trace does not show what holds up the rest"

# With more left over, the trace does not show what the rest waits for.
_MUCH_LEFT: Final = 0.2

_NOUNS: Final = {"copies": "memory copies"}


def beside(parts: VerdictParts, most: Callable[[float], str]) -> list[str]:
    """Say of what keeps a device busy that it is not what holds the program up, and what is left.

    Where only host and kernels together gain much, the sentence has said so already.
    """
    rows = [] if parts["nearly_balanced"] else _busy_in_vain(parts)
    told = [_shortening(rows, parts, most)] if rows else []
    told += [_graph_gaps(parts)] if parts["doubt"]["graph_gaps"] > _MUCH_LEFT else []
    is_one_rank = parts["awaited"] is None and "communication" in dict(rows)
    if max(parts["doubt"]["floor"], parts["doubt"]["rest"]) > _MUCH_LEFT:
        return [*told, f"{_REST}; compare the traces of all ranks." if is_one_rank else f"{_REST}."]
    return [*told, ONE_RANK] if is_one_rank else told


def _busy_in_vain(parts: VerdictParts) -> list[tuple[str, float]]:
    """List the sides that a device is busy with for long, and that gain little."""
    gains = dict(parts["gains"])
    return [
        (side, share)
        for side, share in parts["recorded"]["busy"]
        if share >= _MUCH_TIME and gains[side] < _LEAST_GAIN
    ]


def _graph_gaps(parts: VerdictParts) -> str:
    """Say what may be kernels, so that the greatest gain counts it as such."""
    graph = options_of(parts["profiler"], is_of_server=parts["is_of_server"]).graph
    share = whole_percent(parts["doubt"]["graph_gaps"])
    return (
        f"Gaps between the nodes of a {graph}, cause not recorded, take {share} of the path; "
        "only the greatest gain counts them as kernels."
    )


def _shortening(
    rows: list[tuple[str, float]], parts: VerdictParts, most: Callable[[float], str]
) -> str:
    gains: dict[str, float] = dict(parts["gains"])
    of_time = "of the median step" if parts["usual"] else "of the time"
    takes = [f"{_NOUNS.get(side, side)} ({whole_percent(share)})" for side, share in rows]
    takes[0] = takes[0].replace(")", f" {of_time})")
    saves = most(max(gains[side] for side, _ in rows))
    return f"Shortening {' or '.join(takes)} alone saves {saves}."
