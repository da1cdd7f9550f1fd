"""A file of predictions and what was measured, which tells how often gains hold.

Each line is a JSON object. Lines are only ever added, whole, so that several programs can write to
one file and a line that was cut costs only itself.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import polars as pl

from longpole.data import Data, Row, plain
from longpole.frames import frame_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from longpole.analyses.diff.values import Prediction

__all__ = ["Ledger", "LedgerRemedy", "LedgerRow", "add_to_ledger", "ledger"]

_HELD_WITHIN: Final = 0.02
_FORMAT: Final = "longpole.ledger/1"


class LedgerRow(Row):
    """A remedy that was applied: what was predicted and what was measured, as shares."""

    remedy: str
    base: str
    """The traces before."""
    new: str
    """The traces after."""
    gain_low: float
    gain_high: float
    measured: float
    held: bool
    """Whether the measured gain lies in the interval, with 2 points of slack."""


class LedgerRemedy(Row):
    """The pairs of one remedy."""

    remedy: str
    count: int
    held: int
    mean_error: float
    """By how much the measured gain lies outside of the interval on average, as a share."""
    mean_width: float
    """Of the interval."""


@dataclass(frozen=True, slots=True)
class Ledger(Data):
    """How often predicted gains held."""

    n_pairs: int
    n_held: int
    n_unreadable: int
    """Lines that are no pair; they are left out."""
    remedies: Annotated[pl.DataFrame, LedgerRemedy]
    pairs: Annotated[pl.DataFrame, LedgerRow]

    def __str__(self) -> str:
        return f"{self.n_held} of {self.n_pairs} predictions held."


def add_to_ledger(
    path: str | os.PathLike[str], predictions: Iterable[Prediction], base: str, new: str
) -> int:
    """Add the predictions of remedies that were applied alone; give how many were new.

    A pair that the file has already is not added again.
    """
    known = set(_lines(Path(path)))
    rows = [
        {"format": _FORMAT, "base": base, "new": new, **plain(each)}
        for each in predictions
        if each.is_alone
    ]
    lines = [json.dumps(row, ensure_ascii=False, sort_keys=True) for row in rows]
    added = [line for line in lines if line not in known]
    if added:
        _append(Path(path), "".join(f"{line}\n" for line in added))
    return len(added)


def _append(path: Path, text: str) -> None:
    """Write whole lines at the end of a file, in one go, and see them to disk."""
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT
    descriptor = os.open(path, flags, 0o666)
    try:
        size = os.fstat(descriptor).st_size
        # A line that was cut keeps to itself.
        is_cut = size and os.pread(descriptor, 1, size - 1) != b"\n"
        os.write(descriptor, (("\n" if is_cut else "") + text).encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _lines(path: Path) -> list[str]:
    if not path.exists():
        return []
    return [
        line
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines()
        if line.strip()
    ]


def ledger(path: str | os.PathLike[str]) -> Ledger:
    r"""Say how often the predictions of a file held, by remedy.

    Parameters
    ----------
    path
        What `longpole diff --ledger` wrote.

    Raises
    ------
    FileNotFoundError
        There is no such file.

    Examples
    --------
    >>> import tempfile
    >>> pair = {"format": "longpole.ledger/1", "remedy": "copies", "base": "a", "new": "b"}
    >>> pair |= {"gain_low": 0.1, "gain_high": 0.2, "measured": 0.15}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "ledger.jsonl")
    ...     _ = file.write_text(json.dumps(pair) + "\nnot a pair\n")
    ...     print(ledger(file), ledger(file).n_unreadable)
    1 of 1 predictions held. 1
    """
    if not Path(path).exists():
        raise FileNotFoundError(2, "no such file", str(path))
    lines = _lines(Path(path))
    rows = [row for line in lines if (row := _row(line)) is not None]
    pairs = pl.DataFrame(rows, schema=frame_schema(LedgerRow))
    return Ledger(
        n_pairs=pairs.height,
        n_held=int(pairs["held"].sum()),
        n_unreadable=len(lines) - len(rows),
        remedies=_by_remedy(pairs),
        pairs=pairs,
    )


def _row(line: str) -> dict[str, Any] | None:
    """Read one pair; None for what is none."""
    try:
        found = json.loads(line)
    except ValueError:
        return None
    numbers = ("gain_low", "gain_high", "measured")
    is_pair = isinstance(found, dict) and found.get("format") == _FORMAT
    if not is_pair or not all(isinstance(found.get(name), int | float) for name in numbers):
        return None
    held = _outside([found[name] for name in numbers]) <= _HELD_WITHIN
    texts = {name: str(found.get(name)) for name in ("remedy", "base", "new")}
    return {**texts, **{name: float(found[name]) for name in numbers}, "held": held}


def _outside(pair: Sequence[float]) -> float:
    """Give by how much a measured gain lies outside of its interval."""
    low, high, measured = pair
    return max(low - measured, measured - high, 0.0)


def _by_remedy(pairs: pl.DataFrame) -> pl.DataFrame:
    low, high, measured = pl.col("gain_low"), pl.col("gain_high"), pl.col("measured")
    outside = pl.max_horizontal(low - measured, measured - high, pl.lit(0.0))
    found = pairs.group_by("remedy").agg(
        count=pl.len(),
        held=pl.col("held").sum(),
        mean_error=outside.mean(),
        mean_width=(high - low).mean(),
    )
    schema = frame_schema(LedgerRemedy)
    return found.sort("count", "remedy", descending=[True, False]).select(
        pl.col(name).cast(dtype) for name, dtype in schema.items()
    )
