"""Sentences about what keeps a device busy without limiting the program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.answer.advice import LEAST_GAIN
from longpole.engine.windows import noun_of
from longpole.remedies.gains import WORTH_SAYING
from longpole.remedies.limits import Both, sides_of
from longpole.words.recording import options_of
from longpole.words.wording import duration, whole_percent

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from longpole.remedies.parts import VerdictParts
    from longpole.remedies.sides import Side

ONE_RANK: Final = "One rank cannot tell whether others are late: compare the traces of all."

# A kind of work with at least this share of the device time is mentioned if it limits nothing.
_MUCH_TIME: Final = 0.2

# Unexplained time is reported from this share of the remaining time, if it is worth saying.
_MUCH_LEFT: Final = 0.2

_NOUNS: Final = {"copies": "memory copies"}


def beside(
    parts: VerdictParts, most: Callable[[float], str], planned: Collection[Side]
) -> list[str]:
    """Return sentences on what keeps a device busy without limiting the program.

    Nothing is added if only host and kernels together gain much: the sentence already says so. The
    plan says what shortening one of its sides saves.
    """
    rows = [] if isinstance(parts["limit"], Both) else _busy_in_vain(parts)
    rows = [(side, share) for side, share in rows if side not in planned]
    told = [_graph_gaps(parts)] if parts["uncertainty"]["graph_gaps"] > _MUCH_LEFT else []
    told += [_shortening(rows, parts, most)] if rows else []
    is_one_rank = parts["awaited"] is None and "communication" in dict(rows)
    rest = _left(parts)
    if rest is not None:
        return [*told, f"{rest}; compare the traces of all ranks." if is_one_rank else f"{rest}."]
    return [*told, ONE_RANK] if is_one_rank else told


def _left(parts: VerdictParts) -> str | None:
    """Report how much time has no recorded cause; None if it is little."""
    gains, sides = parts["gains"], sides_of(parts["limit"])
    floor, rest = parts["uncertainty"]["floor"], parts["uncertainty"]["rest"]
    remains = 1.0 - max((gains[side].value for side in sides), default=0.0)
    left = max(floor, rest * remains)
    if max(floor, rest) <= _MUCH_LEFT or left < WORTH_SAYING:
        return None
    if len(sides) != 1:
        return "The trace does not show what limits the rest"
    left_ns = round(left * parts["lengths_ns"][3] / parts["n_windows"])
    return f"The trace does not show what limits the other {duration(left_ns)}"


def _busy_in_vain(parts: VerdictParts) -> list[tuple[Side, float]]:
    """List the sides that keep a device busy for long but gain little."""
    gains = parts["gains"]
    return [
        (side, share)
        for side, share in parts["recorded"]["busy"]
        if share >= _MUCH_TIME and gains[side].value < LEAST_GAIN
    ]


def _graph_gaps(parts: VerdictParts) -> str:
    """Report time that may belong to kernels, since the upper bound includes it."""
    graph = options_of(parts["profiler"], is_of_server=parts["is_of_server"]).graph
    share = whole_percent(parts["uncertainty"]["graph_gaps"])
    return (
        f"{share} of the path is gaps in {graph}s, cause not recorded; what is certain does not "
        "count them as kernels."
    )


def _shortening(
    rows: list[tuple[Side, float]], parts: VerdictParts, most: Callable[[float], str]
) -> str:
    is_mean = parts["n_windows"] > 1
    of_time = f"of {_shown(parts)}" if is_mean else "of the time"
    (first, part), *others = rows
    take = "takes" if first == "communication" else "take"
    them = "them" if others or first != "communication" else "it"
    noun = _NOUNS.get(first, first)
    takes = [f"{noun[0].upper()}{noun[1:]} {take} {whole_percent(part)} {of_time}"]
    takes += [f"{_NOUNS.get(side, side)} {whole_percent(share)}" for side, share in others]
    saves = most(max(parts["gains"][side].value for side, _ in rows))
    return f"{' and '.join(takes)}; shortening {them} alone saves {saves}, as other work hides it."


def _shown(parts: VerdictParts) -> str:
    """Return the window that shares refer to."""
    numbers, unit = parts["numbers"], noun_of(parts["unit"])
    return f"{unit} {numbers[parts['shown']]}" if unit == "step" else f"the {unit} shown"
