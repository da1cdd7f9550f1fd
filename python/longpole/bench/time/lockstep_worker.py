"""One build of a function, in a process of its own that runs a batch whenever it is told to.

Started as a script by the interpreter of the build, with one argument, what to load as JSON. It
needs nothing but the standard library: a build need not have longpole installed. Each line of the
standard input is a number of calls; the answer is a line of JSON, with the time in nanoseconds.
Before a batch that is timed an eighth as many calls refill the caches, which another process has
used in between.
"""

from __future__ import annotations

import json
import os
import sys
import time
from importlib import import_module
from operator import attrgetter
from typing import Any

__all__ = ["main"]

_REFILL = 8


def main(text: str) -> int:
    """Load a function and run batches of it until the standard input ends.

    The fields of the JSON object: `name` (`MODULE:FUNC`), `point` (its arguments), `factory`,
    `folder` (where modules are looked for first).
    """
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)
    try:
        function = _loaded(json.loads(text))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever the build raises
        _say(answers, error=f"{type(error).__name__}: {error}")
        return 0
    _say(answers, ready=True)
    for line in sys.stdin:
        try:
            _say(answers, time_ns=_batch(function, int(line)))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - it is the function's own
            _say(answers, error=f"{type(error).__name__}: {error}")
    return 0


def _loaded(wanted: dict[str, Any]) -> Any:
    sys.path.insert(0, wanted["folder"])
    module, _, name = wanted["name"].partition(":")
    function = attrgetter(name)(import_module(module))
    if wanted["factory"]:
        return function(**wanted["point"])
    return lambda: function(**wanted["point"])


def _batch(function: Any, n_calls: int) -> int:
    for _ in range(n_calls // _REFILL):
        function()
    start_ns = time.perf_counter_ns()
    for _ in range(n_calls):
        function()
    return time.perf_counter_ns() - start_ns


def _say(answers: Any, **fields: Any) -> None:
    answers.write(json.dumps(fields) + "\n")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
