"""Writes the results of an analysis: CSV texts, and new files that only their owner may read."""

from __future__ import annotations

import csv
import io
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

_FOLDER, _FILE = 0o700, 0o600


def csv_text(rows: Iterable[Sequence[Any]], line_end: str = "\r\n") -> str:
    """Return rows as CSV; MindSpore's lines end in CR LF."""
    text = io.StringIO()
    csv.writer(text, lineterminator=line_end).writerows(rows)
    return text.getvalue()


def new_folder(path: Path) -> None:
    """Create a new folder with mode 0700."""
    path.mkdir(mode=_FOLDER, parents=True, exist_ok=True)


def write_new(path: Path, content: str | Iterable[bytes]) -> Path:
    """Write a new file with mode 0600, completely or not at all.

    Raises
    ------
    FileExistsError
        The file exists; it is not overwritten.
    """
    if path.exists():
        message = f"{path} already exists; name another folder"
        raise FileExistsError(message)
    new_folder(path.parent)
    unfinished = path.with_name(f".{path.name}.part-{os.getpid()}")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FILE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            chunks = (content.encode(),) if isinstance(content, str) else content
            file.writelines(chunks)
        # Creating a link fails if another program created the file meanwhile; a rename would
        # replace it.
        os.link(unfinished, path)
    finally:
        unfinished.unlink()
    return path
