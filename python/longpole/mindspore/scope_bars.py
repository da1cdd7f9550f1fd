"""The bars of scopes above the operators of MindSpore's timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["scope_bars"]

_Run = tuple[str, Any, Any]
"""Full name, start in ns, duration in us."""


def scope_bars(runs: Sequence[_Run], subgraph: str, last: str) -> list[_Run]:
    """Give each stretch of operators in one scope: `{level}-{scope}`, start and duration.

    A bar ends where the next operator is of another scope, at the operator `last` of a step, and
    at the end.
    """
    bars = list(_closed(runs, subgraph, last))
    return sorted(bars, key=lambda bar: (float(bar[1]), int(bar[0].partition("-")[0])))


def _closed(runs: Sequence[_Run], subgraph: str, last: str) -> Iterator[_Run]:
    opened: dict[str, list[int]] = {}
    for row, (name, _, _) in enumerate(runs):
        scopes = _scopes(name, subgraph)
        for scope in scopes:
            opened.setdefault(scope, [row, row])[1] = row
        ends = row == len(runs) - 1 or name == last
        for scope in [scope for scope in opened if ends or scope not in scopes]:
            yield _bar(scope, opened.pop(scope), runs)


def _scopes(name: str, subgraph: str) -> list[str]:
    path = name.split("/")[:-1]
    if name.startswith("Default/InitDataSetQueue") or not path or path[0] != subgraph:
        return []
    return [f"{level}-{scope}" for level, scope in enumerate(path)]


def _bar(scope: str, rows: Sequence[int], runs: Sequence[_Run]) -> _Run:
    start, end = runs[rows[0]], runs[rows[1]]
    duration = (float(end[1]) - float(start[1])) * 1e-3 + float(end[2])
    return scope, start[1], duration
