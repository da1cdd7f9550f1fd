"""Find what a GPU program waits for.

Examples
--------
>>> import longpole
>>> trace = longpole.read_trace(b'{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "gemm", '
...                             b'"pid": 0, "tid": 7, "ts": 1.5, "dur": 40}]}')
>>> trace.events.select("kind", "name", "start_ns", "duration_ns").row(0)
('kernel', 'gemm', 1500, 40000)
"""

from longpole.analyses.check import Finding, check
from longpole.analyses.summary import Summary, summary
from longpole.errors import (
    DeviceError,
    InternalError,
    LongpoleError,
    MissingDependencyError,
    ResultsError,
    TraceError,
)
from longpole.trace import Trace, read_trace

__all__ = [
    "DeviceError",
    "Finding",
    "InternalError",
    "LongpoleError",
    "MissingDependencyError",
    "ResultsError",
    "Summary",
    "Trace",
    "TraceError",
    "check",
    "read_trace",
    "summary",
]
