"""Events grouped by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

__all__ = ["NameTime", "OperatorTime", "Ranking"]

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Ranking(Generic[Row]):
    """The first rows of a list, and its total length."""

    rows: tuple[Row, ...]
    n_total: int

    def __data__(self) -> tuple[Row, ...]:
        return self.rows


@dataclass(frozen=True, slots=True)
class NameTime:
    """All events with one name, and the longest of them. Concurrent events count twice."""

    name: str | None
    count: int
    duration_ns: int
    longest_ns: int
    longest_event: int


@dataclass(frozen=True, slots=True)
class OperatorTime:
    """Self time of all operators with one name within a window."""

    name: str | None
    count: int
    self_ns: int
    longest_self_ns: int
    longest_event: int
