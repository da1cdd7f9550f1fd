"""Which files hold the ranks of a run, and what their names say."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Final

from longpole.ascend.layout import is_profile_folder, rank_of, timelines
from longpole.errors import LongpoleError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["RankSource", "find_sources"]

_SUFFIXES: Final = (".json", ".json.gz")
_NOT_TRACES: Final = re.compile(r"\.et\.json(\.gz)?$|_et\.json(\.gz)?$")
_RANK: Final = re.compile(r"rank[-_ ]?(\d+)", re.IGNORECASE)
_NUMBER: Final = re.compile(r"(?:^|[-_.])(\d{1,6})(?=[-_.]|$)")


@dataclass(frozen=True, slots=True)
class RankSource:
    """A file of a rank, and the rank that its name gives, if any."""

    path: str
    named_rank: int | None


def find_sources(
    sources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
) -> list[RankSource]:
    """List the traces of a directory, of a glob pattern, or those given, in order of their names.

    The ranks of Ascend profiles may stand in folders of their own.

    Raises
    ------
    LongpoleError
        There is no trace.
    """
    paths = sorted(dict.fromkeys(_paths(sources)), key=_natural)
    if not paths:
        given = os.fspath(sources) if isinstance(sources, str | os.PathLike) else "the list"
        message = f"{given}: no trace (*.json, *.json.gz, Ascend profiles) found"
        raise LongpoleError(message)
    ranks = _named_ranks([Path(path).name for path in paths])
    profiled = [rank_of(Path(path)) for path in paths]
    if all(rank is not None for rank in profiled):
        ranks = profiled
    return [RankSource(path, rank) for path, rank in zip(paths, ranks, strict=True)]


def _paths(sources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[str]:
    if not isinstance(sources, str | os.PathLike):
        return [path for source in sources for path in _paths(source)]
    text = os.fspath(sources)
    if Path(text).is_dir():
        if is_profile_folder(Path(text)):
            return [str(timeline.path) for timeline in timelines(Path(text))]
        files = (path for path in Path(text).iterdir() if path.is_file())
        return [str(path) for path in files if _is_trace(path.name)]
    if any(letter in text for letter in "*?[") and not Path(text).exists():
        return [path for path in glob(text, recursive=True) if Path(path).is_file()]  # noqa: PTH207 - absolute patterns too
    return [text]


def _is_trace(name: str) -> bool:
    return name.endswith(_SUFFIXES) and not _NOT_TRACES.search(name)


def _natural(path: str) -> list[tuple[int, int, str]]:
    """Order `rank10` behind `rank9`."""
    parts = re.split(r"(\d+)", path)
    return [(1, int(part), "") if part.isdecimal() else (0, 0, part) for part in parts]


def _named_ranks(names: Sequence[str]) -> list[int | None]:
    """Read ranks from names: `rank3`, else the one number that differs between them."""
    marked = [_RANK.search(name) for name in names]
    if all(marked):
        return [int(found[1]) for found in marked if found]
    numbers = [_NUMBER.findall(name) for name in names]
    places = {len(found) for found in numbers}
    if len(names) > 1 and len(places) == 1:
        for place in range(places.pop()):
            column = [int(found[place]) for found in numbers]
            if len(set(column)) == len(column):
                return list(column)
    return [int(found[1]) if found else None for found in marked]
