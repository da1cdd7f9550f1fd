"""What is wrong with the files of a profile, counted, with the first lines where it is so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["FileFinding", "Findings"]

_LINES_KEPT: Final = 20


class _Kind(NamedTuple):
    sentence: str
    effect: str


_KINDS: Final = {
    "bad_utf8": _Kind("bytes that are not UTF-8", "shown as the replacement character"),
    "byte_order_mark": _Kind("the file begins with a byte-order mark", "it was skipped"),
    "cut_line": _Kind(
        "the last line has no line end, as in a file that was cut", "the line was left out"
    ),
    "bad_row": _Kind("a line that is not as MindSpore writes it", "the line was left out"),
    "bad_number": _Kind("a field that is not a number", "the line was left out"),
    "damaged_stamp": _Kind(
        "a time stamp in scientific notation, as a spreadsheet writes it",
        "its digits are lost, so the line was left out",
    ),
    "extra_columns": _Kind("columns that are not known", "they were not used"),
    "extra_fields": _Kind("more fields than the header names", "the line was left out"),
    "unmatched_start": _Kind("a start without an end", "it has no duration"),
    "unmatched_end": _Kind("an end without a start", "it was left out"),
    "unknown_mark": _Kind(
        "a value of start_end other than 0, 1 and 2", "the line is not in the timeline"
    ),
    "clock_stepped_back": _Kind(
        "an end before its start", "its duration is not known, so it is left out of means"
    ),
    "no_time": _Kind("lines without a time stamp", "they are not in the timeline"),
    "no_memory": _Kind("no line has a memory usage", "there is no host memory table"),
    "missing_file": _Kind("a file that belongs to the profile is missing", "what it tells is too"),
    "unknown_operator": _Kind("an operator that is not in the profile", "there is no row of it"),
    "shapes_not_told_apart": _Kind(
        "an operator ran with several shapes, and its runs cannot be assigned to them",
        "the times by shape are not known",
    ),
    "shared_kernels": _Kind(
        "kernels that operators of different shapes share",
        "the kernel time by shape is not known",
    ),
    "several_graphs": _Kind(
        "the profile has several graphs", "operators are told apart by their full names alone"
    ),
    "steps_without_tasks": _Kind(
        "steps in which the file has no task of the device", "the timeline does not mark them"
    ),
    "steps_unequal": _Kind(
        "the points of a step have different numbers of steps",
        "only steps that have all points are given",
    ),
    "step_without_points": _Kind("a step without one of its points", "the step was left out"),
    "bad_json": _Kind("the JSON ends too early or is damaged", "nothing of the file was used"),
    "lengths_differ": _Kind(
        "samples of one clock have different lengths", "means are over what each has"
    ),
    "few_samples": _Kind(
        "too few samples of CPU and queues to name a bottleneck",
        "nothing is said of bottlenecks; sample more often, or longer",
    ),
    "counts_differ": _Kind(
        "the pipeline and the CPU file have different operators",
        "CPU use and bottlenecks are not known",
    ),
    "unit_not_named": _Kind("a column does not name its unit", "its values are given as they are"),
    "over_limit": _Kind("the timeline is longer than its limit", "the last events were left out"),
    "other_clock": _Kind(
        "its stamps are of another clock than those of the operators",
        "it is not part of the timeline",
    ),
    "far_apart": _Kind(
        "stamps more than 115 days apart, as of two clocks or damaged digits",
        "the length of the timeline means nothing",
    ),
    "refused": _Kind("a file that is not read offline", "it was not used"),
}


@dataclass(frozen=True, slots=True)
class FileFinding:
    """One kind of thing that is wrong with one file, with how often it was found.

    `lines` are the first lines (from 1) where it is so, at most 20.
    """

    code: str
    file: str
    count: int
    sentence: str
    effect: str
    lines: tuple[int, ...] = ()
    detail: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain values."""
        return {
            "code": self.code,
            "file": self.file,
            "count": self.count,
            "sentence": self.sentence,
            "effect": self.effect,
            "lines": list(self.lines),
            "detail": self.detail,
        }


class Findings:
    """Collects findings; memory is bounded by the number of files, not of lines."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], int] = {}
        self._lines: dict[tuple[str, str], list[int]] = {}
        self._details: dict[tuple[str, str], str | None] = {}

    def add(
        self, code: str, file: Path, line: int | None = None, detail: str | None = None
    ) -> None:
        """Count one; `detail` is kept of the first."""
        key = (code, file.name)
        self._counts[key] = self._counts.get(key, 0) + 1
        lines = self._lines.setdefault(key, [])
        if line is not None and len(lines) < _LINES_KEPT:
            lines.append(line)
        self._details.setdefault(key, detail)

    def include(self, found: Iterable[FileFinding]) -> None:
        """Take over what was found elsewhere; of two with one code and file, the first stays."""
        for each in found:
            key = (each.code, each.file)
            if key not in self._counts:
                self._counts[key] = each.count
                self._lines[key] = list(each.lines)
                self._details[key] = each.detail

    def all(self) -> tuple[FileFinding, ...]:
        """Give what was found, in the order of the first of each."""
        return tuple(self._finding(*key) for key in self._counts)

    def _finding(self, code: str, file: str) -> FileFinding:
        key, kind = (code, file), _KINDS[code]
        return FileFinding(
            code=code,
            file=file,
            count=self._counts[key],
            sentence=kind.sentence,
            effect=kind.effect,
            lines=tuple(self._lines[key]),
            detail=self._details[key],
        )
