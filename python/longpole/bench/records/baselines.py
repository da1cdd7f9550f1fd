"""Measurements stored under a name, to compare later ones with.

A baseline is a copy of a file of records, `NAME.jsonl`, in the folder `.longpole/baselines` of the
working directory, or in the one of `LONGPOLE_BASELINES`. It is written completely or not at all,
and replaces another one only on request.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from pathlib import Path
from typing import Final

from longpole.bench.records.samples import read_measurements
from longpole.errors import ResultsError
from longpole.files.writing import new_file

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)


def baseline_folder() -> Path:
    """Return the folder of the baselines; it need not exist."""
    return Path(os.environ.get("LONGPOLE_BASELINES") or Path(".longpole", "baselines"))


def baseline_path(name: str) -> Path:
    """Return the file of a baseline; it need not exist.

    Raises
    ------
    ValueError
        The name is not made of letters, digits, dots, dashes and underscores.
    """
    if not _NAME.fullmatch(name):
        message = f"{name!r} is not a valid baseline name: use letters, digits and . _ -"
        raise ValueError(message)
    return baseline_folder() / f"{name}.jsonl"


def find_measurements(name: str) -> Path:
    """Return the file at a path, or else the baseline with that name.

    Raises
    ------
    FileNotFoundError
        Neither exists.
    """
    path = Path(name)
    if path.exists():
        return path
    if _NAME.fullmatch(name) and baseline_path(name).exists():
        return baseline_path(name)
    message = "there is neither a file nor a baseline of that name"
    raise FileNotFoundError(errno.ENOENT, message, name)


def save_baseline(name: str, source: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Store a file of records under a name.

    Parameters
    ----------
    name
        Letters, digits, dots, dashes and underscores.
    source
        The file; it is copied unchanged.
    overwrite
        Replace a baseline with the same name.

    Raises
    ------
    ResultsError
        The file contains no measurement.
    FileExistsError
        A baseline with that name exists.
    """
    target = baseline_path(name)
    if not any(runs.log_times for runs in read_measurements(source).runs.values()):
        message = f"no run in {os.fspath(source)} succeeded"
        raise ResultsError(message)
    target.parent.mkdir(parents=True, exist_ok=True)
    with new_file(target, force=overwrite, private=True) as unfinished:
        shutil.copyfile(source, unfinished)
    return target
