"""What the critical path of a window consists of, in one line.

A path of which too much is unexplained gives none: it is no basis for a sentence.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from longpole.errors import WindowError
from longpole.windows import choose_window
from longpole.wording import share, short_name

if TYPE_CHECKING:
    from longpole.critical_path import CriticalPath
    from longpole.trace import Trace
    from longpole.windows import Window

__all__ = ["LongPole", "Piece", "long_pole"]

_MOST_KINDS: Final = 2
_WIDEST_NAME: Final = 40
_BUILT_IN: Final = re.compile(r"^<built-in (?:function|method) (\w+).*>$")


@dataclass(frozen=True, slots=True)
class Piece:
    """A kind on the path, and the name that has most of its time."""

    kind: str
    duration_ns: int
    share: float
    name: str | None
    name_duration_ns: int | None
    name_share: float | None

    def __str__(self) -> str:
        kind = f"{share(self.share)} {self.kind}"
        if self.name is None or self.name_share is None:
            return kind
        name = _BUILT_IN.sub(r"\1", self.name)
        return f"{kind} ({share(self.name_share)} {short_name(name, _WIDEST_NAME)})"


@dataclass(frozen=True, slots=True)
class LongPole:
    """The kinds that have most of a critical path, the greatest first."""

    window_ns: tuple[int, int]
    step: int | None
    kinds: tuple[Piece, ...]

    def __str__(self) -> str:
        first, *others = self.kinds
        kinds = [str(first), *(f"{share(piece.share)} {piece.kind}" for piece in others)]
        which = " --whole" if self.step is None else f" --step {self.step}"
        return f"Critical path: {', '.join(kinds)}; longpole path{which} shows it."


def long_pole(trace: Trace, window: Window | None = None) -> LongPole | str:
    """Name what has most of the critical path of a window.

    Where there is no such thing, the reason is given.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> trace = TraceBuilder().launch("gemm", call=(0, 10), work=(10, 100)).read()
    >>> print(long_pole(trace))
    Critical path: 90.0 % kernel (90.0 % gemm), 10.0 % runtime; longpole path --whole shows it.
    """
    window = window or choose_window(trace)
    step = None if window is None else window.step
    try:
        path = trace.critical_path(step=step, whole=step is None)
    except WindowError as error:
        return str(error)
    if path.status == "inconclusive":
        return "more than a fifth of the critical path is unexplained"
    if not path.length_ns:
        return "the critical path is 0 ns long"
    kinds = path.by_kind.head(_MOST_KINDS).iter_rows(named=True)
    pieces = (_piece(path, row["kind"], row["duration_ns"], row["share"]) for row in kinds)
    return LongPole(path.window, step, tuple(pieces))


def _piece(path: CriticalPath, kind: str, duration_ns: int, part: float) -> Piece:
    names = path.by_name.filter(pl.col("kind") == kind).drop_nulls("name").head(1)
    for row in names.iter_rows(named=True):
        return Piece(kind, duration_ns, part, row["name"], row["duration_ns"], row["share"])
    return Piece(kind, duration_ns, part, None, None, None)
