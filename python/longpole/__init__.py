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

from longpole.critical_path import CriticalPath, Detach, Drop, Scale, WhatIf
from longpole.errors import (
    DeviceError,
    InternalError,
    LongpoleError,
    MissingDependencyError,
    ResultsError,
    TraceError,
    WindowError,
)
from longpole.trace import Trace, read_trace

if TYPE_CHECKING:
    from longpole.analyses.check import Finding, check
    from longpole.analyses.summary import Summary, summary

__all__ = [
    "CriticalPath",
    "Detach",
    "DeviceError",
    "Drop",
    "Finding",
    "InternalError",
    "LongpoleError",
    "MissingDependencyError",
    "ResultsError",
    "Scale",
    "Summary",
    "Trace",
    "TraceError",
    "WhatIf",
    "WindowError",
    "check",
    "read_trace",
    "summary",
]

# Analyses import polars, for which `import longpole` must not wait.
_MODULE_OF = {"Finding": "check", "Summary": "summary", "check": "check", "summary": "summary"}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        message = f"module 'longpole' has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(import_module(f"longpole.analyses.{_MODULE_OF[name]}"), name)
