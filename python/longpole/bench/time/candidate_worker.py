"""A process that lives on one device and times candidates one after the other.

Started with one argument, what it is for as JSON. Requests come as lines of JSON from a pipe with
a name, for the jobs of a guard have nothing to read; answers go to standard output, one line each.
After a candidate that failed the device is asked whether it still works. Where it does not, as
after an illegal memory access, the answer says so and the process ends: no later candidate can be
timed in it.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longpole.bench.records.record import Outcome
from longpole.bench.run.conditions import Conditions
from longpole.bench.time.measure import measure_in_turns
from longpole.bench.time.targets import bound, find_function
from longpole.bench.time.timing import Effort
from longpole.bench.time.worker import make_clock

if TYPE_CHECKING:
    from longpole.bench.time.clocks import Clock

__all__ = ["main"]


def main(text: str) -> int:
    """Answer requests until the pipe ends or the device is out of order.

    The fields of the JSON object: `requests` (the path of the pipe), `clock` (its name, or
    `MODULE:FUNC`, which makes one), `cache`, `readings` (of the guard), `path`.
    Those of a request: `name` (`MODULE:FUNC`), `point`, `factory`, `key`, `n_samples`,
    `budget_s`.
    """
    wanted = json.loads(text)
    sys.path[:] = wanted["path"]
    with os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1) as answers:
        os.dup2(2, 1)
        clock = _clock(wanted)
        answers.write(json.dumps({"ready": True}) + "\n")
        conditions = Conditions(*wanted["readings"])
        with Path(wanted["requests"]).open(encoding="utf-8") as requests:
            for line in iter(requests.readline, ""):
                row = _timed(json.loads(line), clock, conditions)
                row["is_usable"] = row["outcome"] == Outcome.OK or _is_usable(clock)
                answers.write(json.dumps(row) + "\n")
                if not row["is_usable"]:
                    return 0
    return 0


def _clock(wanted: dict[str, Any]) -> Clock:
    return make_clock(wanted["clock"], wanted["cache"])


def _timed(request: dict[str, Any], clock: Clock, conditions: Conditions) -> dict[str, Any]:
    try:
        function = find_function(request["name"])
    except ValueError as error:
        return {"outcome": Outcome.NOT_STARTED, "message": str(error)}
    candidate = bound(function, request["point"], factory=request["factory"])
    effort = Effort(request["n_samples"], request["budget_s"])
    functions = {request["key"]: candidate}
    found = measure_in_turns(functions, clock=clock, effort=effort, conditions=conditions)
    return found[request["key"]].to_dict()


def _is_usable(clock: Clock) -> bool:
    """Ask the device whether it still works."""
    try:
        clock.time_ns(_nothing, 1)
    except Exception:  # noqa: BLE001 - whatever it raises, it raises for all that follow
        return False
    return True


def _nothing() -> None:
    pass


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
