"""Analyses a MindSpore profile of any number of ranks, without MindSpore."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, overload

from longpole.mindspore.errors import ProfileError, RankError
from longpole.mindspore.layouts import RankFiles, find_ranks
from longpole.mindspore.output import new_folder
from longpole.mindspore.rank_analysis import RankAnalysis, analyse_rank, write_rank
from longpole.mindspore.rank_compat import write_compatible

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

__all__ = ["Analysis", "AnalysisHandle", "checked_steps", "offline_analyse"]

_MIB: Final = 1024 * 1024
_ENDING: Final = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What MindSpore's own code ends in on damaged files."""


@dataclass(frozen=True, slots=True)
class Analysis:
    """What was found of each rank, by rank, and where files were written."""

    path: Path
    output: Path | None
    ranks: Sequence[RankAnalysis]

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain values."""
        output = None if self.output is None else str(self.output)
        return {"output": output, "ranks": [rank.to_dict() for rank in self.ranks]}


class AnalysisHandle:
    """An analysis that runs in the background; `result()` waits for it, and raises what it did."""

    def __init__(self, future: Future[Analysis]) -> None:
        self._future = future

    def result(self, timeout_s: float | None = None) -> Analysis:
        """Wait for the analysis.

        Raises
        ------
        ProfileError, OSError
            As `offline_analyse` does.
        TimeoutError
            It is not done after `timeout_s`.
        """
        return self._future.result(timeout_s)

    def done(self) -> bool:
        """Tell whether the analysis ended, well or not."""
        return self._future.done()


@dataclass(frozen=True, slots=True)
class _Request:
    path: Path
    output: Path | None
    pretty: bool
    steps: Sequence[int] | None
    compat: str | None
    developer_rows: bool
    limit_bytes: int | None


@overload
def offline_analyse(
    path: str | os.PathLike[str],
    pretty: bool = ...,  # noqa: FBT001
    step_list: Sequence[int] | None = ...,
    mode: Literal["sync"] = ...,
    *,
    output: str | os.PathLike[str] | None = ...,
    compat: Literal["mindspore"] | None = ...,
    developer_rows: bool = ...,
    timeline_limit: int | None = ...,
) -> Analysis: ...
@overload
def offline_analyse(
    path: str | os.PathLike[str],
    pretty: bool = ...,  # noqa: FBT001
    step_list: Sequence[int] | None = ...,
    *,
    mode: Literal["async"],
    output: str | os.PathLike[str] | None = ...,
    compat: Literal["mindspore"] | None = ...,
    developer_rows: bool = ...,
    timeline_limit: int | None = ...,
) -> AnalysisHandle: ...
def offline_analyse(
    path: str | os.PathLike[str],
    pretty: bool = False,  # noqa: FBT001, FBT002 (MindSpore's signature)
    step_list: Sequence[int] | None = None,
    mode: Literal["sync", "async"] = "sync",
    *,
    output: str | os.PathLike[str] | None = None,
    compat: Literal["mindspore"] | None = None,
    developer_rows: bool = True,
    timeline_limit: int | None = None,
) -> Analysis | AnalysisHandle:
    """Analyse a MindSpore profile of all its ranks.

    Nothing is deleted, nothing is written over, and only `output` is written to.

    Parameters
    ----------
    path
        The profile folder, in any layout.
    pretty
        Indent the JSON files.
    step_list
        The steps (from 1) that the step trace and the timeline are cut to: whole numbers that
        follow one another. Tables of operators are of the whole run, as MindSpore sums them up.
    mode
        `"async"` gives a handle at once; the analysis runs in a thread.
    output
        The folder for the files; without one, nothing is written.
    compat
        `"mindspore"` writes the files that MindSpore r2.3 would, byte for byte.
    developer_rows
        Whether to use the rows of level 0 of `host_info`.
    timeline_limit
        The most MiB of a timeline; beyond, its last events are left out (a finding).

    Raises
    ------
    TypeError
        `step_list` is no list of whole numbers.
    ValueError
        Its numbers do not follow one another, or `mode` or `compat` is another word.
    RankError
        A file of a rank cannot be read; the error names the rank, the file and the line.
    ProfileError
        The folder has no profile, or only what must be exported first.
    FileExistsError
        A file to be written exists.
    OSError
        A file cannot be read or written.
    """
    _check_words(mode, compat)
    target = None if output is None else Path(output)
    steps = None if step_list is None else checked_steps(step_list)
    limit = None if timeline_limit is None else timeline_limit * _MIB
    asked = _Request(Path(path), target, pretty, steps, compat, developer_rows, limit)
    if mode == "sync":
        return _analyse(asked)
    return _in_background(asked)


def _check_words(mode: str, compat: str | None) -> None:
    if mode not in ("sync", "async"):
        message = f"mode is 'sync' or 'async', not {mode!r}"
        raise ValueError(message)
    if compat not in (None, "mindspore"):
        message = f"compat is 'mindspore' or None, not {compat!r}"
        raise ValueError(message)


def _in_background(asked: _Request) -> AnalysisHandle:
    executor = ThreadPoolExecutor(1, thread_name_prefix="longpole-mindspore")
    future = executor.submit(_analyse, asked)
    executor.shutdown(wait=False)
    return AnalysisHandle(future)


def checked_steps(step_list: Sequence[int]) -> list[int]:
    """Give the steps in order; the list itself is left as it is.

    Raises
    ------
    TypeError
        It is no list of whole numbers.
    ValueError
        It is empty, or its numbers do not follow one another.

    Examples
    --------
    >>> checked_steps([3, 1, 2])
    [1, 2, 3]
    """
    whole = isinstance(step_list, list | tuple) and all(type(step) is int for step in step_list)
    if not whole:
        message = "step_list is a list of whole numbers"
        raise TypeError(message)
    steps = sorted(step_list)
    if not steps or steps != list(range(steps[0], steps[0] + len(steps))):
        message = "the numbers of step_list follow one another, without gaps and repetitions"
        raise ValueError(message)
    return steps


def _analyse(asked: _Request) -> Analysis:
    ranks = find_ranks(asked.path)
    if asked.output is not None:
        new_folder(asked.output)
    found = [_of_rank(files, asked, len(ranks)) for files in ranks]
    return Analysis(asked.path, asked.output, found)


def _of_rank(files: RankFiles, asked: _Request, n_ranks: int) -> RankAnalysis:
    try:
        found = analyse_rank(files, asked.steps, developer_rows=asked.developer_rows)
        if asked.output is None:
            return found
        if asked.compat is None:
            limit = asked.limit_bytes
            return write_rank(found, asked.output, pretty=asked.pretty, limit_bytes=limit)
        return replace(found, written=_compatible(files, asked, asked.output, n_ranks))
    except ProfileError as error:
        raise RankError(files.rank, error) from error


def _compatible(files: RankFiles, asked: _Request, output: Path, n_ranks: int) -> list[Path]:
    """Write MindSpore's files; where a damaged file ends MindSpore, say so as an error of ours."""
    try:
        return write_compatible(
            files,
            output,
            developer_rows=asked.developer_rows,
            n_ranks=n_ranks,
            limit_bytes=asked.limit_bytes,
        )
    except _ENDING as error:
        message = f"MindSpore itself ends in {type(error).__name__}: {str(error)[:100]}"
        hint = "without compat, the files are read as far as they are sound"
        raise ProfileError(files.folder, "mindspore_fails", message, hint=hint) from error
