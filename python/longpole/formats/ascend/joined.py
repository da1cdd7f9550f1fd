"""Joins a timeline that msprof wrote in parts: one file per iteration, or slices by size.

The parts share one clock. Their contents are passed on unchanged, followed by the rank, host and
clock from the job directory. If the parts are iterations, each becomes a step: msprof marks
iterations only on the device, but a step contains the call that ran it.
"""

from __future__ import annotations

import json
import re
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, Final

from longpole.files.opening import open_file
from longpole.formats.ascend.job import read_job
from longpole.formats.ascend.rows import PieceFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from longpole.formats.ascend.job import Job

_ITERATION: Final = re.compile(r"^msprof_(\d+)_(\d+)_(\d+)\.json$")
_SLICE: Final = re.compile(r"^msprof_slice_(\d+)_(\w+)\.json$")
_RUN: Final = "GE@Infer"
_PIECE: Final = 1 << 20
_SPACE: Final = b" \t\r\n\x00"
_BETWEEN: Final = re.compile(rb"\}\s*,\s*\{")
_MARK: Final = re.compile(r"\s*([\[,\]])\s*")
"""The separator before an element of an array, or the bracket at its end."""
_CUT: Final = b'"the file was cut here"'
"""Replaces missing events with a string, which the reader reports as a loss."""


def iteration_of(name: str) -> tuple[int, int, int] | None:
    """Parse device, model and iteration in the name of a file with one iteration."""
    found = _ITERATION.match(name)
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


def slice_of(name: str) -> tuple[str, int] | None:
    """Parse the export time and the number in the name of a slice."""
    found = _SLICE.match(name)
    return (found[2], int(found[1])) if found else None


def joined_timeline(parts: Sequence[Path]) -> PieceFile:
    """Return the parts of a timeline as one file, generated while it is read.

    Raises
    ------
    OSError
        A part cannot be read; raised while the file is read.
    """
    return PieceFile(_document(parts))


def _document(parts: Sequence[Path]) -> Iterator[bytes]:
    job = read_job(parts[0])
    findings = [] if job is None else list(job.findings)
    yield b'{"traceEvents":[\n'
    separator = b""
    for part in parts:
        for place, piece in enumerate(_events(part, findings)):
            yield (b"" if place else separator) + piece
            separator = b",\n"
    for event in _steps(parts, job):
        yield separator + json.dumps(event).encode()
        separator = b",\n"
    yield b"\n]" + b"".join(_header(job, findings)) + b"}\n"


def _events(part: Path, findings: list[str]) -> Iterator[bytes]:
    """Yield the contents of an array; if it is truncated, up to its last complete event."""
    with open_file(part) as file:
        held = file.read(_PIECE).removeprefix(b"\xef\xbb\xbf").lstrip(_SPACE).removeprefix(b"[")
        while piece := file.read(_PIECE):
            yield held
            held = piece
    text = held.rstrip(_SPACE)
    if text.endswith(b"]"):
        text = text[:-1].rstrip(_SPACE)
    else:
        findings.append(
            f"{part.name} is truncated: everything after its last complete event is lost"
        )
        end = _end_of_events(text)
        text = text[:end] + (b",\n" if end else b"") + _CUT
    if text:
        yield text


def _end_of_events(text: bytes) -> int:
    """Return the end of the last event that another event follows."""
    ends = [match.start() + 1 for match in _BETWEEN.finditer(text)]
    return ends[-1] if ends else 0


def _steps(parts: Sequence[Path], job: Job | None) -> Iterator[dict[str, Any]]:
    """Yield a step of the program for the call that ran each iteration."""
    models = {found[1] for found in map(iteration_of, (part.name for part in parts)) if found}
    if len(models) != 1:  # iterations of several graphs have the same numbers
        return
    program = 1 if job is None or job.process is None else job.process
    is_named = False
    for part in parts:
        iteration = iteration_of(part.name)
        run = None if iteration is None else _run(part)
        if iteration is None or run is None:
            continue
        if not is_named:
            name = {"ph": "M", "name": "process_name", "pid": program, "tid": 0}
            yield name | {"args": {"name": "MindSpore"}}
            is_named = True
        place = {"ph": "X", "cat": "user_annotation", "pid": program, "tid": run["tid"]}
        times = {"ts": run["ts"], "dur": run["dur"]}
        yield place | {"name": f"ProfilerStep#{iteration[2]}", **times}


def _run(part: Path) -> dict[str, Any] | None:
    """Find the call that ran the graph; None if the part is damaged or has several such calls."""
    found: dict[str, Any] | None = None
    try:
        for event in _parsed(part):
            if isinstance(event, dict) and event.get("name") == _RUN:
                if found is not None:
                    return None
                found = event
    except (ValueError, RecursionError):
        return None
    is_whole = found is not None and all(key in found for key in ("tid", "ts", "dur"))
    return found if is_whole else None


def _parsed(part: Path) -> Iterator[Any]:
    """Parse the elements of an array one by one, keeping one chunk of the file in memory.

    Raises
    ------
    ValueError
        It is not an array, it is damaged, or an element is larger than a chunk.
    """
    decode = json.JSONDecoder().raw_decode
    with TextIOWrapper(open_file(part), encoding="utf-8-sig") as file:
        text, place, expected = "", 0, "["
        while True:
            mark = _MARK.match(text, place)
            if mark and "]" in {mark[1], text[mark.end() : mark.end() + 1]}:
                return
            try:
                if mark is None or mark[1] != expected:
                    raise ValueError(part.name)  # noqa: TRY301 - handled like an error of the decoder
                element, place = decode(text, mark.end())
            except ValueError:
                more = file.read(_PIECE)
                if not more or len(text) - place > _PIECE:
                    raise
                text, place = text[place:] + more, 0
            else:
                yield element
                expected = ","


def _header(job: Job | None, findings: Sequence[str]) -> Iterator[bytes]:
    facts: dict[str, Any] = {"profiler": "msprof"}
    if job is not None and job.rank is not None:
        facts["distributedInfo"] = {"rank": job.rank}
    if job is not None and job.host is not None:
        facts["host_name"] = job.host
    if job is not None and job.base_ns is not None:
        facts["baseTimeNanoseconds"] = job.base_ns
    if findings:
        facts["findings"] = list(findings)
    for name, value in facts.items():
        yield b"," + json.dumps(name).encode() + b":" + json.dumps(value).encode()
