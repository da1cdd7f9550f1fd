"""Problems of a profile's files: how often each occurs, and its first lines."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from longpole.errors import TraceError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_LINES_KEPT: Final = 20


_KINDS: Final = {
    "bad_utf8": ("bytes that are not UTF-8", "shown as the replacement character"),
    "byte_order_mark": ("the file starts with a byte order mark", "it was skipped"),
    "cut_line": (
        "the last line has no line end, as in a truncated file",
        "the line is left out",
    ),
    "bad_row": ("a line is not in the format of MindSpore", "the line is left out"),
    "bad_number": ("a field is not a number", "the line is left out"),
    "damaged_stamp": (
        "a timestamp is in scientific notation, as spreadsheets write it",
        "its digits are lost, so the line is left out",
    ),
    "extra_columns": ("the file has unknown columns", "they are ignored"),
    "extra_fields": ("a line has more fields than the header", "the line is left out"),
    "unmatched_start": ("a start has no end", "it has no duration"),
    "unmatched_end": ("an end has no start", "it is left out"),
    "unknown_mark": (
        "start_end is not 0, 1 or 2",
        "the line is not in the timeline",
    ),
    "clock_stepped_back": (
        "an end is before its start",
        "its duration is unknown, so it is left out of means",
    ),
    "no_time": ("a line has no timestamp", "it is not in the timeline"),
    "no_memory": ("no line has a memory usage", "there is no host memory table"),
    "missing_file": ("a file that belongs to the profile is missing", "its data is missing"),
    "unknown_operator": ("an operator is not in the profile", "it has no row"),
    "shapes_not_told_apart": (
        "an operator ran with several shapes, and its runs cannot be assigned to them",
        "the times by shape are unknown",
    ),
    "shared_kernels": (
        "operators of different shapes share kernels",
        "the kernel time by shape is unknown",
    ),
    "several_graphs": (
        "the profile has several graphs",
        "operators are identified by their full names only",
    ),
    "steps_without_tasks": (
        "the file has no device tasks for some steps",
        "the timeline does not mark these steps",
    ),
    "steps_unequal": (
        "the points of a step have different numbers of steps",
        "only steps with all points are listed",
    ),
    "step_without_points": ("a step lacks one of its points", "the step is left out"),
    "bad_json": ("the JSON is truncated or damaged", "the file is ignored"),
    "lengths_differ": (
        "samples of one clock have different lengths",
        "each mean uses the samples that exist",
    ),
    "few_samples": (
        "there are too few samples of CPU and queues to name a bottleneck",
        "bottlenecks are unknown; sample more often or longer",
    ),
    "counts_differ": (
        "the pipeline and the CPU file have different operators",
        "CPU use and bottlenecks are unknown",
    ),
    "unit_not_named": (
        "a column does not name its unit",
        "its values are shown without conversion",
    ),
    "other_clock": (
        "its timestamps use another clock than those of the operators",
        "it is not part of the timeline",
    ),
    "far_apart": (
        "timestamps are more than 115 days apart, because of two clocks or damaged digits",
        "the length of the timeline is meaningless",
    ),
    "several_profiles": ("the rank has several profiles", "the newest is read"),
    "refused": ("the file is not supported offline", "it is ignored"),
}
"""The sentence and the consequence of each code."""


@dataclass(frozen=True, slots=True)
class FileFinding:
    """One kind of problem in one file, with the number of occurrences."""

    code: str
    file: str
    count: int
    sentence: str
    effect: str
    """Its consequence."""
    lines: tuple[int, ...] = ()
    """Line numbers of the first occurrences (from 1), at most 20."""
    detail: str | None = None
    """Further information about the first occurrence."""


class Findings:
    """Collects findings; memory is bounded by the number of files, not of lines."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], FileFinding] = {}

    def add(
        self, code: str, file: Path, line: int | None = None, detail: str | None = None
    ) -> None:
        """Count an occurrence; `detail` is kept for the first."""
        key = (code, file.name)
        known = self._found.get(key) or FileFinding(*key, 0, *_KINDS[code], detail=detail)
        lines = known.lines
        if line is not None and len(lines) < _LINES_KEPT:
            lines = (*lines, line)
        self._found[key] = replace(known, count=known.count + 1, lines=lines)

    def include(self, found: Iterable[FileFinding]) -> None:
        """Add other findings; of those with the same code and file, the first is kept."""
        for each in found:
            self._found.setdefault((each.code, each.file), each)

    def all(self) -> tuple[FileFinding, ...]:
        """Return the findings, in the order of their first occurrences."""
        return tuple(self._found.values())


# Errors about a MindSpore profile: the code, the file, the line and what to do.


class ProfileError(TraceError):
    """A profile, or one of its files, cannot be read.

    `code` is a short name for programs, `path` the file, `line` its line (from 1, None for the
    whole file), `hint` what to do next.
    """

    line: int | None

    def __init__(
        self,
        path: str | Path,
        code: str,
        message: str,
        *,
        line: int | None = None,
        hint: str | None = None,
    ) -> None:
        place = f"{path}:{line}" if line else f"{path}"
        super().__init__(f"{place}: {message}")
        self.code, self.path, self.offset = code, str(path), 0
        self.line, self.hint = line, hint


class RankError(ProfileError):
    """The analysis of one rank failed; `rank` is its number, and the cause is chained."""

    rank: int

    def __init__(self, rank: int, cause: ProfileError) -> None:
        message = str(cause).removeprefix(f"{cause.path}: ")
        where = cause.path or ""
        super().__init__(where, cause.code, f"rank {rank}: {message}", hint=cause.hint)
        self.rank, self.line = rank, cause.line
