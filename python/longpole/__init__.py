"""Find what a GPU program waits for.

Examples
--------
>>> import longpole
>>> trace = longpole.read_trace(b'{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "gemm", '
...                             b'"pid": 0, "tid": 7, "ts": 1.5, "dur": 40}]}')
>>> trace.events.select("kind", "name", "start_ns", "duration_ns").row(0)
('kernel', 'gemm', 1500, 40000)
"""

from importlib import import_module
from typing import TYPE_CHECKING

from longpole.errors import (
    DeviceError,
    InternalError,
    LongpoleError,
    MissingDependencyError,
    PairError,
    ResultsError,
    TraceError,
    WindowError,
)
from longpole.trace import Trace, read_trace

if TYPE_CHECKING:
    from longpole.analyses.check import Finding, check
    from longpole.analyses.summary import Summary, summary
    from longpole.convert.execution_trace import (
        ExecutionTrace,
        LinkedTrace,
        link_execution_trace,
        read_execution_trace,
    )
    from longpole.critical_path import CriticalPath, Detach, Drop, Scale, WhatIf

__all__ = [
    "CriticalPath",
    "Detach",
    "DeviceError",
    "Drop",
    "ExecutionTrace",
    "Finding",
    "InternalError",
    "LinkedTrace",
    "LongpoleError",
    "MissingDependencyError",
    "PairError",
    "ResultsError",
    "Scale",
    "Summary",
    "Trace",
    "TraceError",
    "WhatIf",
    "WindowError",
    "check",
    "link_execution_trace",
    "read_execution_trace",
    "read_trace",
    "summary",
]

# `import longpole` must not wait for what answers questions.
_MODULE_OF = {
    **dict.fromkeys(("Finding", "check"), "analyses.check"),
    **dict.fromkeys(("Summary", "summary"), "analyses.summary"),
    **dict.fromkeys(
        ("ExecutionTrace", "LinkedTrace", "link_execution_trace", "read_execution_trace"),
        "convert.execution_trace",
    ),
    **dict.fromkeys(("CriticalPath", "Detach", "Drop", "Scale", "WhatIf"), "critical_path"),
}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        message = f"module 'longpole' has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(import_module(f"longpole.{_MODULE_OF[name]}"), name)
