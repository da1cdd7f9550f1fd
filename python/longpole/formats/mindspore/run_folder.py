"""The folder of a recording, and its `profiler_info_{rank}.json` with the time and place."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from longpole.formats.mindspore.option_table import OptionFinding
from longpole.formats.mindspore.output import new_folder, write_new

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.formats.mindspore.options import ProfilerOptions


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


@dataclass(slots=True)
class ProfilerInfo:
    """Contents of one rank's file; times are local, as in MindSpore."""

    rank_id: int
    rank_size: int
    context_mode: str
    times: dict[str, str] = field(default_factory=dict)
    diff_time: int | None = None
    """Offset from the monotonic clock to the calendar time, in microseconds."""

    def mark(self, name: str) -> None:
        """Record the time of an event, such as `profiling_start_time`."""
        self.times[name] = time.strftime("%Y-%m-%d %H:%M:%S")
        if name == "profiling_start_time":
            self.diff_time = (time.time_ns() - time.monotonic_ns()) // 1000

    def write(self, folder: Path, recorder: str) -> Path:
        """Write the file; `recorder` is the library that recorded."""
        from importlib.metadata import version

        values: dict[str, Any] = {
            "context_mode": self.context_mode,
            "rank_id": str(self.rank_id),
            "rank_size": self.rank_size,
            "is_heterogeneous": False,
            **self.times,
            "diff_time": self.diff_time,
            "recorder": recorder,
            "longpole_version": version("longpole"),
        }
        return write_new(folder / f"profiler_info_{self.rank_id}.json", json.dumps(values))
