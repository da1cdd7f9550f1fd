"""Finds the timelines of an Ascend profile and their ranks, and the folders that cannot be read.

The profilers of torch and MindSpore write `ASCEND_PROFILER_OUTPUT` into one folder per rank; msprof
writes `mindstudio_profiler_output` into `PROF_*`, and in 2023 `device_N/timeline`. Only exported
files can be read, since the raw files of the collector are binary.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from longpole.files.opening import entries, matching
from longpole.formats.ascend.job import read_job
from longpole.formats.ascend.joined import iteration_of, slice_of
from longpole.formats.ascend.problems import not_exported, profile_error

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from longpole.errors import TraceError

OUTPUT_FOLDER: Final = "ASCEND_PROFILER_OUTPUT"
_MSPROF_OUTPUT: Final = "mindstudio_profiler_output"
_COLLECTED: Final = re.compile(r"^(?:PROF_\d+_\d+_[A-Za-z0-9]+|JOB\w+)$")
_DATABASE: Final = re.compile(
    r"^(?:ascend_(?:pytorch|mindspore)_profiler(?:_(\d{1,9}))?|msprof_\d+)\.db$"
)
_MSPROF_TIMELINE: Final = re.compile(r"^msprof(?:_\w+)?\.json$")
_NAMED_RANK: Final = re.compile(r"(?:^|[^a-z])rank[-_]?(\d{1,9})(?!\d)", re.IGNORECASE)
_NEAREST: Final = 3
_OLD_OUTPUT: Final = "timeline"
_DEVICE_FOLDER: Final = re.compile(r"^device_\d+$")
_PASSED: Final = re.compile(
    r"^(?:profiler|PROF_\d+_\d+_[A-Za-z0-9]+|JOB\w+|device_\d+|.*_ascend_(?:pt|ms))$"
)
_DEPTH: Final = 4
_INFO_RANK: Final = re.compile(r"^profiler_info_(\d{1,9})\.json$")


@dataclass(frozen=True, slots=True)
class Timeline:
    """A timeline of one rank: the file, and the rank that the profile contains, if any.

    A timeline in several files is represented by their folder; `parts` are the files in time order.
    """

    path: Path
    rank: int | None
    parts: tuple[Path, ...] = ()


def collected(folder: Path) -> TraceError | None:
    """Return why a folder of raw files cannot be read; None if it has no raw files."""
    return not_exported(folder, folder) if _is_collected(folder) else None


def timelines(folder: Path) -> list[Timeline]:
    """List the exported timelines of all ranks in a folder, in order of rank and name."""
    found = [Timeline(path, rank_of(path), parts) for path, parts in _exported(folder)]
    return sorted(found, key=lambda it: (it.rank is None, it.rank or 0, str(it.path)))


def only_timeline(output: Path) -> Timeline:
    """Return the timeline that a folder of exported files represents.

    Raises
    ------
    TraceError
        The folder has no timeline, or several.
    """
    found = timelines(output)
    if len(found) == 1:
        return found[0]
    hint = "give a folder with trace_view.json, msprof_*.json or *_profiler_*.db, or name a trace"
    reason = f"a directory with {len(found) or 'no'} timelines"
    raise profile_error(output, reason, "several_timelines" if found else "no_timeline", hint)


def rank_of(timeline: Path) -> int | None:
    """Return the rank of a timeline from the names of the files and folders around it.

    None if it is not a timeline of an Ascend profile, or if no name contains the rank.
    """
    of_iteration = iteration_of(timeline.name)
    named = _DATABASE.match(timeline.name)
    if named and named[1]:
        return int(named[1])
    if of_iteration or _MSPROF_TIMELINE.match(timeline.name) or timeline.is_dir():
        job = read_job(timeline)
        rank = None if job is None else job.rank
        return of_iteration[0] if rank is None and of_iteration else rank
    if timeline.name != "trace_view.json" and not named:
        return None
    for folder in list(timeline.absolute().parents)[:_NEAREST]:
        names = [path.name for path in _files(folder, "profiler_info_*.json")]
        numbers = [int(found[1]) for found in map(_INFO_RANK.match, names) if found]
        if len(numbers) == 1:
            return numbers[0]
        marked = _NAMED_RANK.search(folder.name)
        if marked:
            return int(marked[1])
    return None


def database_files(output: Path) -> list[Path]:
    """Return the event databases in a folder of exported files."""
    return [path for path in _files(output, "*.db") if _DATABASE.match(path.name)]


def output_folders(folder: Path) -> list[Path]:
    """Return the folders of exported files in a profile, sorted by name."""
    return list(_profiles(folder))


def _profiles(folder: Path, depth: int = 0) -> Iterator[Path]:
    """Yield the folders of exported files, including those in subfolders that profilers create."""
    if _holds_timeline(folder):
        yield folder
        return
    for inner in _folders(folder):
        if _is_output(inner):
            yield inner
        elif depth < _DEPTH and (depth == 0 or _PASSED.match(inner.name)):
            yield from _profiles(inner, depth + 1)


def _is_output(folder: Path) -> bool:
    if folder.name == _OLD_OUTPUT:
        return _DEVICE_FOLDER.match(folder.parent.name) is not None and _holds_timeline(folder)
    return folder.name in {OUTPUT_FOLDER, _MSPROF_OUTPUT}


def _exported(folder: Path) -> Iterator[tuple[Path, tuple[Path, ...]]]:
    """Yield one timeline per folder of exported files: the text export, else the database."""
    for output in _profiles(folder):
        names = {path.name: path for path in _files(output, "*")}
        text = names.get("trace_view.json")
        databases = sorted(name for name in names if _DATABASE.match(name))
        if text:
            yield text, ()
        elif databases:
            yield from ((names[name], ()) for name in databases)
        else:
            yield from _written_by_msprof(output, names)


def _written_by_msprof(
    output: Path, names: dict[str, Path]
) -> Iterator[tuple[Path, tuple[Path, ...]]]:
    """Yield the timelines of msprof; the iterations or slices of one device are one timeline."""
    groups: dict[tuple[str, str], list[tuple[int, Path]]] = {}
    for name, path in names.items():
        if _MSPROF_TIMELINE.match(name):
            iteration, piece = iteration_of(name), slice_of(name)
            if iteration:
                device, _, number = iteration
                groups.setdefault(("device", str(device)), []).append((number, path))
            elif piece:
                groups.setdefault(("slices", piece[0]), []).append((piece[1], path))
            else:
                groups["file", name] = [(0, path)]
    for _, parts in sorted(groups.items()):
        files = tuple(path for _, path in sorted(parts))
        if len(files) > 1 and len(groups) == 1:
            yield output, files
        else:
            yield from ((path, ()) for path in files)


def _holds_timeline(folder: Path) -> bool:
    names = [path.name for path in _files(folder, "*")]
    return folder.name in {OUTPUT_FOLDER, _MSPROF_OUTPUT} or any(
        name == "trace_view.json" or _DATABASE.match(name) or _MSPROF_TIMELINE.match(name)
        for name in names
    )


def _is_collected(folder: Path, depth: int = 0) -> bool:
    """Whether a folder is, or contains, raw files of the collector."""
    if _COLLECTED.match(folder.name):
        return True
    return depth < _DEPTH and any(
        _is_collected(inner, depth + 1)
        for inner in _folders(folder)
        if depth == 0 or _PASSED.match(inner.name)
    )


def _folders(folder: Path) -> list[Path]:
    return [path for path in entries(folder) if path.is_dir()] if folder.is_dir() else []


def _files(folder: Path, pattern: str) -> list[Path]:
    return [path for path in matching(folder, pattern) if path.is_file()]
