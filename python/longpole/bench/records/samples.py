"""Records of measurements, gathered into samples for each key.

A record is one JSON object a line: what one attempt of a job, or one call of `measure`, gave.
Read are `key`, `outcome` and the durations: `samples_ns` where there are any, else `time_ns`
of the `results` that the job printed, else the `duration_ns` or `seconds` of the whole run. An
attempt that failed is counted and gives no sample; neither does a duration that is no positive
finite number.

Records are read as they are found: what is not understood is counted, not fatal, since the
file may have been written by an older version or cut off by a crash.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from longpole.errors import ResultsError

__all__ = ["Measurements", "Record", "Runs", "Source", "gather", "read_measurements"]

Record: TypeAlias = Mapping[str, Any]

Source: TypeAlias = str | os.PathLike[str] | Mapping[str, Iterable[float]] | Iterable[Record]


@dataclass(slots=True)
class Runs:
    """What the runs of one key gave, in the order they were recorded in."""

    samples_ns: list[float] = field(default_factory=list)
    n_failed: int = 0
    n_unusable: int = 0
    conditions: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Measurements:
    """All keys of one source, and what is true of the whole of it."""

    runs: dict[str, Runs] = field(default_factory=dict)
    environment: dict[str, set[str]] = field(default_factory=dict)
    n_skipped_lines: int = 0

    def of(self, key: str) -> Runs:
        """Give the runs of a key, new ones where there are none yet."""
        return self.runs.setdefault(key, Runs())


def gather(source: Source) -> Measurements:
    """Gather the samples of each key from a file, from records, or from samples by key.

    Examples
    --------
    >>> records = [
    ...     {"key": "gemm", "outcome": "ok", "samples_ns": [250, 260]},
    ...     {"key": "gemm", "outcome": "timeout", "duration_ns": 9},
    ... ]
    >>> gather(records).runs["gemm"].samples_ns
    [250.0, 260.0]
    """
    if isinstance(source, (str, os.PathLike)):
        return read_measurements(source)
    measurements = Measurements()
    if isinstance(source, Mapping):
        for key, samples_ns in source.items():
            _add_durations(measurements.of(key), samples_ns)
    else:
        for record in source:
            _add_record(measurements, record)
    return measurements


def read_measurements(path: str | os.PathLike[str]) -> Measurements:
    """Read a file of records.

    Raises
    ------
    ResultsError
        The file holds no record that names a key.
    """
    measurements = Measurements()
    with Path(path).open("rb") as lines:
        for line in lines:
            record = _record(line)
            if record is not None:
                _add_record(measurements, record)
            elif line.strip():
                measurements.n_skipped_lines += 1
    if not measurements.runs:
        message = f"{os.fspath(path)} holds no record of a measurement"
        raise ResultsError(message)
    return measurements


def _record(line: bytes) -> Record | None:
    try:
        record = json.loads(line)
    except ValueError:  # broken JSON and broken UTF-8
        return None
    return record if isinstance(record, dict) else None


def _add_record(measurements: Measurements, record: Record) -> None:
    _add_environment(measurements.environment, record.get("environment"))
    _add_environment(measurements.environment, {"device": record.get("device")})
    key = record.get("key")
    if not isinstance(key, str):
        return
    if record.get("outcome", record.get("status", "ok")) != "ok":
        measurements.of(key).n_failed += 1
        return
    for name, durations_ns in _durations(record):
        runs = measurements.of(f"{key} {name}" if name else key)
        runs.conditions.add(_condition(record))
        _add_durations(runs, durations_ns)


def _durations(record: Record) -> list[tuple[str, list[Any]]]:
    """Give the durations of a record, by the name of the result where there are several."""
    samples_ns = record.get("samples_ns")
    if isinstance(samples_ns, list | tuple) and samples_ns:
        return [("", list(samples_ns))]
    results = record.get("results")
    if not (isinstance(results, list) and results):
        return [("", [_whole_run_ns(record)])]
    found = [each for each in results if isinstance(each, dict)]
    several = len({each.get("name") for each in found}) > 1
    return [(str(each.get("name")) if several else "", [each.get("time_ns")]) for each in found]


def _whole_run_ns(record: Record) -> Any:
    seconds = record.get("seconds")
    return seconds * 1e9 if isinstance(seconds, float) else record.get("duration_ns")


def _add_durations(runs: Runs, durations_ns: Iterable[Any]) -> None:
    for duration_ns in durations_ns:
        if _is_usable(duration_ns):
            runs.samples_ns.append(float(duration_ns))
        else:
            runs.n_unusable += 1


def _is_usable(duration_ns: Any) -> bool:
    try:
        return not isinstance(duration_ns, (bool, str)) and 0 < float(duration_ns) < math.inf
    except (TypeError, ValueError, OverflowError):
        return False


def _condition(record: Record) -> str:
    """Say how a record was measured: records that differ in it are never compared."""
    clock, cache = record.get("clock"), record.get("cache")
    words = [f"{clock} clock" if clock else "", f"{cache} cache" if cache else ""]
    return ", ".join(word for word in words if word) or "no clock named"


def _add_environment(environment: dict[str, set[str]], found: Any, prefix: str = "") -> None:
    """Collect what is said in words; numbers (clocks, temperatures) differ in every run."""
    if not isinstance(found, Mapping):
        return
    for name, value in found.items():
        if isinstance(value, str):
            environment.setdefault(f"{prefix}{name}", set()).add(value)
        else:
            _add_environment(environment, value, f"{prefix}{name}.")
