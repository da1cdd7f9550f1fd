"""Files of Kernel Tuner: reads and writes cache files, and writes T4 results."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from longpole.bench.records.record import Outcome, Record
from longpole.bench.tune.space import Space, label_of
from longpole.files import new_file
from longpole.json_elements import json_elements

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from longpole.bench.tune.ledger import Candidate
    from longpole.bench.tune.search import Tuning
    from longpole.bench.tune.space import Value

__all__ = ["read_cache", "write_cache", "write_t4"]

_NS_PER_MS: Final = 1e6
_LONGEST_MS: Final = 1e12
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

    Runs are read one at a time, and only parameters and times are kept.

    Times are those of `times`, or the one of `time`, in milliseconds.

    Raises
    ------
    ValueError
        It is not a cache file.
    """
    names: list[str] = []
    entries: list[dict[str, Any]] = []
    try:
        for place, value in json_elements(path, {"cache": 1}, may_be_cut=True):
            if place == ("tune_params_keys",):
                names = value
            elif len(place) > 1:
                entries.append(_sound(value, names))
        if not names:
            message = "it names no parameters before its runs"
            raise ValueError(message)  # noqa: TRY301 - it is about the file, as the others
        space = Space.of_points({name: entry[name] for name in names} for entry in entries)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        neither = "is neither a results file of a search nor a cache file of Kernel Tuner"
        message = f"{path} {neither}: {error!r}"
        raise ValueError(message) from error
    return space, [
        record
        for entry, point in zip(entries, space, strict=True)
        for record in _records(entry, point)
    ]


def _sound(entry: Any, names: Sequence[str]) -> dict[str, Any]:
    """Return the used fields of an entry, if it has a simple value for each parameter."""
    if not isinstance(entry, dict):
        message = f"a run is not an object: {str(entry)[:40]!r}"
        raise TypeError(message)
    wrong = [name for name in names if not isinstance(entry[name], int | float | str)]
    if wrong:
        message = f"the value of {wrong[0]!r} is neither a number nor a text"
        raise TypeError(message)
    kept = (*names, "time", "times", "__error__")
    return {name: entry[name] for name in kept if name in entry}


def write_cache(
    path: str | os.PathLike[str], found: Tuning, *, kernel: str, force: bool = False
) -> None:
    """Write the tried candidates as a cache file that Kernel Tuner can continue or simulate.

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
    # Kernel Tuner checks this ending to distinguish a closed file from a truncated one.
    text = json.dumps(content, indent="")
    with new_file(Path(path), force=force) as unfinished:
        unfinished.write_text(text, encoding="utf-8")


def write_t4(path: str | os.PathLike[str], found: Tuning, *, force: bool = False) -> None:
    """Write the tried candidates in the format T4, which auto-tuners share.

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


def _records(entry: Mapping[str, Any], point: Mapping[str, Value]) -> list[Record]:
    """Create a record of each run of a configuration, or one that says how it failed."""
    label, tags = label_of(point), {"point": dict(point)}
    times_ms = entry.get("times") or [entry.get("time")]
    if not isinstance(times_ms, list) or not all(map(_is_time, times_ms)):
        failure = entry.get("__error__") or entry.get("time")
        said = failure if isinstance(failure, str) else "its times are not numbers above 0"
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


def _is_time(value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 < value < _LONGEST_MS  # type: ignore[operator] # it is a number


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
