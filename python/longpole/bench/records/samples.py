"""Groups records of measurements into runs by key.

A run is one process and yields one number: the median of its samples or of the times that a job
printed, or else the time of the whole job. Samples of one process are not independent, so they are
never pooled with those of others. Records sampled in turns share the name of their pair; their
samples belong together by position.

A failed attempt is counted and yields no run; a duration that is not a positive finite number is
counted and yields no sample. Unreadable parts of a record are counted, not fatal, since the file
may have been written by an older version or truncated by a crash.

The output of benchmark tools is read as records too, one per operation and run. A run is defined by
the tool (`run` among the fields), or else is the whole output: rows of one process are its samples.
Rows that cannot be compared are failed attempts.
"""

from __future__ import annotations

import math
import os
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from longpole.bench.extraction import extract
from longpole.bench.records.reading import json_object, rows_of
from longpole.bench.records.record import is_duration_ns
from longpole.errors import ResultsError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.bench.extraction import Extraction

Row: TypeAlias = Mapping[str, Any]

Source: TypeAlias = str | os.PathLike[str] | Mapping[str, Iterable[float]] | Iterable[Row]

SESSION_GAP_S: Final = 3600.0
"""Runs that began further apart belong to different sessions."""

UNIT_NS: Final = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}


@dataclass(slots=True)
class Runs:
    """The runs of one key, in the order of recording.

    Parameters
    ----------
    log_times
        Natural logarithm of each run's time in nanoseconds.
    begins_s
        Start of each run, in seconds since 1970; nan if unknown.
    turns
        Samples of the runs taken in turns, by the name of their pair.
    step_ns
        Clock resolution per call; 0 if unknown.
    n_repeated
        Disturbed runs that were repeated; their samples do not count.
    cpu_pressures
        Fraction of each run's time in which something waited for a CPU, if known.
    """

    log_times: array[float] = field(default_factory=lambda: array("d"))
    begins_s: array[float] = field(default_factory=lambda: array("d"))
    turns: dict[str, tuple[float, ...]] = field(default_factory=dict)
    step_ns: float = math.inf
    n_samples: int = 0
    n_dropped: int = 0
    n_disturbed: int = 0
    n_repeated: int = 0
    n_failed: int = 0
    n_unusable: int = 0
    conditions: set[str] = field(default_factory=set)
    plans: set[tuple[int, ...]] = field(default_factory=set)
    clocks_mhz: array[float] = field(default_factory=lambda: array("d"))
    cpu_pressures: array[float] = field(default_factory=lambda: array("d"))

    def add(self, durations_ns: Iterable[Any], row: Row) -> None:
        """Add a run."""
        samples = self._usable(durations_ns)
        if not samples:
            return
        sampling = _mapping(row.get("sampling"))
        if sampling.get("is_repeated") is True:
            self.n_repeated += 1
            return
        self.log_times.append(math.log(median(samples)))
        self.begins_s.append(_begin_s(row))
        self.n_samples += len(samples)
        self.n_dropped += _count(sampling.get("n_dropped"))
        self.n_disturbed += sampling.get("is_disturbed") is True
        self.conditions.add(_condition(sampling))
        self.plans.add(tuple(map(_count, _sequence(sampling.get("looks")))))
        self.step_ns = min(self.step_ns, _step_ns(row, sampling))
        clock_mhz = sampling.get("clock_mhz")
        if isinstance(clock_mhz, int | float) and is_duration_ns(clock_mhz):
            self.clocks_mhz.append(float(clock_mhz))
        pressure = sampling.get("cpu_pressure")
        if isinstance(pressure, int | float) and 0 <= pressure <= 1:
            self.cpu_pressures.append(float(pressure))
        if pair := row.get("pair"):
            self.turns[str(pair)] = tuple(samples)

    def sessions(self) -> Runs:
        """Return one number per session: the median of its runs.

        A session ends if nothing begins for an hour. If start times are unknown, there is one
        session, with the first of the runs.
        """
        if any(map(math.isnan, self.begins_s)):
            return replace(self, log_times=self.log_times[:1], begins_s=self.begins_s[:1])
        times = sorted(zip(self.begins_s, self.log_times, strict=True), key=lambda each: each[0])
        found: list[list[tuple[float, float]]] = []
        for begin_s, log_time in times:
            if not found or begin_s - found[-1][-1][0] > SESSION_GAP_S:
                found.append([])
            found[-1].append((begin_s, log_time))
        return replace(
            self,
            log_times=array("d", (median(time for _, time in session) for session in found)),
            begins_s=array("d", (session[0][0] for session in found)),
        )

    def _usable(self, durations_ns: Iterable[Any]) -> list[float]:
        found = list(durations_ns)
        samples = [float(each) for each in found if _is_usable(each)]
        self.n_unusable += len(found) - len(samples)
        return samples


@dataclass(slots=True)
class Measurements:
    """All keys of one source, and properties of the whole source."""

    runs: dict[str, Runs] = field(default_factory=dict)
    environment: dict[str, set[str]] = field(default_factory=dict)
    n_skipped_lines: int = 0
    n_repeated: int = 0
    _seen: set[tuple[str, str]] = field(default_factory=set)

    def of(self, key: str) -> Runs:
        """Return the runs of a key, empty for a new key."""
        return self.runs.setdefault(key, Runs())

    def add(self, row: Row) -> None:
        """Add the contents of a record."""
        _add_environment(self.environment, row.get("environment"))
        _add_environment(self.environment, {"device": row.get("device")})
        key = row.get("key")
        if not isinstance(key, str) or self._is_repeated(key, row.get("run")):
            return
        if row.get("outcome", row.get("status", "ok")) != "ok":
            self.of(key).n_failed += 1
            return
        for name, durations_ns in _durations(row).items():
            self.of(f"{key} {name}" if name else key).add(durations_ns, row)

    def _is_repeated(self, key: str, run: object) -> bool:
        """Whether the file already contains the run, as in two concatenated copies."""
        if not (isinstance(run, str) and run):
            return False
        is_repeated = (key, run) in self._seen
        self._seen.add((key, run))
        self.n_repeated += is_repeated
        return is_repeated


def gather(source: Source) -> Measurements:
    """Group the runs of each key from a file, from records, or from times by key.

    Times by key are one number per run.

    Examples
    --------
    >>> records = [
    ...     {"key": "gemm", "outcome": "ok", "samples_ns": [250, 260, 255]},
    ...     {"key": "gemm", "outcome": "timeout", "duration_ns": 9},
    ... ]
    >>> runs = gather(records).runs["gemm"]
    >>> [round(math.exp(each)) for each in runs.log_times], runs.n_failed
    ([255], 1)
    """
    if isinstance(source, (str, os.PathLike)):
        return read_measurements(source)
    measurements = Measurements()
    if isinstance(source, Mapping):
        for key, times_ns in source.items():
            for time_ns in times_ns:
                measurements.of(key).add([time_ns], {})
    else:
        for record in source:
            measurements.add(record)
    return measurements


def read_measurements(path: str | os.PathLike[str]) -> Measurements:
    """Read a file of records, or the output of benchmark tools.

    Raises
    ------
    ResultsError
        The file contains neither a record with a key nor a row of a known format.
    """
    measurements = Measurements()
    for line in rows_of(Path(path)):
        row = json_object(line)
        if row is None:
            measurements.n_skipped_lines += 1
        else:
            measurements.add(row)
    if not measurements.runs:
        measurements = Measurements()
        for each in printed_rows(path):
            measurements.add(each)
    if not measurements.runs:
        message = f"{os.fspath(path)} holds no record of a measurement"
        raise ResultsError(message)
    return measurements


def _durations(row: Row) -> dict[str, list[Any]]:
    """Return the durations of a run, by the name of the result if there are several."""
    samples_ns = row.get("samples_ns")
    if isinstance(samples_ns, list | tuple) and samples_ns:
        return {"": list(samples_ns)}
    results = [each for each in _sequence(row.get("results")) if isinstance(each, Mapping)]
    if not results:
        return {"": [_whole_run_ns(row)]}
    several = len(Counter(str(each.get("name")) for each in results)) > 1
    durations: dict[str, list[Any]] = {}
    for each in results:
        durations.setdefault(str(each.get("name")) if several else "", []).append(
            each.get("time_ns")
        )
    return durations


def _whole_run_ns(row: Row) -> Any:
    seconds = row.get("seconds")
    return seconds * 1e9 if isinstance(seconds, float) else row.get("duration_ns")


def _is_usable(duration_ns: Any) -> bool:
    try:
        return not isinstance(duration_ns, (bool, str)) and 0 < float(duration_ns) < math.inf
    except (TypeError, ValueError, OverflowError):
        return False


def _condition(sampling: Row) -> str:
    """Describe how a run was measured; runs that differ in it are never compared."""
    clock, cache = sampling.get("clock"), sampling.get("cache")
    words = [f"{clock} clock" if clock else "", f"{cache} cache" if cache else ""]
    return ", ".join(word for word in words if word) or "no clock named"


def _begin_s(row: Row) -> float:
    try:
        return datetime.fromisoformat(row["started_at"]).timestamp()
    except (KeyError, TypeError, ValueError):
        return math.nan


def _step_ns(row: Row, sampling: Row) -> float:
    """Return the clock resolution per call, or the unit of the last printed digit."""
    step_ns = sampling.get("step_ns")
    if isinstance(step_ns, int | float) and is_duration_ns(step_ns):
        return float(step_ns)
    printed = [_printed_step_ns(each) for each in _sequence(row.get("results"))]
    return min(printed, default=0.0)


def _printed_step_ns(result: Any) -> float:
    original = _mapping(_mapping(result).get("original"))
    try:
        exponent = Decimal(str(original.get("time"))).as_tuple().exponent
    except InvalidOperation:
        return 0.0
    unit_ns = UNIT_NS.get(str(original.get("unit")), 0.0)
    return unit_ns * 10.0**exponent if isinstance(exponent, int) else 0.0


def _mapping(value: Any) -> Row:
    return value if isinstance(value, Mapping) else {}


def _sequence(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _add_environment(environment: dict[str, set[str]], found: Any, prefix: str = "") -> None:
    """Collect textual values; numbers (clocks, temperatures) differ in every run."""
    if not isinstance(found, Mapping):
        return
    for name, value in found.items():
        if isinstance(value, str):
            environment.setdefault(f"{prefix}{name}", set()).add(value)
        else:
            _add_environment(environment, value, f"{prefix}{name}.")


_SAID = ("run", "statistic", "started_at")


def printed_rows(path: str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows of the tools that wrote a file; none if no format is recognised."""
    found = extract(path)
    said = _said(found)
    runs: dict[tuple[str, ...], dict[str, Any]] = {}
    for at, row in enumerate(found.measurements):
        run, statistic, started_at = (said.get((at, name), "") for name in _SAID)
        name = row.operation or row.format
        if not row.is_selectable:
            yield {"key": name, "outcome": row.status}
            continue
        key = (name, row.format, statistic, run)
        clock = f"{row.format} {statistic}".rstrip()
        printed = {
            "key": name,
            "outcome": "ok",
            "results": [],
            "started_at": started_at,
            "sampling": {"clock": clock},
        }
        original = {"time": row.printed_time, "unit": row.printed_unit}
        runs.setdefault(key, printed)["results"].append(
            {"name": "", "time_ns": row.time_ns, "original": original}
        )
    yield from runs.values()


def _said(found: Extraction) -> dict[tuple[int, str], str]:
    import polars as pl

    shown = found.fields.filter(pl.col("name").cast(pl.String).is_in(_SAID))
    return {(record, name): value for record, name, value in shown.iter_rows()}
