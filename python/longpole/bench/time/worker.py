"""One run: a process that times functions in turns and writes a row for each.

Started with one argument, what to do as JSON. Rows go to the standard output that the process
was started with; what the functions print goes to standard error instead.
"""

from __future__ import annotations

import json
import os
import random
import sys
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from longpole.bench.run.conditions import Conditions
from longpole.bench.time.clocks import CpuClock
from longpole.bench.time.cuda_clock import CudaClock
from longpole.bench.time.cupti_clock import CuptiClock
from longpole.bench.time.cupy_clock import CupyClock
from longpole.bench.time.gpu_clock import GpuClock
from longpole.bench.time.instructions import instruction_flush
from longpole.bench.time.lockstep import Build, LockstepClock, builds_running
from longpole.bench.time.measure import measure_in_turns
from longpole.bench.time.targets import bound, find_function, key_of, rotating
from longpole.bench.time.timing import Effort
from longpole.bench.time.torch_clock import TorchClock
from longpole.bench.time.triton_configs import config_labels, under_config
from longpole.bench.time.work import Work

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from longpole.bench.time.clocks import Cache, Clock

__all__ = ["CLOCKS", "main", "make_clock"]

CLOCKS: Final[Mapping[str, Callable[[Cache], Clock]]] = {
    "torch": TorchClock,
    "cupy": CupyClock,
    "cuda": CudaClock,
    "cupti": CuptiClock,
}
"""Clocks of devices, by the name that the command line knows them by."""


def main(text: str) -> int:
    """Time what is asked for.

    The fields of the JSON object: `names`, `point`, `factory`, `clock`, `cache`, `n_samples`,
    `budget_s`, `seed`, `path`, `readings` (file and interval of the guard's sampler), `builds`
    (by the names; empty where all functions are of this process) and `name` (the function of
    the builds); `copies` of what a factory makes, `configs` (a Triton kernel whose configurations
    are timed; names end with theirs), `work` of a call, `flushes_instructions`. With
    `lists_configs` the rows are the labels of the configurations. A row with `error` says what
    of it cannot be done.
    """
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as rows:
        os.dup2(2, 1)
        wanted = json.loads(text)
        sys.path[:] = wanted["path"]
        try:
            found = _labels(wanted) if wanted.get("lists_configs") else _timed(wanted)
        except ValueError as error:
            found = [{"error": str(error)}]
        rows.writelines(json.dumps(row) + "\n" for row in found)
    return 0


def make_clock(name: str, cache: str | None, *, flushes_instructions: bool = False) -> Clock:
    """Make a clock by its name; `MODULE:FUNC` names a function that makes one.

    Raises
    ------
    ValueError
        There is no such function.
    """
    if name == "cpu":
        return CpuClock()
    if ":" in name:
        made: Clock = find_function(name)()  # type: ignore[assignment]
        return made
    modes: dict[str | None, Cache] = {"cold": "cold", "graph": "graph"}
    clock = CLOCKS[name](modes.get(cache, "hot"))
    if flushes_instructions and isinstance(clock, GpuClock):
        clock.flush_instructions = instruction_flush(clock)
    return clock


def _labels(wanted: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"label": label} for label in config_labels(wanted["configs"])]


def _timed(wanted: dict[str, Any]) -> list[dict[str, Any]]:
    names = list(wanted["names"])
    # Which function is loaded and warmed first is drawn anew in each run.
    random.Random(wanted["seed"]).shuffle(names)  # noqa: S311 - an order, not a secret
    keys = [key_of(name, wanted["point"]) for name in names]
    effort = Effort(wanted["n_samples"], wanted["budget_s"])
    with ExitStack() as stack:
        if wanted["builds"]:
            builds = [Build(**wanted["builds"][name]) for name in names]
            found = stack.enter_context(builds_running(builds, wanted))
            clock: Clock = LockstepClock(name="cpu in lock-step")
        else:
            found = [_found(name, wanted) for name in names]
            flush = wanted["flushes_instructions"]
            clock = make_clock(wanted["clock"], wanted["cache"], flushes_instructions=flush)
        functions = dict(zip(keys, found, strict=True))
        conditions = Conditions(*wanted["readings"])
        timings = measure_in_turns(functions, clock=clock, effort=effort, conditions=conditions)
    work = Work(**wanted["work"])
    found_timings = (timings[key_of(name, wanted["point"])] for name in wanted["names"])
    return [replace(timing, work=work).to_dict() for timing in found_timings]


def _found(name: str, wanted: dict[str, Any]) -> Callable[[], object]:
    name, _, label = name.partition("@")
    function = find_function(name)
    make = partial(bound, function, wanted["point"], factory=wanted["factory"])
    found = make() if wanted["copies"] == 1 else rotating([make() for _ in range(wanted["copies"])])
    return under_config(found, wanted["configs"], label) if wanted["configs"] else found


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
