"""Finds the files that contain the ranks of a run, and the ranks in their names."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass
from glob import glob
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from longpole.errors import MissingDependencyError, RanksError
from longpole.files.opening import entries
from longpole.formats.profiles import (
    folders_with_traces,
    has_trace_name,
    profile_rank,
    profile_timelines,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_RANK: Final = re.compile(r"rank[-_ ]?(\d{1,9})(?!\d)", re.IGNORECASE)
_NUMBER: Final = re.compile(r"(?:^|[-_.])(\d{1,6})(?=[-_.]|$)")
_ADDRESS: Final = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+://")


@dataclass(frozen=True, slots=True)
class RankSource:
    """A file of a rank, and the rank in its name, if any."""

    path: str
    named_rank: int | None


def find_sources(
    sources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    is_file: Callable[[str], bool] | None = None,
) -> list[RankSource]:
    """List the traces of a directory or glob pattern, or the given ones, in order of their names.

    Ascend profiles may have one folder per rank.

    Parameters
    ----------
    sources
        A directory, a glob pattern, or a list of these and of files. Addresses such as
        `s3://bucket/run` need fsspec.
    is_file
        Which files of a directory to list; by default those named like a trace.

    Raises
    ------
    RanksError
        There is no trace.
    """
    chosen = is_file or _is_trace
    paths = sorted(dict.fromkeys(_paths(sources, chosen)), key=_natural)
    if not paths:
        given = [sources] if isinstance(sources, str | os.PathLike) else sources
        named = ", ".join(os.fspath(path) for path in given) or "an empty list"
        message = (
            f"{named}: no trace (*.json, *.json.gz, *.sqlite, Ascend or MindSpore profiles) found"
            f"{_hint(given)}"
        )
        raise RanksError(message)
    ranks = _named_ranks([PurePosixPath(path).name for path in paths])
    profiled = [profile_rank(Path(path)) for path in paths]
    if all(rank is not None for rank in profiled):
        ranks = profiled
    return [RankSource(path, rank) for path, rank in zip(paths, ranks, strict=True)]


def _hint(given: Sequence[str | os.PathLike[str]]) -> str:
    """Return a hint if the traces are in subfolders of the given folder."""
    folders = [path for path in given if folders_with_traces(Path(path))]
    if not folders:
        return ""
    pattern = shlex.quote(os.path.join(folders[0], "*", "*.json*"))  # noqa: PTH118 - the string is a glob pattern
    return f"\nhint: to read the folders in it: `longpole ranks {pattern}`"


def is_address(path: str) -> bool:
    """Whether a path is an address such as `s3://bucket/rank0.json.gz`, which fsspec opens."""
    return _ADDRESS.match(path) is not None


def file_system(address: str) -> tuple[Any, str]:
    """Return the file system of an address, and the path within it.

    Raises
    ------
    MissingDependencyError
    fsspec, or the package it needs for this kind of address, is not installed.
    """
    try:
        from fsspec.core import url_to_fs

        found: tuple[Any, str] = url_to_fs(address)
    except ImportError as error:
        message = f"{address} needs fsspec ({error})\nhint: pip install 'longpole[ray]'"
        raise MissingDependencyError(message) from error
    return found


def _paths(
    sources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    is_file: Callable[[str], bool],
) -> list[str]:
    if not isinstance(sources, str | os.PathLike):
        return [path for source in sources for path in _paths(source, is_file)]
    text = os.fspath(sources)
    if is_address(text):
        return _remote_paths(text, is_file)
    if Path(text).is_dir():
        profiled = [] if is_file is not _is_trace else profile_timelines(Path(text))
        if profiled:
            return [str(path) for path, _ in profiled]
        files = (path for path in entries(text) if path.is_file())
        return [str(path) for path in files if is_file(str(path))]
    if any(letter in text for letter in "*?[") and not Path(text).exists():
        return [path for path in glob(text, recursive=True) if Path(path).is_file()]  # noqa: PTH207 - the pattern may be absolute
    return [text]


def _remote_paths(address: str, is_file: Callable[[str], bool]) -> list[str]:
    files, path = file_system(address)
    if any(letter in path for letter in "*?["):
        return [files.unstrip_protocol(name) for name in files.glob(path)]
    if not files.isdir(path):
        return [address]
    names = [row["name"] for row in files.ls(path, detail=True) if row["type"] == "file"]
    return [files.unstrip_protocol(name) for name in names if is_file(name)]


def _is_trace(path: str) -> bool:
    return has_trace_name(PurePosixPath(path).name)


def _natural(path: str) -> list[tuple[int, int, str]]:
    """Sort key that places `rank10` after `rank9`."""
    parts = re.split(r"(\d+)", path)
    return [(1, int(part), "") if part.isdecimal() else (0, 0, part) for part in parts]


def _named_ranks(names: Sequence[str]) -> list[int | None]:
    """Read ranks from file names; if these contain none, number the most similar names."""
    numbered = _numbered(names)
    if numbered is not None:
        return list(numbered)
    shapes = [re.sub(r"\d+", "#", name) for name in names]
    most = max(shapes, key=shapes.count, default="")
    alike = [name for name, shape in zip(names, shapes, strict=True) if shape == most]
    numbers = dict(zip(alike, _numbered(alike) or (), strict=False))
    marked = [_RANK.search(name) for name in names]
    return [
        numbers.get(name, int(found[1]) if found else None)
        for name, found in zip(names, marked, strict=True)
    ]


def _numbered(names: Sequence[str]) -> list[int] | None:
    """Read `rank3`, else the one number that differs between all names."""
    marked = [found for found in map(_RANK.search, names) if found]
    if len(marked) == len(names):
        return [int(found[1]) for found in marked]
    numbers = [_NUMBER.findall(name) for name in names]
    places = {len(found) for found in numbers}
    if len(names) > 1 and len(places) == 1:
        for place in range(places.pop()):
            column = [int(found[place]) for found in numbers]
            if len(set(column)) == len(column):
                return column
    return None
