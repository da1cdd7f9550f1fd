"""The folder of a recording: whose it is, and what was in it before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.mindspore.option_findings import OptionFinding
from longpole.mindspore.output import new_folder

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.mindspore.options import ProfilerOptions

__all__ = ["cut_trace", "run_folder"]

_WINDOW: Final = 1 << 20
_BETWEEN: Final = b"\n  },"
"""What stands between two events in a trace that Kineto wrote, a line for each field."""


def run_folder(options: ProfilerOptions) -> tuple[Path, list[OptionFinding]]:
    """Make `output_path/profiler` with mode 0700; the next free one where it has files."""
    first = options.output_path / "profiler"
    folder, number = first, 1
    while folder.is_dir() and any(folder.iterdir()):
        number += 1
        folder = first.with_name(f"profiler_{number}")
    new_folder(folder)
    if folder == first:
        return folder, []
    message = f"{first} has files already; this recording goes into {folder}"
    return folder, [OptionFinding("folder_exists", "output_path", message, folder)]


def cut_trace(path: Path, limit_bytes: int) -> bool:
    """Cut a trace that Kineto wrote behind its last whole event below a size; tell whether.

    What is left is sound JSON. A file of another layout is left as it is.
    """
    if path.stat().st_size <= limit_bytes:
        return False
    end = _end_of_event(path, limit_bytes)
    if end is None:
        return False
    with path.open("r+b") as file:
        file.truncate(end)
        file.seek(end)
        file.write(b"\n  }\n]}\n")
    return True


def _end_of_event(path: Path, before: int) -> int | None:
    """Find where the last event before a byte ends, looking at a part of the file at a time."""
    with path.open("rb") as file:
        end = before
        while end > 0:
            start = max(0, end - _WINDOW)
            file.seek(start)
            place = file.read(end - start).rfind(_BETWEEN)
            if place >= 0:
                return start + place
            end = start + len(_BETWEEN) - 1 if start else 0
    return None
