"""The folder of a recording, and files that were in it before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longpole.mindspore.option_findings import OptionFinding
from longpole.mindspore.output import new_folder

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.mindspore.options import ProfilerOptions

__all__ = ["run_folder"]


def run_folder(options: ProfilerOptions) -> tuple[Path, list[OptionFinding]]:
    """Create `output_path/profiler` with mode 0700, or the next free name if it has files."""
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
