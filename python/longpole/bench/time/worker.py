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
from typing import TYPE_CHECKING, Any

from longpole.bench.run.conditions import Conditions
from longpole.bench.time.clocks import Clock, CpuClock
from longpole.bench.time.lockstep import Build, LockstepClock, builds_running
from longpole.bench.time.measure import measure_in_turns
from longpole.bench.time.targets import bound, find_function, key_of
from longpole.bench.time.timing import Effort
from longpole.bench.time.torch_clock import TorchClock

if TYPE_CHECKING:
    from collections.abc import Callable

    from longpole.bench.time.gpu_clock import Mode

__all__ = ["main", "make_clock"]


def main(text: str) -> int:
    """Time what is asked for.

    The fields of the JSON object: `names`, `point`, `factory`, `clock`, `cache`, `n_samples`,
    `budget_s`, `seed`, `path`, `readings` (file and interval of the guard's sampler), `builds`
    (by the names; empty where all functions are of this process) and `name` (the function of
    the builds). A row with `error` says what of it cannot be done.
    """
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as rows:
        os.dup2(2, 1)
        wanted = json.loads(text)
        sys.path[:] = wanted["path"]
        try:
            found = _timed(wanted)
        except ValueError as error:
            found = [{"error": str(error)}]
        rows.writelines(json.dumps(row) + "\n" for row in found)
    return 0


def make_clock(name: str, cache: str | None) -> Clock:
    """Make a clock by its name."""
    if name == "cpu":
        return CpuClock()
    modes: dict[str | None, Mode] = {"cold": "cold", "graph": "graph"}
    return TorchClock(modes.get(cache, "hot"))


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
            clock = make_clock(wanted["clock"], wanted["cache"])
        functions = dict(zip(keys, found, strict=True))
        conditions = Conditions(*wanted["readings"])
        timings = measure_in_turns(functions, clock=clock, effort=effort, conditions=conditions)
    return [timings[key_of(name, wanted["point"])].to_dict() for name in wanted["names"]]


def _found(name: str, wanted: dict[str, Any]) -> Callable[[], object]:
    return bound(find_function(name), wanted["point"], factory=wanted["factory"])


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
