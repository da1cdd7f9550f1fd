"""Rank, device, host and clock of a recording, from the job directory of msprof.

`device_N/info.json.N` is next to the data of a device; `device_N/start_info.N` relates the
monotonic clock of the machine to calendar time. Both are JSON, and can be truncated or missing.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from longpole.files.opening import matching, read_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_DEVICE_FOLDER: Final = re.compile(r"^device_(\d+)$")
_NEAREST: Final = 3
_LARGEST: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class Job:
    """The recording of one device. A value is None if the files lack it."""

    folder: Path
    device: int
    rank: int | None = None
    host: str | None = None
    process: int | None = None
    base_ns: int | None = None
    """Offset of calendar time from the machine's clock, in ns."""
    began_ns: int | None = None
    """Start of the recording, in ns since 1970."""
    findings: tuple[str, ...] = ()
    """Problems found in the files, one sentence each."""


def read_job(timeline: Path) -> Job | None:
    """Read the job directory of a timeline; None without one, or if it is for one of many devices.

    A timeline below a folder `device_N` belongs to that device.
    """
    folders = list(timeline.absolute().parents)[:_NEAREST]
    if timeline.is_dir():
        folders.insert(0, timeline.absolute())
    for folder in folders:
        if _DEVICE_FOLDER.match(folder.name):
            return _job(folder)
        inner = list(_device_folders(folder))
        if inner:
            return _job(inner[0]) if len(inner) == 1 else None
    return None


def _device_folders(folder: Path) -> Iterator[Path]:
    yield from (it for it in matching(folder, "device_*") if _DEVICE_FOLDER.match(it.name))


def _job(folder: Path) -> Job:
    findings: list[str] = []
    device = int(folder.name.rpartition("_")[2])
    device_info = _document(folder / f"info.json.{device}", findings)
    start = _document(folder / f"start_info.{device}", findings)
    rank, process = _number(device_info.get("rank_id")), _number(device_info.get("pid"))
    began_us = _number(start.get("collectionTimeBegin"))
    clock_ns = _number(start.get("clockMonotonicRaw"))
    is_paired = began_us is not None and clock_ns is not None
    host = device_info.get("hostname")
    return Job(
        folder,
        device,
        rank=None if rank is None or rank < 0 else rank,
        host=host if isinstance(host, str) and host else None,
        process=process,
        base_ns=(began_us or 0) * 1000 - (clock_ns or 0) if is_paired else None,
        began_ns=None if began_us is None else began_us * 1000,
        findings=tuple(findings),
    )


def _document(path: Path, findings: list[str]) -> dict[str, Any]:
    """Read a JSON object; add a finding and return an empty one if it is not valid."""
    if not path.is_file():
        return {}
    try:
        found = json.loads(read_bytes(path).removeprefix(b"\xef\xbb\xbf").decode(errors="replace"))
    except (ValueError, RecursionError) as error:
        findings.append(f"{path.name} is not valid JSON ({error}): its contents are ignored")
        return {}
    if isinstance(found, dict):
        return found
    findings.append(f"{path.name} is not a JSON object and is ignored")
    return {}


def _number(value: object) -> int | None:
    """Return an integer, given as a number or a string of digits."""
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,19}", value.strip()):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) >= _LARGEST:
        return None
    return value
