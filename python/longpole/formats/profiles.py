"""Finds the trace of a folder, and the timelines of profiles that consist of several files.

`FORMATS` lists the kinds of such profiles. A rank of one is a folder, a database, or some of the
files of a folder; one path represents it. A file in none of these formats is passed to the core as
it is, which detects its format by the first bytes.
"""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from longpole.files.opening import entries, first_bytes, names_in

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import BinaryIO

    Ranks = Sequence[tuple[Path, int | None]]
    """The path that represents each rank, and its rank number, if the profile contains it."""

_ASCEND_FILE: Final = re.compile(r"^(?:trace_view|msprof).*\.json$|\.db$|\.slice_\d+$")
_MINDSPORE_FILE: Final = re.compile(r"\.(?:txt|csv|pb)$|^op_range_")
_ASCEND_TIMELINE: Final = re.compile(r"^(?:trace_view|msprof).*\.json$|^ascend_.*\.db$")
_ROCPROF_FILE: Final = re.compile(
    r"^(?P<prefix>(?:.*_)?)(?:agent_info|(?:kernel|memory_copy|memory_allocation|scratch_memory"
    r"|(?:hip|hsa|marker|rccl|rocdecode|rocjpeg)_api)_trace)\.csv(?:\.gz|\.zst|\.xz)?$"
)
"""Names of the files of one process, which share a prefix."""
_COLLECTED: Final = re.compile(r"\.slice_\d+$")
_REPORT: Final = re.compile(r"\.(?:nsys-rep|qdrep|qdstrm)$")
_THREAD_TRACE: Final = re.compile(r"\.(?:att|json)$")
_THREAD_TRACE_FOLDER: Final = "ui_output_"
"""Beginning of the names of folders with decoded thread traces of rocprofv3."""
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
_CAPTURE_FOLDERS: Final = ("capture_traces", "graph_capture_profile")
"""Folders of traces of CUDA graph captures, which vLLM and SGLang write for each rank, and SGLang
also for each batch size (TraceLens' patches of both, and `DecodeCudaGraphRunner` of SGLang)."""
_CAPTURE_RANK: Final = re.compile(r"(?:rank_?|TP-)(\d+)")
_EXECUTION_TRACE: Final = re.compile(r"[._]et\.json(\.(gz|zst|xz))?$")


@dataclass(frozen=True, slots=True)
class FoundTimeline:
    """The timeline to read, the path that represents it, and the rank that the profile contains."""

    source: str | os.PathLike[str] | bytes | BinaryIO
    path: Path | None = None
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class ProfileFormat:
    """A kind of profile in files and folders."""

    files: re.Pattern[str] | None
    """Names of files that can be in this format; None if only folders can."""
    find: Callable[[Path], Ranks]
    """List the ranks in a folder, or the one of a file; empty if it is of another format.

    Raises `TraceError` for what must be exported first."""
    open: Callable[[Path], Path | bytes | BinaryIO]
    """Return the timeline of a rank that was found, as the core reads it."""


def has_trace_name(name: str) -> bool:
    """Whether the name of a file shows that it can be a trace.

    Examples
    --------
    >>> [has_trace_name(name) for name in ("rank0.json.gz", "rank0.et.json", "rank0.txt")]
    [True, False, False]
    """
    return name.endswith(_SUFFIXES) and not _EXECUTION_TRACE.search(name)


def captures_of(path: Path) -> list[Path]:
    """List the traces of CUDA graph captures next to a trace, of all ranks."""
    stem = path.name.removesuffix(".gz").removesuffix(".json")
    names = (f"{stem}.capture.json.gz", f"{stem}.capture.json")
    own = [found for name in names if (found := path.with_name(name)).is_file()]
    folders = [] if own else [path.with_name(name) for name in _CAPTURE_FOLDERS]
    inside = (each for folder in folders if folder.is_dir() for each in entries(folder))
    return own[:1] + sorted(each for each in inside if has_trace_name(each.name))


def captures_of_rank(captures: Sequence[Path], rank: int | None) -> list[Path]:
    """Return the captures of a rank; those of the only captured rank if it has none.

    vLLM captures rank 0 alone. Names without a rank belong to all.

    Examples
    --------
    >>> from pathlib import Path
    >>> names = ["bs_8_rank0.json.gz", "bs_8_rank1.json.gz"]
    >>> [path.name for path in captures_of_rank([*map(Path, names)], 1)]
    ['bs_8_rank1.json.gz']
    """
    named = {path: _CAPTURE_RANK.search(path.name) for path in captures}
    ranks = {path: None if match is None else int(match[1]) for path, match in named.items()}
    known = {number for number in ranks.values() if number is not None}
    chosen = next(iter(known)) if len(known) == 1 else rank
    return [path for path in captures if ranks[path] in {None, chosen}]


def files_read_with(path: Path) -> list[Path]:
    """List the files next to a trace that belong to the same recording and are read with it.

    Examples
    --------
    >>> from pathlib import Path
    >>> files_read_with(Path("missing", "rank0.json.gz"))
    []
    """
    from longpole.formats.mindspore.layouts import files_beside

    if not path.is_file():
        return []
    found = captures_of(path)
    files = files_beside(path)
    if files is not None:
        found += files.files.values()
    rocprof = _ROCPROF_FILE.match(path.name)
    for each in entries(path.parent) if rocprof or _ASCEND_TIMELINE.search(path.name) else ():
        if rocprof is None:
            name = each.name
            is_read = bool(_ASCEND_FILE.search(name) or _MINDSPORE_FILE.search(name))
        else:
            other = _ROCPROF_FILE.match(each.name)
            is_read = other is not None and other["prefix"] == rocprof["prefix"]
        if is_read:
            found.append(each)
    return found


def timeline_of(source: str | os.PathLike[str] | bytes | BinaryIO) -> FoundTimeline:
    """Return the timeline that a file or folder represents; a plain trace is returned as it is.

    Raises
    ------
    TraceError
        The profile must be exported first, or has several timelines, or none.
    """
    if not isinstance(source, str | os.PathLike):
        return FoundTimeline(source)
    path = Path(source)
    found = _found(path)
    if found is not None:
        of_format, ranks = found
        if len(ranks) > 1:
            raise _several(path, [rank_path for rank_path, _ in ranks])
        [(rank_path, rank)] = ranks
        return FoundTimeline(of_format.open(rank_path), rank_path, rank)
    if not path.is_dir():
        return FoundTimeline(source, path)
    traces = _traces(path)
    if len(traces) != 1:
        raise _several(path, traces) if traces else _no_trace(path)
    return timeline_of(traces[0])


def profile_timelines(folder: Path) -> Ranks:
    """List the ranks of a profile folder by path; empty if it is not a profile.

    Raises
    ------
    TraceError
        The profile must be exported first, has several recordings of one rank, or no timeline.
    """
    found = _found(folder)
    return () if found is None else found[1]


def timelines_in(folder: Path) -> list[Path]:
    """List the timelines of a folder: the ranks of its profile, otherwise its traces.

    Raises
    ------
    TraceError
        As for `profile_timelines`.
    """
    return [path for path, _ in profile_timelines(folder)] or _traces(folder)


def _found(path: Path) -> tuple[ProfileFormat, Ranks] | None:
    """Return the format of a file or folder, and its ranks; None if it is in no listed format."""
    is_folder = path.is_dir()
    for each in FORMATS:
        is_named = each.files is not None and each.files.search(path.name) and path.is_file()
        ranks = each.find(path) if is_folder or is_named else ()
        if ranks:
            return each, ranks
    return None


def _ascend(path: Path) -> Ranks:
    from longpole.formats.ascend.layout import rank_of, timelines
    from longpole.formats.ascend.problems import not_exported
    from longpole.formats.ascend.rows import is_of_other_profiler

    if path.is_dir():
        return [(timeline.path, timeline.rank) for timeline in timelines(path)]
    if _COLLECTED.search(path.name):
        raise not_exported(path, path.parent)
    if path.suffix == ".db" and is_of_other_profiler(path):
        return ()
    return [(path, rank_of(path))]


def _open_ascend(path: Path) -> Path | BinaryIO:
    from longpole.formats.ascend.database import database_timeline
    from longpole.formats.ascend.joined import joined_timeline
    from longpole.formats.ascend.layout import only_timeline

    if path.suffix == ".db":
        return cast("BinaryIO", database_timeline(path))
    parts = only_timeline(path).parts if path.is_dir() else ()
    return cast("BinaryIO", joined_timeline(parts)) if parts else path


def _is_json(path: Path) -> bool:
    """Whether the content of a file begins like JSON."""
    return first_bytes(path, 1) in {b"{", b"["}


def _mindspore(path: Path) -> Ranks:
    from longpole.formats.ascend.columns import layout_of
    from longpole.formats.ascend.problems import profile_error
    from longpole.formats.mindspore.layouts import (
        contents,
        drawn_timelines,
        rank_of_file,
        refused_file,
        timeline_files,
    )

    if path.is_dir():
        texts = contents(path) == "timelines"
        return timeline_files(path) if texts else drawn_timelines(path)
    refused = refused_file(path)
    if refused is not None:
        raise refused
    if layout_of(path.name) is not None and not _is_json(path):
        reason = "a table of an Ascend profile, not a timeline"
        hint = "give the folder around it: `longpole summary DIR` reads its timeline and its tables"
        raise profile_error(path, reason, "no_events", hint)
    rank = rank_of_file(path)
    return () if rank is None else [(path, rank)]


def _open_mindspore(path: Path) -> Path | bytes:
    from longpole.formats.mindspore.layouts import files_beside
    from longpole.formats.mindspore.timeline import rank_events

    files = files_beside(path)
    return path if files is None else rank_events(files)


def _not_exported(path: Path) -> Ranks:
    """Raise for reports and raw files that only the profiler's own tools can read."""
    from longpole.formats.ascend.layout import collected
    from longpole.formats.ascend.problems import profile_error

    if not path.is_dir():
        reason = "a report of Nsight Systems, which only its own tools read"
        export = f"nsys export --type sqlite {shlex.quote(str(path))}"
        hint = f"export it: `{export}`, and pass the .sqlite file"
        raise profile_error(path, reason, "not_exported", hint)
    raw = collected(path)
    if raw is not None:
        raise raw
    return ()


def _thread_trace(path: Path) -> Ranks:
    """Raise for a thread trace of rocprofv3, as it was recorded or decoded."""
    from longpole.formats.ascend.problems import profile_error

    is_decoded = path.parent.name.startswith(_THREAD_TRACE_FOLDER)
    if path.is_dir() or not (path.suffix == ".att" or is_decoded):
        return ()
    reason = "a thread trace of rocprofv3, with the instructions of waves and no timeline"
    hint = "record a timeline with `rocprofv3 --sys-trace --output-format rocpd -- PROGRAM`"
    raise profile_error(path, reason, "no_events", hint)


def _without_timeline(folder: Path) -> Ranks:
    from longpole.formats.ascend.problems import profile_error
    from longpole.formats.mindspore.layouts import contents

    if contents(folder) == "other files":
        hint = "`longpole summary DIR` reads its tables"
        reason = "a MindSpore profile without a timeline"
        raise profile_error(folder, reason, "no_timeline", hint)
    return ()


def _xprof(folder: Path) -> Ranks:
    return [(path, None) for path in _xprof_timelines(folder)]


def _as_it_is(path: Path) -> Path:
    return path


FORMATS: Final = (
    ProfileFormat(_ASCEND_FILE, _ascend, _open_ascend),
    ProfileFormat(_MINDSPORE_FILE, _mindspore, _open_mindspore),
    ProfileFormat(_REPORT, _not_exported, _as_it_is),
    ProfileFormat(_THREAD_TRACE, _thread_trace, _as_it_is),
    ProfileFormat(None, _without_timeline, _as_it_is),
    ProfileFormat(None, _xprof, _as_it_is),
)
"""The kinds of profiles, in the order in which a path is checked against them."""


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
    """Return the rank in the names of the folders and files around a timeline, or None."""
    from longpole.formats.ascend.layout import rank_of
    from longpole.formats.mindspore.layouts import rank_of_file

    rank = rank_of_file(path)
    return rank_of(path) if rank is None else rank


def _traces(folder: Path) -> list[Path]:
    """List the traces of a folder: files with events named like a trace, or its only such file.

    That file is read even without events, so that the error says what is wrong with it.
    """
    files = [it for it in entries(folder) if has_trace_name(it.name) and it.is_file()]
    is_clear = len(files) == 1 and not folders_with_traces(folder)
    return files if is_clear else [path for path in files if _holds_events(path)]


def _holds_events(path: Path) -> bool:
    from longpole._core import read_trace
    from longpole.errors import TraceError

    try:
        read_trace(path, args="ids", max_events=1, threads=1)
    except TraceError:
        return False
    return True


def folders_with_traces(folder: Path) -> list[Path]:
    """List the folders in a folder that have files named like a trace.

    Examples
    --------
    >>> from pathlib import Path
    >>> folders_with_traces(Path("missing"))
    []
    """
    folders = [it for it in entries(folder) if it.is_dir()] if folder.is_dir() else []
    return [it for it in folders if any(map(has_trace_name, names_in(it)))]


def _no_trace(folder: Path) -> Exception:
    from longpole.formats.ascend.problems import profile_error

    inside = folders_with_traces(folder)
    hint = "give a trace, such as a .json.gz, .sqlite or .xplane.pb file"
    if inside:
        hint = f"give one of its folders, such as `longpole {shlex.quote(str(inside[0]))}`"
    return profile_error(folder, "a directory without a trace", "is_a_directory", hint)


def _several(folder: Path, paths: list[Path]) -> Exception:
    from longpole.formats.ascend.problems import profile_error

    most = 3
    names = ", ".join(str(path.relative_to(folder)) for path in paths[:most])
    more = f" and {len(paths) - most} more" if len(paths) > most else ""
    compare = f"`longpole ranks {shlex.quote(str(folder))}`"
    hint = f"name one of them, or compare the ranks with {compare}"
    reason = f"a directory with {len(paths)} timelines: {names}{more}"
    return profile_error(folder, reason, "several_timelines", hint)
