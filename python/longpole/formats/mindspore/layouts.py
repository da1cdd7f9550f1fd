"""Finds the files of each rank in a profile folder, in every layout of MindSpore.

`OUT/profiler/` with the rank at the end of each name,
`OUT/{host}_{pid}_{time}_ascend_ms/FRAMEWORK/`, `rank-{rank}_{time}_ascend_ms`, and any of these
folders itself. Some files are not used offline; a table says why, and what to do instead.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from longpole.files.opening import entries
from longpole.formats.mindspore.findings import ProfileError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping

    from longpole.formats.mindspore.findings import Findings

_DEPTH: Final = 4
_NAME: Final = re.compile(
    r"(?P<stem>[a-z][a-z_]*?)_(?P<rank>[0-9]{1,9})"
    r"(?P<tail>_detail_time|_detail|_type)?\.(?:csv|txt|json|pb)"
)
_DRAWN: Final = re.compile(r"(?:(?:ascend|cpu|gpu)_)?timeline_display_(?P<rank>[0-9]{1,9})\.json")
_BARE: Final = re.compile(r"(?P<stem>op_range)_(?P<rank>[0-9]{1,9})(?P<tail>)")
_TIMED: Final = (
    "cpu_op_execute_timestamp",
    "gpu_op_execute_timestamp",
    "activity_execute_timestamp",
    "host_info",
    "output_timeline_data",
)
_ANALYSED: Final = (
    *_TIMED,
    "cpu_op_detail_info",
    "gpu_op_detail_info",
    "step_trace_profiling",
    "pipeline_profiling",
    "flops",
    "cpu_ms_memory_record",
    "step_trace_raw_detail_time",
)
WITHOUT_TIMELINE: Final = frozenset(_ANALYSED).difference(_TIMED) | {
    "cpu_framework",
    "gpu_framework",
    "cpu_op_type_info",
    "gpu_op_type_info",
    "gpu_activity_data",
    "start_time",
    "dataset_iterator_profiling",
    "device_queue_profiling",
    "minddata_cpu_utilization",
}
"""Kinds of files that an analysis reads and that are not timelines."""
_INNER: Final = frozenset({"host_info", "FRAMEWORK", "ASCEND_PROFILER_OUTPUT"})
_TIME: Final = re.compile(r"_([0-9]{14,17})_ascend_ms$")
_DIGITS: Final = 17
_COLLECTED: Final = ("PROF_*", "JOB*", "*/PROF_*", "*/JOB*")
_NO_PROFILE: Final = (
    "give the folder that was the profiler's output_path, or the `profiler` or `*_ascend_ms` in it"
)
_EXPORT: Final = (
    "export it first with CANN's `msprof --export=on --output=DIR`, then read the "
    "`mindstudio_profiler_output` or `ASCEND_PROFILER_OUTPUT` folder"
)
_EXPORT_BINARIES: Final = "export it with CANN's `msprof --export=on` and read the result"
_SUMMARY: Final = "a summary by MindSpore; the timeline has the runs in it"
_REFUSED: Final[Mapping[str, str]] = {
    "memory_usage": "a protobuf of one version of MindSpore: analyse it with that MindSpore "
    "(Profiler.analyse()), or record again with MindSpore 2.4 or later and profile_memory=True, "
    "which writes memory_record.csv and operator_memory.csv",
    "op_range": "a binary of one version of MindSpore: analyse it with that MindSpore "
    "(Profiler.analyse()) and read the trace_view.json that it writes",
    "hccl_raw": f"made from binaries by MindSpore; {_EXPORT_BINARIES}",
    "aicore_intermediate_detail": _SUMMARY,
    "aicore_intermediate_type": _SUMMARY,
    "aicpu_intermediate": _SUMMARY,
    "output_op_compute_time": _SUMMARY,
    "output_op_compute_time_detail": _SUMMARY,
    "framework_raw": "shapes and types of inputs, without times",
    "minddata_aicpu": f"the queue of an Ascend device; {_EXPORT_BINARIES}",
    "dynamic_shape_info": "made by MindSpore; ask op_analyse for times by shape",
    "ascend_timeline_display": "a timeline already; read it as a trace",
}
"""Reason why a kind of file is not used, and what to do instead."""


@dataclass(frozen=True, slots=True)
class RankFiles:
    """The files of one rank by kind, such as `cpu_framework`, without rank and suffix."""

    rank: int
    folder: Path
    files: Mapping[str, Path]
    others: tuple[Path, ...] = ()
    """Folders of older profiles of this rank, which are not read."""

    def get(self, kind: str) -> Path | None:
        """Return the file of a kind, or None."""
        return self.files.get(kind)

    def need(self, kind: str) -> Path:
        """Return the file of a kind; raise if it is missing."""
        found = self.files.get(kind)
        if found is None:
            message = f"rank {self.rank} has no file {kind}_{self.rank}"
            raise ProfileError(self.folder, "missing_file", message)
        return found


def contents(folder: Path) -> Literal["timelines", "other files"] | None:
    """Return which kind of text files of MindSpore's profiler a folder contains."""
    kinds = {kind for _, kind, _, _ in _files_below(folder)}
    if not kinds.isdisjoint(_TIMED):
        return "timelines"
    return None if kinds.isdisjoint(_ANALYSED) else "other files"


def is_profile(folder: Path) -> bool:
    """Whether a folder has files of MindSpore's profiler, or exported tables of Ascend devices."""
    from longpole.formats.ascend.layout import output_folders

    return contents(folder) is not None or bool(output_folders(folder))


def named(path: Path) -> tuple[str, int] | None:
    """Parse the kind, such as `cpu_framework`, and the rank in a file name."""
    found = _NAME.fullmatch(path.name) or _BARE.fullmatch(path.name)
    return (f"{found['stem']}{found['tail'] or ''}", int(found["rank"])) if found else None


def rank_of_file(path: Path) -> int | None:
    """Return the rank in the name of a text file with a timeline; None for other files."""
    kind, rank = named(path) or ("", 0)
    return rank if kind in _TIMED else None


def files_beside(path: Path) -> RankFiles | None:
    """Return the files of the rank of a file with a timeline; None for other files."""
    rank = rank_of_file(path)
    if rank is None:
        return None
    home = _home(path)
    found: dict[str, Path] = {}
    for number, kind, file, place in _files_below(home):
        if number == rank and place == home:
            found.setdefault(kind, file)
    return RankFiles(rank, home, found)


def drawn_timelines(folder: Path) -> list[tuple[Path, int | None]]:
    """List the timelines written by MindSpore, `*timeline_display_{rank}.json`, by rank."""
    found = {
        int(match["rank"]): path
        for path in _walk(folder, 0)
        if (match := _DRAWN.fullmatch(path.name)) is not None
    }
    return [(found[rank], rank) for rank in sorted(found)]


def timeline_files(folder: Path) -> list[tuple[Path, int | None]]:
    """List one file of each rank's timeline, which represents it for `read_trace`."""
    ranks = find_ranks(folder)
    for files in ranks:
        _one_profile(folder, files)
    timed = [(next(filter(None, map(it.get, _TIMED)), None), it.rank) for it in ranks]
    return [(path, rank) for path, rank in timed if path is not None]


def _one_profile(folder: Path, files: RankFiles) -> None:
    """Check that a rank has only one profile, so that no timeline is chosen silently."""
    if files.others:
        message = (
            f"rank {files.rank} has several profiles, in {files.folder} and {files.others[-1]}"
        )
        raise ProfileError(folder, "several_profiles", message, hint="name one of the folders")


def find_ranks(folder: str | os.PathLike[str]) -> list[RankFiles]:
    """Return the files of all ranks by rank; of several profiles of a rank, the newest.

    Raises
    ------
    ProfileError
        The folder has no profile (`no_profile`), or only what must be exported first
        (`needs_export`).
    OSError
        The folder cannot be read.
    """
    folder = Path(folder)
    if not folder.is_dir():
        folder.stat()
        raise ProfileError(folder, "no_folder", "this is not a folder", hint=_NO_PROFILE)
    homes: dict[int, dict[Path, dict[str, Path]]] = {}
    for rank, kind, path, home in _files_below(folder):
        homes.setdefault(rank, {}).setdefault(home, {}).setdefault(kind, path)
    found = [_newest_profile(rank, homes[rank]) for rank in sorted(homes)]
    ranks = [files for files in found if files is not None]
    if not ranks:
        raise _nothing(folder)
    return ranks


def _newest_profile(rank: int, homes: Mapping[Path, Mapping[str, Path]]) -> RankFiles | None:
    """Return the newest folder of a rank with something to analyse, or None."""
    having = [home for home, files in homes.items() if any(kind in _ANALYSED for kind in files)]
    if not having:
        return None
    times = {home: _recorded_at(home) for home in having}
    if None in times.values():
        times = {home: _written_at(homes[home]) for home in having}
    *others, newest = sorted(having, key=lambda home: (times[home] or "", str(home)))
    return RankFiles(rank, newest, homes[newest], tuple(others))


def _recorded_at(home: Path) -> str | None:
    """Return the time of the recording in the name of its folder, as digits; None without one."""
    found = _TIME.search(home.name)
    return found[1].ljust(_DIGITS, "0") if found else None


def _written_at(files: Mapping[str, Path]) -> str:
    """Return the last modification time of some files, as digits that sort by time."""
    return f"{max(path.stat().st_mtime_ns for path in files.values()):020}"


def _nothing(folder: Path) -> ProfileError:
    if any(any(folder.glob(pattern)) for pattern in _COLLECTED):
        message = "the profile holds only what Ascend's own tools can read (PROF_*, JOB*)"
        return ProfileError(folder, "needs_export", message, hint=_EXPORT)
    if any(folder.glob("*/ASCEND_PROFILER_OUTPUT")) or any(folder.glob("ASCEND_PROFILER_OUTPUT")):
        message = "the folder has files of Ascend's tools, but no text files of MindSpore"
        hint = "read the traces in ASCEND_PROFILER_OUTPUT instead"
        return ProfileError(folder, "no_profile", message, hint=hint)
    message = "the folder holds no MindSpore profile"
    return ProfileError(folder, "no_profile", message, hint=_NO_PROFILE)


def _files_below(folder: Path) -> Iterator[tuple[int, str, Path, Path]]:
    """Yield rank, kind, path and the profile's own folder, sorted by name."""
    for path in _walk(folder, 0):
        found = named(path)
        if found:
            kind, rank = found
            yield rank, kind, path, _home(path)


def _home(path: Path) -> Path:
    return path.parent.parent if path.parent.name in _INNER else path.parent


def _walk(folder: Path, depth: int) -> Iterator[Path]:
    folders = []
    for path in entries(folder):
        if path.is_file():
            yield path
        elif path.is_dir() and not path.is_symlink() and not path.name.startswith("PROF_"):
            folders.append(path)
    if depth < _DEPTH:
        for inner in folders:
            yield from _walk(inner, depth + 1)


def refused_file(path: Path) -> ProfileError | None:
    """Return why a file of MindSpore's profiler is not a timeline; None if it may be one."""
    kind, _ = named(path) or ("", 0)
    if kind in _REFUSED and kind != "ascend_timeline_display":
        return ProfileError(path, "refused", _REFUSED[kind])
    if kind not in WITHOUT_TIMELINE:
        return None
    hint = "give the folder of the profile, or ask `longpole FOLDER`"
    return ProfileError(path, "no_timeline", f"{kind}: a file without a timeline", hint=hint)


def refuse(files: RankFiles, findings: Findings) -> None:
    """Add a finding for each existing file that is not used."""
    for kind, reason in _REFUSED.items():
        if (path := files.get(kind)) is not None:
            findings.add("refused", path, None, reason)
