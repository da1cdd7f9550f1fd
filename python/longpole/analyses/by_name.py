"""Events grouped by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

__all__ = ["NameTime", "OperatorTime", "Ranking"]

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Ranking(Generic[Row]):
    """The first rows of a list, and how many it has."""

    rows: tuple[Row, ...]
    n_total: int

    def __data__(self) -> tuple[Row, ...]:
        return self.rows


@dataclass(frozen=True, slots=True)
class NameTime:
    """All events of one name, and the longest of them. Concurrent events count twice."""

    name: str | None
    count: int
    duration_ns: int
    longest_ns: int
    longest_event: int


@dataclass(frozen=True, slots=True)
class OperatorTime:
    """All operators of one name within a window, by the time in which nothing inside them ran."""

    name: str | None
    count: int
    self_ns: int
    longest_self_ns: int
    longest_event: int
