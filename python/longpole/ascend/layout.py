"""Which file of an Ascend profile is the timeline, which rank it is of, and what cannot be read.

The profilers of torch and MindSpore write `ASCEND_PROFILER_OUTPUT` into a folder for each rank;
msprof writes `mindstudio_profiler_output` into `PROF_*`. Only exported files can be read: what
the collector itself writes is binary.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from longpole.ascend.problems import not_exported, profile_error

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = [
    "OUTPUT_FOLDER",
    "Timeline",
    "is_profile_folder",
    "only_timeline",
    "rank_of",
    "timelines",
]

OUTPUT_FOLDER: Final = "ASCEND_PROFILER_OUTPUT"
_MSPROF_OUTPUT: Final = "mindstudio_profiler_output"
_RANK_FOLDER: Final = re.compile(r".*_ascend_(?:pt|ms)$")
_COLLECTED: Final = re.compile(r"^(?:PROF_\d+_\d+_[A-Za-z0-9]+|JOB\w+)$")
_DATABASE: Final = re.compile(
    r"^(?:ascend_(?:pytorch|mindspore)_profiler(?:_(\d+))?|msprof_\d+)\.db$"
)
_MSPROF_TIMELINE: Final = re.compile(r"^msprof(?:_\w+)?\.json$")
_NAMED_RANK: Final = re.compile(r"(?:^|[^a-z])rank[-_]?(\d+)", re.IGNORECASE)
_MOST_NAMED: Final = 3
_NEAREST: Final = 3
_OLD_TIMELINE: Final = re.compile(r"^msprof_(\d+)_\d+_\d+\.json$")
_INFO_RANK: Final = re.compile(r"^profiler_info_(\d+)\.json$")


@dataclass(frozen=True, slots=True)
class Timeline:
    """A timeline of one rank: the file, and the rank that the profile names, if any."""

    path: Path
    rank: int | None


def is_profile_folder(folder: Path) -> bool:
    """Whether a folder is, or holds, a profile of an Ascend device."""
    return any(True for _ in _profiles(folder)) or _is_collected(folder)


def timelines(folder: Path) -> list[Timeline]:
    """List the timelines of all ranks in a folder, in order of rank and name.

    Raises
    ------
    TraceError
        The folder holds a profile that was not exported.
    """
    found = [Timeline(path, rank_of(path)) for path in _exported(folder)]
    if not found and _holds_collected(folder):
        raise not_exported(folder, folder)
    return sorted(found, key=lambda it: (it.rank is None, it.rank or 0, str(it.path)))


def only_timeline(folder: Path) -> Timeline:
    """Find the one timeline of a folder.

    Raises
    ------
    TraceError
        There is none, or there are those of several ranks or runs.
    """
    found = timelines(folder)
    if not found:
        hint = (
            "give a folder with trace_view.json, msprof_*.json or *_profiler_*.db, or name a trace"
        )
        raise profile_error(folder, "a directory without a timeline", "no_timeline", hint)
    if len(found) > 1:
        names = ", ".join(str(it.path.relative_to(folder)) for it in found[:_MOST_NAMED])
        more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
        reason = f"a directory with {len(found)} timelines: {names}{more}"
        hint = "name one of them, or compare the ranks with `longpole ranks`"
        raise profile_error(folder, reason, "several_timelines", hint)
    return found[0]


def rank_of(timeline: Path) -> int | None:
    """Read the rank of a timeline from the names of files and folders around it.

    None where it is no timeline of an Ascend profile, or nothing names the rank.
    """
    named = _DATABASE.match(timeline.name) or _OLD_TIMELINE.match(timeline.name)
    if named and named[1]:
        return int(named[1])
    if timeline.name != "trace_view.json" and not named:
        return None
    for folder in list(timeline.absolute().parents)[:_NEAREST]:
        infos = [_INFO_RANK.match(path.name) for path in _files(folder, "profiler_info_*.json")]
        numbers = [int(info[1]) for info in infos if info]
        if len(numbers) == 1:
            return numbers[0]
        marked = _NAMED_RANK.search(folder.name)
        if marked:
            return int(marked[1])
    return None


def _profiles(folder: Path) -> Iterator[Path]:
    """Give the folders of exported files in a folder, at most two levels below it."""
    if _holds_timeline(folder):
        yield folder
        return
    for inner in _folders(folder):
        if inner.name in {OUTPUT_FOLDER, _MSPROF_OUTPUT}:
            yield inner
        elif _RANK_FOLDER.match(inner.name) or _COLLECTED.match(inner.name):
            yield from (
                deep for deep in _folders(inner) if deep.name in {OUTPUT_FOLDER, _MSPROF_OUTPUT}
            )


def _exported(folder: Path) -> Iterator[Path]:
    """Give one timeline for each folder of exported files: the text, else the database."""
    for output in _profiles(folder):
        names = {path.name: path for path in _files(output, "*")}
        text = names.get("trace_view.json")
        databases = sorted(name for name in names if _DATABASE.match(name))
        if text:
            yield text
        elif databases:
            yield from (names[name] for name in databases)
        else:
            yield from (names[name] for name in sorted(names) if _MSPROF_TIMELINE.match(name))


def _holds_timeline(folder: Path) -> bool:
    names = [path.name for path in _files(folder, "*")]
    return folder.name in {OUTPUT_FOLDER, _MSPROF_OUTPUT} or any(
        name == "trace_view.json" or _DATABASE.match(name) or _MSPROF_TIMELINE.match(name)
        for name in names
    )


def _is_collected(folder: Path) -> bool:
    return bool(_COLLECTED.match(folder.name)) or _holds_collected(folder)


def _holds_collected(folder: Path) -> bool:
    if _COLLECTED.match(folder.name):
        return True
    inner = _folders(folder)
    return any(
        _COLLECTED.match(it.name)
        or (
            _RANK_FOLDER.match(it.name)
            and any(_COLLECTED.match(deep.name) for deep in _folders(it))
        )
        for it in inner
    )


def _folders(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []


def _files(folder: Path, pattern: str) -> list[Path]:
    return sorted(path for path in folder.glob(pattern) if path.is_file())
