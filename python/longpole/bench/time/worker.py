"""A process that times functions and writes a row for each: one run, or candidates on request.

Started with one argument, its configuration as JSON. Rows go to the standard output that the
process was started with; output of the functions goes to standard error instead.

Candidates are lines of JSON from a named pipe, since the jobs of a guard have no input. After one
that failed, the device is checked. If it no longer works, as after an illegal memory access, the
row says so and the process ends, since it cannot time further candidates.
"""

from __future__ import annotations

import json
import os
import random
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from longpole.bench.records.record import Outcome
from longpole.bench.reference import Reference
from longpole.bench.run.conditions import Conditions
from longpole.bench.time.clocks import CpuClock
from longpole.bench.time.gpu_clock import GpuClock
from longpole.bench.time.measure import measure_in_turns
from longpole.bench.time.targets import (
    bound,
    config_labels,
    find_function,
    key_of,
    rotating,
    under_config,
)
from longpole.bench.time.timing import Effort, Work
from longpole.bench.time.torch_clock import CuptiClock, TorchClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from longpole.bench.time.clocks import Cache, Clock

CLOCKS: Final[Mapping[str, Callable[[Cache], Clock]]] = {
    "torch": TorchClock,
    "cupti": CuptiClock,
}
"""Clocks of devices, by their names on the command line."""


def main(text: str) -> int:
    """Time the requested functions.

    The fields of the JSON object: `names`, `point`, `factory`, `clock`, `cache`, `n_samples`,
    `budget_s`, `seed`, `path`, `readings` (file and interval of the guard's sampler), `copies` of
    what a factory makes, `configs` (a Triton kernel whose configurations are timed; names end with
    the configuration) and `work` of a call. `arguments` has separate points for some names. With
    `reference` (fields of a `Reference`) and its `folder`, results are checked. With
    `lists_configs` the rows are the labels of the configurations. A row with `error` says what of
    it cannot be done.

    With `requests`, the path of a pipe, `clock` and `cache` apply to all candidates read from it
    until it ends. The fields of a request: `name` (`MODULE:FUNC`), `point`, `factory`, `key`,
    `n_samples`, `budget_s`, `reference`, `folder`, `config` (kernel and label).
    """
    with os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1) as rows:
        os.dup2(2, 1)
        wanted = json.loads(text)
        sys.path[:] = wanted["path"]
        rows.writelines(json.dumps(row) + "\n" for row in _rows(wanted))
    return 0


def _rows(wanted: dict[str, Any]) -> Iterable[dict[str, Any]]:
    if "requests" in wanted:
        return _candidates(wanted)
    try:
        return _labels(wanted) if wanted.get("lists_configs") else _timed(wanted)
    except ValueError as error:
        return [{"error": str(error)}]


def make_clock(name: str, cache: str | None) -> Clock:
    """Return a clock by its name; `MODULE:FUNC` is a function that creates one.

    Raises
    ------
    ValueError
        The function does not exist.
    """
    if name == "cpu":
        return CpuClock()
    if ":" in name:
        made: Clock = find_function(name)()  # type: ignore[assignment]
        return made
    modes: dict[str | None, Cache] = {"cold": "cold", "graph": "graph"}
    return CLOCKS[name](modes.get(cache, "hot"))


def _labels(wanted: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"label": label} for label in config_labels(wanted["configs"])]


def _timed(wanted: dict[str, Any]) -> list[dict[str, Any]]:
    names = list(wanted["names"])
    # The order of loading and warm-up is drawn anew in each run.
    random.Random(wanted["seed"]).shuffle(names)  # noqa: S311 - an order, not a secret
    keys = [key_of(name, wanted["point"]) for name in names]
    effort = Effort(wanted["n_samples"], wanted["budget_s"])
    found = [_found(name, wanted) for name in names]
    clock = make_clock(wanted["clock"], wanted["cache"])
    functions = dict(zip(keys, found, strict=True))
    if wanted["cache"] is None and isinstance(clock, GpuClock):
        clock = clock.suited_to(functions.values())
    conditions = Conditions(*wanted["readings"])
    timings = measure_in_turns(
        functions, clock=clock, check=_check(wanted), effort=effort, conditions=conditions
    )
    work = Work(**wanted["work"])
    found_timings = (timings[key_of(name, wanted["point"])] for name in wanted["names"])
    return [replace(timing, work=work).to_dict() for timing in found_timings]


def _candidates(wanted: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Time candidates until the pipe ends or the device fails."""
    clock = make_clock(wanted["clock"], wanted["cache"])
    yield {"ready": True}
    conditions = Conditions(*wanted["readings"])
    with Path(wanted["requests"]).open(encoding="utf-8") as requests:
        for line in iter(requests.readline, ""):
            row = _candidate(json.loads(line), clock, conditions)
            is_usable = row["outcome"] == Outcome.OK or _is_usable(clock)
            yield {**row, "is_usable": is_usable}
            if not is_usable:
                return


def _candidate(request: dict[str, Any], clock: Clock, conditions: Conditions) -> dict[str, Any]:
    try:
        function = find_function(request["name"])
    except ValueError as error:
        return {"outcome": Outcome.NOT_STARTED, "message": str(error)}
    candidate = bound(function, request["point"], factory=request["factory"])
    effort = Effort(request["n_samples"], request["budget_s"])
    functions = {request["key"]: candidate}
    try:
        check = _check(request)
        if request.get("config"):
            functions = {request["key"]: under_config(candidate, *request["config"])}
    except (ValueError, OSError) as error:
        return {"outcome": Outcome.NOT_STARTED, "message": str(error)}
    found = measure_in_turns(
        functions, clock=clock, check=check, effort=effort, conditions=conditions
    )
    return found[request["key"]].to_dict()


def _check(wanted: Mapping[str, Any]) -> Callable[[Any], None] | None:
    """Return the check of results; None if any result is correct."""
    if not wanted.get("reference"):
        return None
    reference = Reference(**wanted["reference"])
    expected = reference.expected(Path(wanted["folder"]), find_function)
    return partial(reference.check, expected=expected)


def _is_usable(clock: Clock) -> bool:
    """Check whether the device still works."""
    try:
        clock.time_ns(_nothing, 1)
    except Exception:  # noqa: BLE001 - any exception means that later candidates would fail too
        return False
    return True


def _nothing() -> None:
    pass


def _found(name: str, wanted: dict[str, Any]) -> Callable[[], object]:
    name, _, label = name.partition("@")
    function = find_function(name)
    point = wanted["arguments"].get(f"{name}@{label}", wanted["point"])
    make = partial(bound, function, point, factory=wanted["factory"])
    found = make() if wanted["copies"] == 1 else rotating([make() for _ in range(wanted["copies"])])
    return under_config(found, wanted["configs"], label) if wanted["configs"] else found


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
