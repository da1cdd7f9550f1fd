"""Finds the trace of a folder, and the timelines of Ascend, MindSpore and XProf profiles.

A rank of such a profile is a folder, a database, or some of the files of a folder. One path
represents each, which `read_trace` accepts.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from longpole.opening import entries

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

    from longpole.errors import TraceError

__all__ = [
    "FoundTimeline",
    "captures_of",
    "files_read_with",
    "has_trace_name",
    "other_timeline",
    "profile_rank",
    "profile_timelines",
    "timeline_at",
    "timeline_in",
    "timeline_of",
]

_PROFILE_FILE: Final = re.compile(
    r"^(?:trace_view|msprof).*\.json$|\.(?:db|txt|csv|pb)$|^op_range_|\.slice_\d+$"
)
"""Names of files that may belong to such a profile; others are ignored."""
_ASCEND_TIMELINE: Final = re.compile(r"^(?:trace_view|msprof).*\.json$|^ascend_.*\.db$")
_ROCPROF_FILE: Final = re.compile(
    r"^(?P<prefix>(?:.*_)?)(?:agent_info|(?:kernel|memory_copy|memory_allocation|scratch_memory"
    r"|(?:hip|hsa|marker|rccl|rocdecode|rocjpeg)_api)_trace)\.csv(?:\.gz|\.zst|\.xz)?$"
)
"""Names of the files of one process, which share a prefix."""
_THREAD_TRACE_FOLDER: Final = "ui_output_"
"""Beginning of the names of folders with decoded thread traces of rocprofv3."""
_COLLECTED: Final = re.compile(r"\.slice_\d+$")
_REPORT: Final = re.compile(r"\.(?:nsys-rep|qdrep|qdstrm)$")
_SUFFIXES: Final = (
    *(f".json{packed}" for packed in ("", ".gz", ".zst", ".xz")),
    ".pftrace",
    ".perfetto-trace",
    ".sqlite",
    *(f"kernel_trace.csv{packed}" for packed in ("", ".gz", ".zst", ".xz")),
)
_XPLANE: Final = ".xplane.pb"
_VIEWED: Final = ".trace.json.gz"
_ALSO_VIEWED: Final = "perfetto_trace.json.gz"
"""Files that XProf writes for each host: all events, and a timeline of at most a million of
them."""
_EXECUTION_TRACE: Final = re.compile(r"[._]et\.json(\.(gz|zst|xz))?$")


@dataclass(frozen=True, slots=True)
class FoundTimeline:
    """The timeline to read, the path that represents it, and the rank that the profile contains."""

    source: Path | bytes | BinaryIO
    path: Path
    rank: int | None = None


def has_trace_name(name: str) -> bool:
    """Whether a file may be a trace, by its name.

    Examples
    --------
    >>> [has_trace_name(name) for name in ("rank0.json.gz", "rank0.et.json", "rank0.txt")]
    [True, False, False]
    """
    return name.endswith(_SUFFIXES) and not _EXECUTION_TRACE.search(name)


def captures_of(path: Path) -> list[Path]:
    """List the traces of CUDA graph captures that are read with a trace."""
    stem = path.name.removesuffix(".gz").removesuffix(".json")
    names = (f"{stem}.capture.json.gz", f"{stem}.capture.json")
    return [found for name in names if (found := path.with_name(name)).is_file()]


def files_read_with(path: Path) -> list[Path]:
    """List the files next to a trace that belong to the same recording and are read with it.

    Examples
    --------
    >>> from pathlib import Path
    >>> files_read_with(Path("missing", "rank0.json.gz"))
    []
    """
    from longpole.mindspore.layouts import files_beside

    if not path.is_file():
        return []
    found = captures_of(path)
    files = files_beside(path)
    if files is not None:
        found += files.files.values()
    rocprof = _ROCPROF_FILE.match(path.name)
    for each in entries(path.parent) if rocprof or _ASCEND_TIMELINE.search(path.name) else ():
        if rocprof is None:
            is_read = _PROFILE_FILE.search(each.name) is not None
        else:
            other = _ROCPROF_FILE.match(each.name)
            is_read = other is not None and other["prefix"] == rocprof["prefix"]
        if is_read:
            found.append(each)
    return found


def profile_timelines(folder: Path) -> list[tuple[Path, int | None]]:
    """List the ranks of a profile folder by path; empty if it is not a profile.

    Raises
    ------
    TraceError
        The profile must be exported first, has several recordings of one rank, or no timeline.
    """
    from longpole.ascend.layout import collected, timelines
    from longpole.ascend.problems import profile_error
    from longpole.mindspore.layouts import contents, drawn_timelines, timeline_files

    exported = timelines(folder)
    if exported:
        return [(timeline.path, timeline.rank) for timeline in exported]
    held = contents(folder)
    found = timeline_files(folder) if held == "timelines" else drawn_timelines(folder)
    if found:
        return found
    binary = collected(folder)
    if binary is not None:
        raise binary
    if held == "other files":
        hint = "analyse it with `longpole mindspore`"
        reason = "a MindSpore profile without a timeline"
        raise profile_error(folder, reason, "no_timeline", hint)
    return [(path, None) for path in _xprof_timelines(folder)]


def _xprof_timelines(folder: Path) -> list[Path]:
    """List the hosts of the profiles in a folder, each by the file with all events."""
    parts = {"profile": "", "plugins": "profile"}.get(folder.name, "plugins/profile")
    profiles = folder / parts
    is_log = profiles.is_dir()
    runs = [run for run in entries(profiles) if run.is_dir()] if is_log else [folder]
    return [path for run in runs for path in _hosts(run, is_log=is_log)]


def _hosts(run: Path, *, is_log: bool) -> list[Path]:
    """List the hosts of one profile; empty if the folder also has other traces."""
    files = [path for path in entries(run) if path.is_file()]
    whole = [path for path in files if path.name.endswith(_XPLANE)]
    known = {path.name.removesuffix(_XPLANE) + _VIEWED for path in whole} | {_ALSO_VIEWED}
    others = [path for path in files if has_trace_name(path.name) and path.name not in known]
    if is_log:
        return whole + others
    return [] if others else whole


def other_timeline(path: Path) -> Path | None:
    """Return the other timeline that XProf wrote for the same run and host.

    Examples
    --------
    >>> from pathlib import Path
    >>> other_timeline(Path("missing", "host.xplane.pb")) is None
    True
    """
    for ending, other in ((_XPLANE, _VIEWED), (_VIEWED, _XPLANE)):
        if path.name.endswith(ending):
            found = path.with_name(path.name.removesuffix(ending) + other)
            return found if found.is_file() else None
    return None


def profile_rank(path: Path) -> int | None:
    """Return the rank in the names around a timeline; None if it is not of a profile."""
    from longpole.ascend.layout import rank_of
    from longpole.mindspore.layouts import rank_of_file

    rank = rank_of_file(path)
    return rank_of(path) if rank is None else rank


def timeline_of(path: Path) -> FoundTimeline | None:
    """Return the timeline that a file or folder represents; None if it is read as it is.

    Raises
    ------
    TraceError
        The profile must be exported first, or has several timelines, or none.
    """
    return timeline_in(path) if path.is_dir() else timeline_at(path)


def timeline_in(folder: Path) -> FoundTimeline | None:
    """Return the one timeline or trace of a folder; None if it has none.

    Raises
    ------
    TraceError
        The profile must be exported first, or has several timelines, or none.
    """
    found = profile_timelines(folder) or [(path, None) for path in _traces(folder)]
    if len(found) > 1:
        raise _several(folder, [path for path, _ in found])
    if found:
        [(path, rank)] = found
        return timeline_at(path) or FoundTimeline(path, path, rank)
    return None


def _traces(folder: Path) -> list[Path]:
    """List the traces of a folder: files with events named like a trace, or the only such file."""
    files = [it for it in entries(folder) if has_trace_name(it.name) and it.is_file()]
    return files if len(files) == 1 else [path for path in files if _holds_events(path)]


def _holds_events(path: Path) -> bool:
    from longpole._core import read_trace
    from longpole.errors import TraceError

    try:
        read_trace(path, args="ids", max_events=1, threads=1)
    except TraceError:
        return False
    return True


def timeline_at(path: Path) -> FoundTimeline | None:
    """Return the timeline that a path represents; None if it is not a file of a profile.

    Raises
    ------
    TraceError
        Files of this kind cannot be read.
    """
    if _REPORT.search(path.name):
        raise _not_exported_report(path)
    if path.is_file() and _is_thread_trace(path):
        raise _thread_trace(path)
    if path.is_dir():
        return _only_timeline(path)
    if _PROFILE_FILE.search(path.name) and path.is_file():
        return _timeline_of_file(path)
    return None


def _is_thread_trace(path: Path) -> bool:
    return path.suffix == ".att" or path.parent.name.startswith(_THREAD_TRACE_FOLDER)


def _thread_trace(path: Path) -> TraceError:
    from longpole.ascend.problems import profile_error

    return profile_error(
        path,
        "a thread trace of rocprofv3, with the instructions of waves and no timeline",
        "no_events",
        "record a timeline with `rocprofv3 --sys-trace --output-format rocpd -- PROGRAM`",
    )


def _table_of_ascend(path: Path) -> TraceError:
    from longpole.ascend.problems import profile_error

    return profile_error(
        path,
        "a table of an Ascend profile, not a timeline",
        "no_events",
        "give the folder around it: `longpole summary DIR` reads its timeline, and "
        "`longpole mindspore DIR` its tables",
    )


def _only_timeline(folder: Path) -> FoundTimeline:
    from longpole.ascend.joined import joined_timeline
    from longpole.ascend.layout import only_timeline

    found = only_timeline(folder)
    source = joined_timeline(found.parts) if found.parts else found.path
    return FoundTimeline(cast("Path | BinaryIO", source), found.path, found.rank)


def _timeline_of_file(path: Path) -> FoundTimeline:
    """Return the timeline of a file that is named like one of a profile."""
    from longpole.ascend.columns import layout_of
    from longpole.ascend.database import database_timeline
    from longpole.ascend.layout import rank_of
    from longpole.ascend.problems import not_exported
    from longpole.ascend.rows import is_of_other_profiler
    from longpole.mindspore.layouts import files_beside
    from longpole.mindspore.refusals import refused_file
    from longpole.mindspore.timeline import rank_events

    if _COLLECTED.search(path.name):
        raise not_exported(path, path.parent)
    refused = refused_file(path)
    if refused is not None:
        raise refused
    if layout_of(path.name) is not None:
        raise _table_of_ascend(path)
    files = files_beside(path)
    if files is not None:
        return FoundTimeline(rank_events(files), path, files.rank)
    if path.suffix == ".db" and not is_of_other_profiler(path):
        return FoundTimeline(cast("BinaryIO", database_timeline(path)), path, rank_of(path))
    return FoundTimeline(path, path, rank_of(path))


def _not_exported_report(path: Path) -> Exception:
    from longpole.ascend.problems import profile_error

    reason = "a report of Nsight Systems, which only its own tools read"
    export = f"nsys export --type sqlite {shlex.quote(str(path))}"
    hint = f"export it: `{export}`, and pass the .sqlite file"
    return profile_error(path, reason, "not_exported", hint)


def _several(folder: Path, paths: list[Path]) -> Exception:
    from longpole.ascend.problems import profile_error

    most = 3
    names = ", ".join(str(path.relative_to(folder)) for path in paths[:most])
    more = f" and {len(paths) - most} more" if len(paths) > most else ""
    compare = f"`longpole ranks {shlex.quote(str(folder))}`"
    hint = f"name one of them, or compare the ranks with {compare}"
    reason = f"a directory with {len(paths)} timelines: {names}{more}"
    return profile_error(folder, reason, "several_timelines", hint)
