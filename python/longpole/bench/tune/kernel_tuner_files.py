"""Files of Kernel Tuner: cache files in and out, and T4 results."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from longpole.bench.records.record import Outcome, Record
from longpole.bench.tune.space import Space, label_of
from longpole.files import new_file
from longpole.opening import read_text

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from longpole.bench.tune.ledger import Candidate
    from longpole.bench.tune.search import Tuning
    from longpole.bench.tune.space import Value

__all__ = ["read_cache", "write_cache", "write_t4"]

_NS_PER_MS: Final = 1e6
_ERRORS: Final = {
    "not_started": "CompilationFailedConfig",
    "wrong": "InvalidConfig",
}
_INVALIDITY: Final = {
    "ok": "correct",
    "not_started": "compile",
    "wrong": "correctness",
    "timeout": "timeout",
}


def read_cache(path: str | os.PathLike[str]) -> tuple[Space, list[Record]]:
    """Read a cache file of Kernel Tuner, closed or not: the space and a record of each run.

    Times are those of `times`, or the one of `time`, in milliseconds.

    Raises
    ------
    ValueError
        It is no such file.
    """
    try:
        content = _closed(read_text(path))
        names = content["tune_params_keys"]
        entries = list(content["cache"].values())
        space = Space.of_points({name: entry[name] for name in names} for entry in entries)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        message = (
            f"{path} holds no runs of a search and is no cache file of Kernel Tuner: {error!r}"
        )
        raise ValueError(message) from error
    return space, [
        record
        for entry, point in zip(entries, space, strict=True)
        for record in _records(entry, point)
    ]


def write_cache(
    path: str | os.PathLike[str], found: Tuning, *, kernel: str, force: bool = False
) -> None:
    """Write what was tried as a cache file that Kernel Tuner can continue or simulate.

    Raises
    ------
    FileExistsError
        The file exists and `force` is not given.
    ValueError
        The objective is not a time.
    """
    if found.metric != "time":
        message = "a cache file of Kernel Tuner holds times"
        raise ValueError(message)
    values: dict[str, list[Value]] = {}
    for candidate in found.candidates:
        for name, value in candidate.point.items():
            if value not in values.setdefault(name, []):
                values[name].append(value)
    content = {
        "device_name": found.device,
        "kernel_name": kernel,
        "tune_params_keys": list(values),
        "tune_params": values,
        "objective": "time",
        "cache": {
            ",".join(map(str, each.point.values())): _entry(each) for each in found.candidates
        },
    }
    # Kernel Tuner looks for this ending: it is how it tells a closed file from a cut one.
    text = json.dumps(content, indent="")
    with new_file(Path(path), force=force) as unfinished:
        unfinished.write_text(text, encoding="utf-8")


def write_t4(path: str | os.PathLike[str], found: Tuning, *, force: bool = False) -> None:
    """Write what was tried in the format T4, which auto-tuners share.

    Raises
    ------
    FileExistsError
        The file exists and `force` is not given.
    """
    content = {
        "schema_version": "1.0.0",
        "results": [_result(found, each) for each in found.candidates],
    }
    with new_file(Path(path), force=force) as unfinished:
        unfinished.write_text(json.dumps(content, indent=1), encoding="utf-8")


def _closed(text: str) -> Mapping[str, Any]:
    """Read a file whose last brackets may be missing, as after an interrupted run."""
    text = text.strip()
    for ending in ("", "}\n}", "\n}"):
        try:
            found = json.loads(text.removesuffix(",") + ending)
        except ValueError:
            continue
        if isinstance(found, dict):
            return found
    message = "it holds broken JSON"
    raise ValueError(message)


def _records(entry: Mapping[str, Any], point: Mapping[str, Value]) -> list[Record]:
    """Make a record of each run of a configuration; one that says how it failed."""
    label, tags = label_of(point), {"point": dict(point)}
    times_ms = entry.get("times") or [entry.get("time")]
    if not all(isinstance(each, int | float) and each > 0 for each in times_ms):
        said = str(entry.get("__error__") or entry.get("time"))
        return [Record(id=label, key=label, outcome=Outcome.RAISED, message=said, tags=tags)]
    return [
        Record(
            id=f"{label}#{number}",
            key=label,
            outcome=Outcome.OK,
            tags=tags,
            seconds=each / 1e3,
            samples_ns=(each * _NS_PER_MS,),
        )
        for number, each in enumerate(times_ms, start=1)
    ]


def _entry(candidate: Candidate) -> dict[str, Any]:
    times_ms = [value / _NS_PER_MS for value in candidate.values]
    error = _ERRORS.get(candidate.outcome, "RuntimeFailedConfig")
    found = {"time": fmean(times_ms), "times": times_ms} if times_ms else {"time": error}
    return {
        **candidate.point,
        **found,
        **({} if times_ms else {"__error__": error}),
        "benchmark_time": candidate.measuring_s * 1e3,
        "timestamp": _now(),
    }


def _result(found: Tuning, candidate: Candidate) -> dict[str, Any]:
    is_time = found.metric == "time"
    scale = 1 / _NS_PER_MS if is_time else 1.0
    runtimes = [value * scale for value in candidate.values] if is_time else []
    value = candidate.value
    return {
        "timestamp": _now(),
        "configuration": dict(candidate.point),
        "times": {"runtimes": runtimes},
        "invalidity": _INVALIDITY.get(candidate.outcome, "runtime"),
        "correctness": int(candidate.outcome == "ok"),
        "measurements": []
        if value is None
        else [{"name": found.metric, "value": value * scale, "unit": "ms" if is_time else ""}],
        "objectives": [found.metric],
    }


def _now() -> str:
    return datetime.now(UTC).isoformat()
