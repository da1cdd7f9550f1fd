"""What takes much of a device's time and yet does not hold the program up, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.verdict.missing import whole_percent

if TYPE_CHECKING:
    from collections.abc import Callable

    from longpole.verdict.parts import VerdictParts

__all__ = ["ONE_RANK", "beside", "much_left"]

ONE_RANK: Final = "One rank cannot tell whether others are late; compare the traces of all."

# A device does one thing for so much of the time: who reads that asks whether it matters ...
_MUCH_TIME: Final = 0.2

# ... and where it gains less than this, the answer is no.
_LEAST_GAIN: Final = 0.05

# With more left over, the trace does not show what the rest waits for.
_MUCH_LEFT: Final = 0.2

_TAKES: Final = {
    "kernels": ("Kernels take", "kernels"),
    "communication": ("Communication takes", "communication"),
    "copies": ("Memory copies take", "memory copies"),
}


def much_left(parts: VerdictParts) -> bool:
    """Whether much is left that the trace does not explain."""
    doubt = parts["doubt"]
    return max(doubt["floor"], doubt["rest"]) > _MUCH_LEFT


def beside(parts: VerdictParts, percent: Callable[[float], str]) -> list[str]:
    """Say of what keeps a device busy that it is not what holds the program up.

    Where only host and kernels together gain much, the sentence has said so already.
    """
    gains = dict(parts["gains"])
    rows = [
        (side, share)
        for side, share in parts["recorded"]["busy"]
        if share >= _MUCH_TIME and gains[side] < _LEAST_GAIN
    ]
    if not rows or parts["nearly_balanced"]:
        return []
    (first, share), *others = rows
    takes = f"{_TAKES[first][0]} {whole_percent(share)} of the time"
    takes += "".join(f" and {_TAKES[side][1]} {whole_percent(share)}" for side, share in others)
    alone = "it" if first == "communication" else "them"
    gain = max(gains[side] for side, _ in rows)
    saves = "nothing" if gain <= 0 else f"up to {percent(gain)}"
    by_trace = "as far as the trace shows, " if much_left(parts) else ""
    them = "one of them" if others else alone
    told = [f"{takes}, but {by_trace}shortening {them} alone saves {saves}."]
    is_one_rank = parts["awaited"] is None and "communication" in dict(rows)
    return [*told, ONE_RANK] if is_one_rank else told
