"""Analyses a MindSpore profile of any number of ranks, without MindSpore."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, overload

from longpole.formats.mindspore.device_tables import DeviceTables, read_devices
from longpole.formats.mindspore.findings import ProfileError, RankError
from longpole.formats.mindspore.layouts import find_ranks
from longpole.formats.mindspore.output import new_folder
from longpole.formats.mindspore.rank_analysis import (
    Asked,
    RankAnalysis,
    analyse_rank,
    write_rank,
)
from longpole.formats.mindspore.tables import write_devices
from longpole.words.data import Data

if TYPE_CHECKING:
    import os


@dataclass(frozen=True, slots=True)
class FailedRank(Data):
    """A rank that could not be analysed, and why."""

    rank: int
    code: str
    path: str | None
    line: int | None
    """Line (from 1); None for the whole file."""
    message: str
    hint: str | None

    @classmethod
    def of(cls, error: RankError) -> FailedRank:
        """Return the failure that an error reports."""
        return cls(error.rank, error.code, error.path, error.line, str(error), error.hint)


@dataclass(frozen=True, slots=True)
class Analysis(Data):
    """The results by rank, and the written files."""

    output: Path | None
    ranks: Sequence[RankAnalysis]
    failed: Sequence[FailedRank] = ()
    """The ranks that could not be analysed."""
    devices: Sequence[DeviceTables] = ()
    """Contents of the exported files of Ascend devices."""
    written: Sequence[Path] = ()
    """Files written for devices; files of a rank are listed with the rank."""


@overload
def offline_analyse(
    path: str | os.PathLike[str],
    pretty: bool = ...,  # noqa: FBT001
    step_list: Sequence[int] | None = ...,
    mode: Literal["sync"] = ...,
    *,
    output: str | os.PathLike[str] | None = ...,
    developer_rows: bool = ...,
) -> Analysis: ...
@overload
def offline_analyse(
    path: str | os.PathLike[str],
    pretty: bool = ...,  # noqa: FBT001
    step_list: Sequence[int] | None = ...,
    *,
    mode: Literal["async"],
    output: str | os.PathLike[str] | None = ...,
    developer_rows: bool = ...,
) -> Future[Analysis]: ...
def offline_analyse(
    path: str | os.PathLike[str],
    pretty: bool = False,  # noqa: FBT001, FBT002 (MindSpore's signature)
    step_list: Sequence[int] | None = None,
    mode: Literal["sync", "async"] = "sync",
    *,
    output: str | os.PathLike[str] | None = None,
    developer_rows: bool = True,
) -> Analysis | Future[Analysis]:
    """Analyse all ranks of a MindSpore profile.

    Nothing is deleted or overwritten, and only `output` is written to.

    Parameters
    ----------
    path
        The profile folder, in any layout.
    pretty
        Indent the JSON files.
    step_list
        Consecutive step numbers (from 1) to which the step trace and the timeline are cut; all
        steps if it is empty. Tables of operators cover the whole run, as in MindSpore.
    mode
        `"async"` returns a `Future` at once; the analysis runs in a thread. Any other value but
        `"sync"` is replaced by it with a warning, as by MindSpore.
    output
        Folder for the files; by default nothing is written.
    developer_rows
        Whether to use the rows of level 0 of `host_info`.

    Raises
    ------
    TypeError
        `step_list` is not a list of integers.
    ValueError
        The step numbers are not consecutive.
    RankError
        No rank can be analysed; the error has the first rank, the file and the line. If only some
        ranks fail, they are in `failed`.
    ProfileError
        The folder has no profile, or only what must be exported first.
    FileExistsError
        A file to be written exists.
    OSError
        A file cannot be read or written.
    """
    if mode not in ("sync", "async"):
        message = f"mode is 'sync' or 'async', not {mode!r}: 'sync' is used, as by MindSpore"
        warnings.warn(message, stacklevel=2)
        mode = "sync"
    steps = None if step_list is None else checked_steps(step_list) or None
    asked = Asked(steps, developer_rows, pretty)
    target = None if output is None else Path(output)
    analyse = partial(_analyse, Path(path), target, asked)
    if mode == "sync":
        return analyse()
    executor = ThreadPoolExecutor(1, thread_name_prefix="longpole-mindspore")
    future = executor.submit(analyse)
    executor.shutdown(wait=False)
    return future


def checked_steps(step_list: Sequence[int]) -> list[int]:
    """Return the steps sorted, without modifying the list.

    Raises
    ------
    TypeError
        It is not a list of integers.
    ValueError
        Its numbers are not consecutive.

    Examples
    --------
    >>> checked_steps([3, 1, 2])
    [1, 2, 3]
    """
    whole = isinstance(step_list, list | tuple) and all(type(step) is int for step in step_list)
    if not whole:
        message = "step_list must be a list of integers"
        raise TypeError(message)
    steps = sorted(step_list)
    if steps and steps != list(range(steps[0], steps[0] + len(steps))):
        message = "the numbers of step_list must be consecutive"
        raise ValueError(message)
    return steps


def _analyse(path: Path, output: Path | None, asked: Asked) -> Analysis:
    devices = read_devices(path, asked.steps)
    try:
        ranks = find_ranks(path)
    except ProfileError:
        if not devices:
            raise
        ranks = []
    if output is not None:
        new_folder(output)
    found, errors = [], []
    for files in ranks:
        try:
            rank = analyse_rank(files, asked)
            if output is not None:
                rank = write_rank(rank, output, asked)
        except ProfileError as error:
            of_rank = RankError(files.rank, error)
            of_rank.__cause__ = error
            errors.append(of_rank)
            continue
        found.append(rank)
    if errors and not found and not devices:
        raise errors[0]
    failed = [FailedRank.of(error) for error in errors]
    written = [] if output is None else write_devices(devices, output)
    return Analysis(output, found, failed, devices, written)
